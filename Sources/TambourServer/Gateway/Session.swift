import Logging
import Synchronization
import TambourNet
import TambourProtocol
import TambourStore

/// One connection as the protocol sees it: cuts frames, checks what the table says about each
/// request, starts it where it belongs and writes its reply.
///
/// `@unchecked Sendable`: other threads only carry a session around; everything in it is touched on
/// its lane, which `Connection` checks on every write.
final class Session: ConnectionDelegate, @unchecked Sendable {
    /// A request under way.
    final class Request: Sendable {
        /// What runs elsewhere, and so has to wait for its turn.
        enum Work: Sendable {
            case login(LoginRequest)
            case query(QueryRequest)
            case command(CommandRequest)
            case preview(MsgSharePreviewRequest)
        }

        let work: Work
        let opcode: Opcode
        let sequence: UInt16
        /// When its bytes were read, microseconds of the lane's clock.
        let arrivalUs: Int64
        /// Whether it arrived during a LOGIN, whose outcome decides who pays for it.
        let isUnpaid: Bool

        init(
            _ work: Work,
            _ sequence: UInt16,
            _ opcode: Opcode,
            arrivalUs: Int64,
            isUnpaid: Bool
        ) {
            self.work = work
            self.opcode = opcode
            self.sequence = sequence
            self.arrivalUs = arrivalUs
            self.isUnpaid = isUnpaid
        }

        var turn: SessionStateMachine.Turn {
            switch work {
            case .login: .exclusive
            case .query: .query
            case .command: .command
            case .preview: .beside
            }
        }
    }

    private enum Ending {
        /// The client sends nothing more.
        case inputEnded
        case serverStops
        /// The token is dead.
        case sessionClosed
    }

    unowned let gateway: LaneGateway
    private let shared: SharedServices
    private var opened: Connection?
    private var machine: SessionStateMachine
    private var decoder: FrameDecoder
    private(set) var caller: Caller? { didSet { knownRequester = nil } }
    private var origin = SessionOrigin(installation: "", client: "", info: "", address: "") {
        didSet { knownRequester = nil }
    }
    private(set) var capabilities: Capabilities = [] { didSet { knownRequester = nil } }
    /// Nil for clients that named none.
    private(set) var features: SessionFeatures?
    /// The answers that its lane has counted.
    var countedAnswers: [SessionFeature] = []
    /// What people are told refusals in; nil for clients that named no locale.
    private var language: RequestError.Language?
    private var appVersion: AppVersion?
    private var token: String? { didSet { knownRequester = nil } }
    /// Pays for requests until the connection logs in, and so does its address.
    private var strangerBucket = RateLimiter.OwnBucket()
    private var address = RateLimiter.Subject.address(.other(""))
    private var knownRequester: Requester?
    private var lastSequence: UInt16 = 0

    private var waiting: [Int: Request] = [:]
    /// Pushes that came while LOGIN was under way: they follow its reply.
    private var heldPushes: [[UInt8]] = []
    private var heldPushBytes = 0
    private var isHoldingPushes = false
    private var queuedPushBytes = 0
    private var backlog: ReaderBacklog
    /// Of the payloads of all replies so far.
    private var replyBytes = 0
    /// Whether the connection is closed or about to be; readers ask before they read for it.
    private let isGone = Atomic(false)
    /// Why the connection closes once what is under way is answered; nothing more is read then.
    private var ending: Ending?
    /// What still waits for its turn is refused then, as the engine refuses commands under way.
    private var isTokenDead = false

    private var isInteractive = false
    /// When it was last stored that the user is here, Unix milliseconds.
    private var seenStored: Int64?
    private var interactiveAtLogin: Bool?
    private var unfollowedAtLogin: Set<UserID> = []
    private var settingsAtLogin: (version: Int64, isHidden: Bool)?
    /// That of the user's settings, which the hash of what a client holds is made of.
    private(set) var settingsVersion: Int64 = 0
    private var isHidden = false
    private var isShownOnline = false
    private var watched: Set<UserID> = []

    private var softErrors = 0
    private var softErrorsSince: Int64 = 0

    private var openedAt: Int64 = 0
    private var lastByteAt: Int64 = 0
    private var partialSince: Int64?
    private var timer: TimerToken?
    private var timerAt = Int64.max

    init(gateway: LaneGateway) {
        self.gateway = gateway
        shared = gateway.shared
        let limits = gateway.shared.limits
        machine = SessionStateMachine(maxQueries: limits.maxOutboundBytes / limits.maxReplyBytes)
        decoder = FrameDecoder(limits: limits)
        backlog = ReaderBacklog(limits: limits)
    }

    private var limits: Limits { shared.limits }

    private var connection: Connection {
        guard let opened else {
            preconditionFailure("a lane tells of a connection before anything is done with it")
        }
        return opened
    }

    // MARK: - Connection

    func connectionOpened(_ connection: Connection) {
        opened = connection
        openedAt = gateway.lane.now
        lastByteAt = openedAt
        origin = SessionOrigin(
            installation: "",
            client: "",
            info: "",
            address: Self.host(of: connection.peer)
        )
        address = .address(PeerAddress(peer: connection.peer))
        connection.isLowPriority = true
        shared.metrics.connectionsOpened.add(1)
        gateway.opened(self)
        joinStrangers(as: .silent)
        armTimer()
    }

    func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int {
        lastByteAt = gateway.lane.now
        var offset = 0
        let sharing = caller.map { gateway.connectionCount(of: $0.userID) } ?? 1
        var turn = Turn(limits, isStranger: connection.isLowPriority, sharing: sharing)
        defer { connection.charge(turn.work) }
        do throws(FrameError) {
            while !connection.isClosing, ending == nil {
                if hasEnoughWaiting {
                    connection.pauseReading()
                    break
                }
                let start = offset
                guard let frame = try decoder.next(in: bytes, from: &offset) else { break }
                if mustAwaitLogin(frame.header) {
                    connection.pauseReading()
                    offset = start
                    break
                }
                shared.metrics.bytesIn.add(offset - start)
                turn.handled(offset - start)
                received(frame, &turn)
                if turn.isOver, offset < bytes.count {
                    connection.endTurn()
                    break
                }
            }
        } catch {
            // A stranger's limit ends with the LOGIN that is under way.
            if machine.phase == .loggingIn, case .tooLong(let length, _) = error,
                length <= limits.maxFrameBytes
            {
                connection.pauseReading()
                return offset
            }
            refuse(error, bytes: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
            return bytes.count
        }
        return connection.isClosing ? bytes.count : offset
    }

    /// Whether a stranger's frame is read only once the LOGIN under way is answered.
    ///
    /// The answer decides how far a frame may inflate. And a stranger has one LOGIN at a time: the
    /// server holds nothing of the next ones.
    private func mustAwaitLogin(_ header: PacketHeader) -> Bool {
        if decoder.authenticated { return false }
        if machine.phase == .loggingIn, header.flags != 0 { return true }
        return machine.hasLogin && header.opcode == Opcode.login.rawValue
            && header.command == PacketCommand.request.rawValue
    }

    func connectionRoundEnded(_ connection: Connection) {
        let isPartial =
            connection.hasPartialInput && !connection.hasEndedTurn && !hasEnoughWaiting
        if !isPartial {
            partialSince = nil
        } else if partialSince == nil {
            partialSince = gateway.lane.now
            armTimer()
        }
    }

    func connectionInputEnded(_ connection: Connection) {
        // What was asked before is answered; what has not come whole never was a request.
        end(.inputEnded)
    }

    func connectionDrained(_ connection: Connection) {
        queuedPushBytes = 0
        guard backlog.isBehind else { return }
        noteBacklog()
        let mayRead = hasEnoughWaiting
        proceed(machine.release(), mayRead: mayRead)
    }

    /// Whether nothing more is read for now: what has arrived waits here, the rest in the kernel.
    private var hasEnoughWaiting: Bool {
        machine.inFlight >= limits.maxRequestsInFlight || machine.isBlocked
    }

    /// Holds further requests back while the client is behind with reading.
    private func noteBacklog() {
        backlog.update(bytes: connection.backlogBytes, nowMs: gateway.lane.now)
        guard backlog.isBehind else { return }
        machine.hold()
        armTimer()
    }

    func connectionClosed(_ connection: Connection, reason: CloseReason) {
        machine.closed()
        isGone.store(true, ordering: .relaxed)
        shared.strangers.left(connection.id)
        shared.metrics.connectionsClosed.add(1)
        if let timer { gateway.lane.cancel(timer) }
        timer = nil
        signOff()
        waiting = [:]
        heldPushes = []
        gateway.closed(self)
        shared.logger.debug(
            "connection closed",
            metadata: ["connection": "\(connection.id)", "reason": "\(reason)"]
        )
    }

    /// Counts among those who have not logged in, and has those closed that are too many then.
    private func joinStrangers(as stage: Strangers.Stage) {
        let excess = shared.strangers.entered(
            self,
            id: connection.id,
            address: PeerAddress(origin.address),
            stage: stage,
            nowMs: gateway.lane.now
        )
        for session in excess {
            shared.metrics.strangersClosedForAddress.add(1)
            session.gateway.post(.makeRoom(session))
        }
    }

    /// Gives its descriptor to somebody else, unless it has logged in meanwhile.
    func makeRoom() {
        guard caller == nil else { return }
        connection.close(.local("a stranger makes room"))
    }

    func close(reason: String) {
        isGone.store(true, ordering: .relaxed)
        connection.closeAfterFlush(
            .local(reason),
            within: .milliseconds(limits.closeDrainMs)
        )
    }

    /// The server stops: what is under way is answered first.
    func closeForStop() {
        connection.pauseReading()
        end(.serverStops)
    }

    /// The token of this session is dead; replies under way still go out.
    func tokenDied() {
        isTokenDead = true
        // Nothing more is read, or a peer that always has a request under way would never go.
        connection.pauseReading()
        end(.sessionClosed)
    }

    /// Closes the connection once what is under way has been answered.
    private func end(_ ending: Ending) {
        self.ending = self.ending ?? ending
        closeIfEnded()
    }

    private func closeIfEnded() {
        guard let ending else { return }
        // A preview may take long, and whose token is dead must not hear of anything meanwhile.
        let ignored = ending == .sessionClosed ? machine.beside : 0
        // Nor is a client waited for that does not read.
        let isWaitedFor = ending == .inputEnded || !backlog.isBehind
        guard machine.inFlight == ignored || !isWaitedFor else { return }
        switch ending {
        case .inputEnded:
            connection.closeAfterFlush(
                .peerClosed,
                within: .milliseconds(limits.idleTimeoutMs),
                patience: .milliseconds(limits.lastRepliesTimeoutMs)
            )
        case .serverStops: close(reason: "the server stops")
        case .sessionClosed: close(reason: "the session was closed")
        }
    }

    // MARK: - Frames

    private func received(_ frame: Frame, _ turn: inout Turn) {
        // What is unread from here on is another frame, with a deadline of its own.
        partialSince = nil
        // Replies of clients to our pushes need no answer, whatever they say.
        guard frame.header.command == PacketCommand.request.rawValue else { return }
        lastSequence = frame.header.sequence
        let sequence = frame.header.sequence
        let opcode = Opcode(rawValue: frame.header.opcode)
        shared.metrics.countRequest(opcode)
        guard let info = opcode.info else { return refuseSoftly(.protoOpcode, sequence, opcode) }
        guard info.isServed else {
            // An app that asks for what this server does not have yet is no enemy.
            return send(.protoOpcode, sequence, opcode)
        }
        // What comes behind a LOGIN is judged by its outcome, when its turn comes.
        if machine.phase != .loggingIn, isOff(info) { return send(.protoOpcode, sequence, opcode) }
        guard info.states.contains(machine.states) else {
            return refuseSoftly(.protoState, sequence, opcode)
        }
        // Strangers pay before their bytes are looked at.
        if let refusal = refusalOfStranger(info) { return send(refusal, sequence, opcode) }
        let request: ClientRequest
        do throws(PayloadError) {
            let payload = try frame.payload(
                limits: limits,
                authenticated: decoder.authenticated
            )
            turn.inflated(by: payload.count - frame.wirePayload.count)
            guard let decoded = try ClientRequest.decode(opcode, payload, limits: limits) else {
                return refuseSoftly(.protoOpcode, sequence, opcode)
            }
            request = decoded
        } catch {
            return refuseSoftly(.protoPayload(String(describing: error)), sequence, opcode)
        }
        switch request {
        case .session(let request):
            let waitUs = gateway.lane.queue.nowUs - connection.arrivalUs
            shared.metrics.queueTimes.record(.lane, isStranger: caller == nil, waitUs)
            answer(request, sequence, opcode)
        case .login(let login): admit(.login(login), sequence, opcode)
        case .query(let query): admit(.query(query), sequence, opcode)
        case .command(let command): admit(.command(command), sequence, opcode)
        }
    }

    /// Whether the opcode belongs to a feature that is off for this client.
    private func isOff(_ info: OpInfo) -> Bool {
        !info.feature.isEmpty
            && !info.feature.isDisjoint(with: gateway.rules.killed.union(features?.off ?? []))
    }

    /// Answers what needs neither engine nor reader; what takes its time is admitted.
    private func answer(_ request: SessionRequest, _ sequence: UInt16, _ opcode: Opcode) {
        if case .msgSharePreview(let preview) = request {
            return admit(.preview(preview), sequence, opcode)
        }
        if let refusal = refusal(of: RateRules.charges(for: request, limits: limits)) {
            return send(refusal, sequence, opcode)
        }
        switch request {
        case .ping(let ping):
            // Whoever pings to learn that nothing else came must get what came before the reply.
            gateway.drainMailbox()
            if let interactive = ping.interactive {
                // Behind a LOGIN under way it is the later word of the two.
                if machine.phase == .loggingIn { interactiveAtLogin = interactive }
                setInteractive(interactive)
            }
            reply(PingReply(), sequence, opcode)
        case .log(let log):
            shared.metrics.countLog(log.events, version: machine.isLoggedIn ? appVersion : nil)
            reply(LogReply(), sequence, opcode)
        case .sessionInit(let hello):
            reply(initialize(hello), sequence, opcode)
        case .msgDelivery:
            reply(MsgDeliveryReply(), sequence, opcode)
        case .msgSharePreview:
            preconditionFailure("a preview is admitted")
        case .notifMessage:
            reply(NotifMessageReply(), sequence, opcode)
        }
    }

    private func initialize(_ hello: SessionInitRequest) -> SessionInitReply {
        let agent = hello.userAgent
        func words(_ parts: String?...) -> String {
            parts.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
        }
        origin = SessionOrigin(
            installation: hello.deviceID ?? "",
            client: words(agent?.deviceType, agent?.appVersion),
            info: words(agent?.deviceName, agent?.osVersion),
            address: origin.address
        )
        capabilities = Capabilities(names: hello.capabilities ?? [])
        language = RequestError.Language(locale: agent?.locale)
        appVersion = agent?.appVersion.flatMap { AppVersion($0) }
        features = SessionFeatures(hello)
        decideFeatures()
        gateway.namedFeatures(self)
        if machine.phase == .connected { shared.strangers.moved(connection.id, to: .talking) }
        machine.initialized()
        armTimer()
        let seed = shared.environment.randomBytes(4)
            .reduce(into: Int64(0)) { $0 = $0 << 8 | Int64($1) }
        return SessionInitReply(
            callsSeed: seed,
            capabilities: hello.capabilities == nil ? nil : capabilities.names,
            features: hello.features == nil ? nil : features?.answers ?? []
        )
    }

    // MARK: - Features

    /// Decides for the user, before LOGIN for the device.
    @discardableResult
    private func decideFeatures() -> Bool {
        knownRequester = nil
        guard features?.decide(by: gateway.rules, for: caller?.userID) == true else { return false }
        gateway.countFeatures(of: self)
        return true
    }

    /// The rules are others now.
    ///
    /// - Returns: the answers to push, if the client has logged in and they changed. Before that it
    ///   keeps what it was told, and LOGIN decides.
    func featuresChanged() -> [SessionFeature]? {
        guard caller != nil, decideFeatures() else { return nil }
        return features?.answers
    }

    // MARK: - Requests that run elsewhere

    private func admit(_ work: Request.Work, _ sequence: UInt16, _ opcode: Opcode) {
        let request = Request(
            work,
            sequence,
            opcode,
            arrivalUs: connection.arrivalUs,
            isUnpaid: machine.phase == .loggingIn
        )
        let (ticket, starts) = machine.arrived(request.turn)
        if !starts {
            waiting[ticket] = request
        } else if let refusal = refusalOfRate(request) {
            send(refusal, request.sequence, request.opcode)
            startWaiting(machine.finished(request.turn))
        } else {
            start(request)
        }
    }

    /// Charges the user; nil when there was enough in the bucket.
    private func refusalOfRate(_ request: Request) -> RequestError? {
        switch request.work {
        case .login: nil
        case .query(let query): refusal(of: RateRules.charges(for: query, limits: limits))
        case .command(let command): refusal(of: RateRules.charges(for: command, limits: limits))
        case .preview(let preview):
            refusal(of: RateRules.charges(for: .msgSharePreview(preview), limits: limits))
        }
    }

    private func refusal(of charges: RateRules.Charges) -> RequestError? {
        guard let wait = wait(for: charges.first) ?? charges.second.flatMap({ wait(for: $0) })
        else { return nil }
        return .tooManyRequests.retrying(afterMs: wait)
    }

    private func wait(for charge: RateRules.Charge) -> Int64? {
        if let caller {
            return shared.rates.take(charge.units, from: charge.bucket, of: .user(caller.userID))
        }
        guard charge.bucket.owner == .anyone else { return nil }
        return shared.rates.take(charge.units, from: charge.bucket, of: address)
    }

    /// Charges the connection and its address for a request before login, whatever it asks for.
    ///
    /// LOGIN is free, and SESSION_INIT before it is paid by the connection alone: nobody behind an
    /// address can keep others there from logging in. Requests that wait for the outcome of a LOGIN are
    /// charged when they start: to its user, or to the stranger if it was refused.
    private func refusalOfStranger(_ info: OpInfo) -> RequestError? {
        guard caller == nil, info.kind != .login else { return nil }
        if machine.phase == .loggingIn, info.kind != .session { return nil }
        var wait = shared.rates.take(from: .connection, kept: &strangerBucket)
        if wait == nil, info.opcode != .sessionInit {
            wait = shared.rates.take(from: .address, of: address)
        }
        return wait.map { .tooManyRequests.retrying(afterMs: $0) }
    }

    /// Starts what waited for others to end, if the session may still ask it: what was sent in trust
    /// of a LOGIN that was refused is refused as well.
    private func startWaiting(_ tickets: [Int]) {
        var tickets = tickets[...]
        while let ticket = tickets.popFirst() {
            guard let request = waiting.removeValue(forKey: ticket) else { continue }
            guard let info = request.opcode.info else {
                preconditionFailure("the table knows what was decoded")
            }
            if isTokenDead {
                send(.protoState, request.sequence, request.opcode)
                tickets += machine.finished(request.turn)
            } else if !info.states.contains(machine.states) {
                refuseSoftly(.protoState, request.sequence, request.opcode)
                tickets += machine.finished(request.turn)
            } else if isOff(info) {
                send(.protoOpcode, request.sequence, request.opcode)
                tickets += machine.finished(request.turn)
            } else if let refusal = refusalOfUnpaid(request, info) ?? refusalOfRate(request) {
                send(refusal, request.sequence, request.opcode)
                tickets += machine.finished(request.turn)
            } else {
                start(request)
            }
        }
    }

    /// Charges the stranger for a request that arrived during a LOGIN, now that the LOGIN is refused.
    private func refusalOfUnpaid(_ request: Request, _ info: OpInfo) -> RequestError? {
        request.isUnpaid ? refusalOfStranger(info) : nil
    }

    private func start(_ request: Request) {
        let shared = shared
        let gateway = gateway
        let requester = requester
        switch request.work {
        case .login(let login):
            startLogin(login, request)
        case .command(let asked):
            guard PasswordHasher.concerns(asked) else {
                return post(asked, request, from: requester)
            }
            shared.passwords.post(asked, from: requester) { password, finished in
                switch password {
                case .success(let password):
                    self.post(asked, request, from: requester, password: password, then: finished)
                case .failure(let error):
                    gateway.post(.answered(self, request, .refusal(error)))
                    finished()
                }
            }
        case .query(let asked):
            let queue = gateway.lane.queue
            let subject = WorkSubject(requester)
            shared.readers.post(for: subject) { store in
                if self.isGone.load(ordering: .relaxed) { return }
                shared.metrics.queueTimes.record(.reader, subject, queue.nowUs - request.arrivalUs)
                let time = shared.clock.safeTime(wall: shared.environment.wallMs())
                let result = shared.dispatcher.query(
                    asked,
                    from: requester,
                    time: time,
                    on: store
                )
                shared.router.route(result.events)
                let answer = result.answer.framed(for: request, requester, limits: shared.limits)
                gateway.post(.answered(self, request, answer))
            }
        case .preview(let asked):
            let answer = { @Sendable (attach: Attach?) in
                let reply = MsgSharePreviewReply(attachments: attach.map { [$0] } ?? [])
                gateway.post(.answered(self, request, .reply(reply)))
            }
            // This one is among them.
            guard machine.beside <= limits.maxLinkPreviewsAsked else {
                shared.metrics.countLinkPreview(.busy)
                return answer(nil)
            }
            shared.previews.ask(asked.text, then: answer)
        }
    }

    /// Has the engine run a command; on any queue.
    private func post(
        _ asked: CommandRequest,
        _ request: Request,
        from requester: Requester,
        password: HashedPassword? = nil,
        then finished: @escaping @Sendable () -> Void = {}
    ) {
        let shared = shared
        let gateway = gateway
        let command = Command(for: WorkSubject(requester), arrivalUs: request.arrivalUs) { tx in
            try shared.dispatcher.command(asked, from: requester, password: password, in: tx)
        } done: { answer in
            gateway.post(.answered(self, request, answer))
            finished()
        }
        shared.engine.post(command)
    }

    /// On whose account its work waits.
    var subject: WorkSubject { WorkSubject(requester) }

    private var requester: Requester {
        if let knownRequester { return knownRequester }
        let requester = Requester(
            caller: caller,
            origin: origin,
            capabilities: capabilities,
            features: features?.answers,
            token: token
        )
        knownRequester = requester
        return requester
    }

    /// Sends the reply to a request, charges for it and starts what waited.
    ///
    /// - Returns: the bytes of all payloads that were sent.
    @discardableResult
    func answered(_ request: Request, _ answer: Answer) -> Int {
        guard machine.phase != .closed else {
            if let following = answer.following {
                shared.presence.unwatch(following.partners, by: following.watcher)
            }
            return 0
        }
        let bytesBefore = replyBytes
        if request.turn == .exclusive { finishLogin(answer) }
        switch answer.outcome {
        case .reply(let payload): reply(payload, request.sequence, request.opcode)
        case .encoded(let payload):
            payload.withUnsafeBytes { send(.ok, request.sequence, request.opcode, $0) }
        case .packet(let packet, let payloadBytes):
            if mayReply(payloadBytes) { connection.write(packet) }
        case .refusal(let error): send(error, request.sequence, request.opcode)
        case .done: preconditionFailure("a request has a reply")
        }
        if let interest = answer.interest { noteDialog(interest) }
        if request.turn == .exclusive { releaseHeldPushes() }
        let bytes = replyBytes - bytesBefore
        if let caller, let charge = RateRules.charge(forReplyOf: bytes, limits: limits) {
            shared.rates.charge(charge.units, to: charge.bucket, of: .user(caller.userID))
        }
        noteBacklog()
        let mayRead = request.turn == .exclusive || hasEnoughWaiting
        proceed(machine.finished(request.turn), mayRead: mayRead)
        return bytes
    }

    /// Starts what waited, goes on reading if there is room, and closes if that was the end.
    private func proceed(_ tickets: [Int], mayRead: Bool) {
        startWaiting(tickets)
        if mayRead, ending == nil, !hasEnoughWaiting { connection.resumeReading() }
        closeIfEnded()
    }

    // MARK: - Login

    /// First the token is looked up, then the session is registered for pushes on its lane, and only
    /// then the snapshot opens: what commits after it cannot be missed.
    private func startLogin(_ login: LoginRequest, _ request: Request) {
        machine.loginBegan()
        interactiveAtLogin = login.interactive ?? true
        let shared = shared
        let gateway = gateway
        let known = caller
        if known == nil { shared.strangers.moved(connection.id, to: .loggingIn) }
        let queue = gateway.lane.queue
        let subject = WorkSubject(requester)
        shared.readers.post(.login, for: subject) { store in
            if self.isGone.load(ordering: .relaxed) { return }
            shared.metrics.queueTimes.record(.login, subject, queue.nowUs - request.arrivalUs)
            let found = shared.dispatcher.resolve(login.token, knownAs: known, on: store)
            gateway.post(.tokenResolved(self, request, login, found))
        }
    }

    func tokenResolved(
        _ request: Request,
        _ login: LoginRequest,
        _ found: Result<SessionRecord, RequestError>
    ) {
        guard machine.phase == .loggingIn else { return }
        let session: SessionRecord
        switch limited(found) {
        case .failure(let error):
            if caller == nil { shared.strangers.refused(connection.id) }
            // COMPAT(maxapi-python ≤ 2.5, Python < 3.12): it sends PING right after LOGIN, and hangs
            // when the answer to PING comes on the heels of a refusal. So PING is answered first.
            _ = gateway.lane.schedule(after: .milliseconds(limits.loginRefusalDelayMs)) {
                self.answered(request, .refusal(error))
            }
            return
        case .success(let known):
            session = known
            token = login.token
        }
        if caller == nil { register(session) }
        isHoldingPushes = true
        decideFeatures()
        let shared = shared
        let gateway = gateway
        let requester = requester
        shared.readers.post(.login, for: WorkSubject(requester)) { store in
            if self.isGone.load(ordering: .relaxed) { return }
            let time = shared.clock.safeTime(wall: shared.environment.wallMs())
            let answer = shared.dispatcher.login(login, from: requester, time: time, on: store)
                .framed(for: request, requester, limits: shared.limits)
            gateway.post(.answered(self, request, answer))
        }
    }

    /// Whoever logs in too often is told to wait: an account, and an address that tries bad tokens.
    private func limited(
        _ found: Result<SessionRecord, RequestError>
    ) -> Result<SessionRecord, RequestError> {
        let wait =
            switch found {
            case .success(let session):
                shared.rates.take(from: .login, of: .user(session.userID))
            case .failure(let error):
                error.code == .loginToken ? shared.rates.take(from: .auth, of: address) : nil
            }
        return wait.map { .failure(.loginFlood.retrying(afterMs: $0)) } ?? found
    }

    private func register(_ session: SessionRecord) {
        caller = Caller(
            userID: session.userID,
            sessionID: session.id,
            deviceID: session.deviceID,
            connectionID: ConnectionID(connection.id)
        )
        gateway.register(self, user: session.userID)
        connection.isLowPriority = false
        shared.strangers.left(connection.id)
        for excess in shared.accounts.add(self, of: session.userID, token: session.id) {
            excess.gateway.post(.superseded(excess))
        }
    }

    private func finishLogin(_ answer: Answer) {
        if let following = answer.following, let caller {
            machine.loginEnded(accepted: true)
            decoder.authenticated = true
            shared.metrics.logins.add(1)
            adopt(following.partners, of: caller)
            isHidden = settingsAtLogin?.isHidden ?? following.isHidden
            settingsVersion = settingsAtLogin?.version ?? following.settingsVersion
            settingsAtLogin = nil
            if let interactive = interactiveAtLogin { setInteractive(interactive) }
            interactiveAtLogin = nil
            if !isInteractive, !isHidden {
                shared.presence.noted(caller.userID, wall: shared.environment.wallMs())
            }
            storeSeen(of: caller, at: origin.address)
        } else {
            machine.loginEnded(accepted: false)
            if machine.phase != .loggedIn { signOff() }
            if caller == nil, !connection.isClosing { joinStrangers(as: .talking) }
        }
        armTimer()
    }

    /// Forgets who this is: at the end, and when a login is refused after all.
    private func signOff() {
        setInteractive(false)
        guard let caller else { return }
        shared.presence.unwatch(watched, by: caller.userID)
        watched = []
        gateway.unregister(self, user: caller.userID)
        shared.accounts.remove(self, of: caller.userID)
        self.caller = nil
        token = nil
        connection.isLowPriority = true
        // At the end nobody asks any more.
        if !connection.isClosing { decideFeatures() }
    }

    /// When the user was last online is stored with the next commit; nobody waits for it. A client that
    /// comes and goes all the time is stored once in `seenStepMs`.
    ///
    /// - Parameter address: where the session has logged in from; nil when it has not just now.
    private func storeSeen(of caller: Caller, at address: String? = nil) {
        let now = shared.environment.wallMs()
        if let seenStored, address == nil, machine.phase != .closed,
            now >= seenStored, now - seenStored < Int64(limits.seenStepMs)
        {
            return
        }
        seenStored = now
        shared.engine.post(
            Command(for: .user(caller.userID)) { tx in
                try tx.setSeen(
                    now,
                    user: caller.userID,
                    session: caller.sessionID,
                    address: address
                )
                return .done
            }
        )
    }

    // MARK: - Presence

    private func setInteractive(_ interactive: Bool) {
        guard let caller else { return }
        guard machine.isLoggedIn || machine.phase == .closed else { return }
        guard interactive != isInteractive else { return }
        isInteractive = interactive
        if !interactive { storeSeen(of: caller) }
        showPresence(of: caller)
    }

    /// The user has other settings from now on; one of them says whether the presence is shown.
    func settingsChanged(_ version: Int64, isHidden hidden: Bool) {
        guard let caller else { return }
        // What the login reads may be from before.
        if machine.phase == .loggingIn { settingsAtLogin = (version, hidden) }
        settingsVersion = version
        isHidden = hidden
        showPresence(of: caller)
    }

    private func showPresence(of caller: Caller) {
        guard isShownOnline != (isInteractive && !isHidden) else { return }
        isShownOnline.toggle()
        let now = shared.environment.wallMs()
        if isShownOnline {
            if let event = shared.presence.entered(caller.userID, wall: now) {
                shared.router.route([event])
            }
            return
        }
        guard let turn = shared.presence.left(caller.userID, wall: now) else { return }
        let (shared, lane, user) = (shared, gateway.lane, caller.userID)
        let delay = Duration.milliseconds(limits.presenceOfflineDelayMs)
        _ = lane.schedule(after: delay) {
            let now = shared.environment.wallMs()
            guard let gone = shared.presence.settled(user, turn: turn, wall: now) else { return }
            shared.router.route([gone])
            _ = lane.schedule(after: delay) {
                if let back = shared.presence.rested(user) { shared.router.route([back]) }
            }
        }
    }

    /// Takes over what the login began to follow; what was followed before counts once.
    private func adopt(_ partners: [UserID], of caller: Caller) {
        let known = partners.filter {
            unfollowedAtLogin.contains($0) || !watched.insert($0).inserted
        }
        unfollowedAtLogin = []
        shared.presence.unwatch(known, by: caller.userID)
    }

    /// Follows the presence of these users no more.
    func unfollow(_ users: [UserID]) {
        guard let caller else { return }
        // What the login reads may be from before.
        if machine.phase == .loggingIn { unfollowedAtLogin.formUnion(users) }
        shared.presence.unwatch(users.filter { watched.remove($0) != nil }, by: caller.userID)
    }

    private func watch(_ users: [UserID]) {
        guard let caller else { return }
        let added = users.filter { watched.insert($0).inserted }
        shared.presence.watch(added, by: caller.userID)
    }

    /// Follows the presence of the other side of a dialog that is alive.
    func noteDialog(_ chat: ChatID) {
        guard let caller, let partner = chat.partner(of: caller.userID), partner != caller.userID
        else { return }
        guard !watched.contains(partner), watched.count < 2 * limits.presenceWatch else { return }
        watch([partner])
    }

    // MARK: - Writing

    /// Sends what of a push is for this client, or holds it back while LOGIN is under way.
    ///
    /// A push that cannot be sent closes the session: its client would miss it and never learn that.
    /// - Returns: whether there was something to send.
    @discardableResult
    func push<Content>(_ push: inout EncodedPush<Content>) -> Bool {
        switch push.delivery(for: capabilities) {
        case .packet(let packet):
            self.push(packet)
            return true
        case .nothing:
            return false
        case .tooLong(let bytes):
            shared.metrics.pushesOverLimit.add(1)
            shared.longPushes.error(
                "a push is too long to be sent; its session is closed",
                metadata: [
                    "connection": "\(connection.id)", "opcode": "\(push.opcode.rawValue)",
                    "bytes": "\(bytes)", "limit": "\(limits.mostPayloadBytes)",
                ]
            )
            connection.close(.local("a push was too long"))
            return false
        }
    }

    private func push(_ packet: [UInt8]) {
        guard machine.phase != .closed, !connection.isClosing else { return }
        if isHoldingPushes {
            heldPushBytes += packet.count
            if heldPushBytes > limits.maxOutboundPushBytes { return closeSlowReader() }
            heldPushes.append(packet)
            return
        }
        write(push: packet)
    }

    private func write(push packet: [UInt8]) {
        let pending = connection.pendingOutboundBytes
        if pending == 0 { queuedPushBytes = 0 }
        queuedPushBytes += packet.count
        // A client that has taken everything before is no slow reader, however long the push is.
        if pending > 0, queuedPushBytes > limits.maxOutboundPushBytes,
            pending + packet.count > limits.maxOutboundPushBytes
        {
            return closeSlowReader()
        }
        shared.metrics.pushes.add(1)
        // Half the number space away from what the client has in flight, and below 256: some clients
        // match replies by number alone, some read the high byte as part of the command.
        let sequence = (lastSequence &+ 128) & 0xFF
        withUnsafeTemporaryAllocation(byteCount: PacketHeader.size, alignment: 8) { header in
            packet.withUnsafeBytes { packet in
                header.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: packet[..<PacketHeader.size])
                )
                header.storeBytes(of: sequence.bigEndian, toByteOffset: 2, as: UInt16.self)
                connection.write(UnsafeRawBufferPointer(header))
                connection.write(UnsafeRawBufferPointer(rebasing: packet[PacketHeader.size...]))
            }
        }
    }

    private func releaseHeldPushes() {
        isHoldingPushes = false
        let held = heldPushes
        heldPushes = []
        heldPushBytes = 0
        guard caller != nil else { return }
        for packet in held { write(push: packet) }
    }

    private func closeSlowReader() {
        shared.metrics.slowReadersClosed.add(1)
        connection.close(.local("slow reader"))
    }

    private func reply(_ payload: some WirePayload, _ sequence: UInt16, _ opcode: Opcode) {
        // A reply that goes nowhere is not worth encoding.
        if connection.isClosing { return }
        payload.withEncoded(for: capabilities) { send(.ok, sequence, opcode, $0) }
    }

    private func send(_ error: RequestError, _ sequence: UInt16, _ opcode: Opcode) {
        shared.metrics.countRefusal(error.code)
        ErrorReply(error, in: language)
            .withEncoded(for: capabilities) { send(.error, sequence, opcode, $0) }
    }

    private func send(
        _ command: PacketCommand,
        _ sequence: UInt16,
        _ opcode: Opcode,
        _ payload: UnsafeRawBufferPointer
    ) {
        guard !connection.isClosing else { return }
        if payload.count > limits.mostPayloadBytes {
            // Pages are cut long before; whatever got past that must not reach a client's limit.
            shared.metrics.repliesOverLimit.add(1)
            shared.longReplies.error(
                "a reply is too long to be sent; answered as internal",
                metadata: [
                    "connection": "\(connection.id)", "opcode": "\(opcode.rawValue)",
                    "bytes": "\(payload.count)", "limit": "\(limits.mostPayloadBytes)",
                ]
            )
            send(.internalError, sequence, opcode)
            // The client holds its login for refused, so the session ends with it.
            if opcode == .login { close(reason: "the reply to LOGIN is too long") }
            return
        }
        guard mayReply(payload.count) else { return }
        if payload.count < limits.compressFromBytes {
            let header = PacketHeader(
                command: command.rawValue,
                sequence: sequence,
                opcode: opcode.rawValue,
                length: payload.count
            )
            withUnsafeTemporaryAllocation(byteCount: PacketHeader.size, alignment: 8) { bytes in
                header.write(to: bytes)
                connection.write(UnsafeRawBufferPointer(bytes))
            }
            return connection.write(payload)
        }
        var packet: [UInt8] = []
        encodePacket(
            command: command,
            sequence: sequence,
            opcode: opcode.rawValue,
            payload: payload,
            compression: Compression(for: capabilities),
            compressFrom: limits.compressFromBytes,
            into: &packet
        )
        connection.write(packet)
    }

    /// Counts a reply that is about to be sent; closes a client that has left too much unread instead.
    private func mayReply(_ payloadBytes: Int) -> Bool {
        guard !connection.isClosing else { return false }
        let most = caller == nil ? limits.maxOutboundBytesBeforeLogin : limits.maxOutboundBytes
        guard connection.pendingOutboundBytes <= most else {
            closeSlowReader()
            return false
        }
        replyBytes += payloadBytes
        shared.metrics.replyBytes.add(payloadBytes)
        return true
    }

    // MARK: - Refusals

    /// Nonsense is answered; a peer that sends nothing else is closed.
    private func refuseSoftly(_ error: RequestError, _ sequence: UInt16, _ opcode: Opcode) {
        send(error, sequence, opcode)
        let now = gateway.lane.now
        if now - softErrorsSince > Int64(limits.softErrorWindowMs) {
            softErrorsSince = now
            softErrors = 0
        }
        softErrors += 1
        if softErrors > limits.maxSoftErrors { close(reason: "too many protocol errors") }
    }

    /// The stream cannot be cut any further: one last answer, then the end.
    private func refuse(_ error: FrameError, bytes: UnsafeRawBufferPointer) {
        shared.metrics.framesRefused.add(1)
        var sequence: UInt16 = 0
        var opcode = Opcode(rawValue: 0)
        if bytes.count >= PacketHeader.size {
            let header = PacketHeader(bytes)
            sequence = header.sequence
            opcode = Opcode(rawValue: header.opcode)
        }
        let refusal: RequestError =
            if case .version = error {
                .protoVer(String(describing: error))
            } else {
                .protoFrame(String(describing: error))
            }
        send(refusal, sequence, opcode)
        shared.brokenFrames.notice(
            "broken frame",
            metadata: [
                "connection": "\(connection.id)", "error": "\(error)",
                "header": "\(bytes.prefix(PacketHeader.size).map { String($0, radix: 16) })",
            ]
        )
        close(reason: "broken frame")
    }

    // MARK: - Deadlines

    /// One timer serves every deadline of the session; it is set to the nearest.
    private func armTimer() {
        let deadline = nextDeadline()
        guard deadline < timerAt || timer == nil else { return }
        if let timer { gateway.lane.cancel(timer) }
        timerAt = deadline
        let delay = max(1, deadline - gateway.lane.now)
        timer = gateway.lane.schedule(after: .milliseconds(delay)) { [weak self] in
            self?.timerFired()
        }
    }

    private func nextDeadline() -> Int64 {
        var deadline = lastByteAt + Int64(limits.idleTimeoutMs)
        if let partialSince {
            deadline = min(deadline, partialSince + Int64(limits.partialFrameTimeoutMs))
        }
        switch machine.phase {
        case .connected:
            deadline = min(deadline, openedAt + Int64(limits.sessionInitTimeoutMs))
        case .initialized, .loggingIn:
            if caller == nil { deadline = min(deadline, openedAt + Int64(limits.loginTimeoutMs)) }
        case .loggedIn, .closed:
            break
        }
        if let stalled = backlog.deadlineMs { deadline = min(deadline, stalled) }
        return deadline
    }

    private func timerFired() {
        timer = nil
        timerAt = .max
        guard machine.phase != .closed, !connection.isClosing else { return }
        noteBacklog()
        if let stalled = backlog.deadlineMs, stalled <= gateway.lane.now {
            closeSlowReader()
        } else if nextDeadline() <= gateway.lane.now {
            close(reason: "a deadline passed in phase \(machine.phase)")
        } else {
            armTimer()
        }
    }

    /// The peer's address without its port.
    private static func host(of peer: String) -> String {
        guard let colon = peer.lastIndex(of: ":") else { return peer }
        return String(peer[..<colon].filter { $0 != "[" && $0 != "]" })
    }
}
