import Logging
import Synchronization
import TambourNet
import TambourProtocol
import TambourStore

/// The protocol side of one connection: decodes frames, checks each request against the opcode table,
/// starts it on the lane, a reader or the engine, and writes its reply.
///
/// `@unchecked Sendable`: other threads only hold references to a session; its state is accessed on its
/// lane, which `Connection` checks on every write.
final class Session: ConnectionDelegate, @unchecked Sendable {
    /// A request in flight or queued.
    final class Request: Sendable {
        /// Work that runs outside the lane and therefore waits for its turn.
        enum Work: Sendable {
            case login(LoginRequest)
            case query(QueryRequest)
            case command(CommandRequest)
            case preview(MsgSharePreviewRequest)
        }

        let work: Work
        let opcode: Opcode
        let sequence: UInt16
        /// When its bytes were read; microseconds of the lane's clock.
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
        /// The client has closed its side.
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
    private(set) var capabilities: Capabilities = .classic { didSet { knownRequester = nil } }
    /// What the client named in SESSION_INIT. A client that named something speaks no dialect.
    private var named: Capabilities = []
    /// Set once, by whatever tells it first: the listener, a clue before login, or the token. Without any of
    /// these a login makes it `classic`.
    private var dialect: Capabilities?
    /// nil for clients that named none in SESSION_INIT.
    private(set) var features: SessionFeatures?
    /// The answers that its lane has counted in the metrics.
    var countedAnswers: [SessionFeature] = []
    /// The language of refusals; nil for clients that named no locale.
    private var language: RequestError.Language? { didSet { knownRequester = nil } }
    private var appVersion: AppVersion?
    private var token: String? { didSet { knownRequester = nil } }
    /// Whether it has logged in with the token that it got on this connection, and has not sent LOGIN.
    private var isSignedInByCode = false
    /// Charged for requests before login, as is the bucket of the address.
    private var strangerBucket = RateLimiter.OwnBucket()
    private var address = RateLimiter.Subject.address(.other(""))
    private var knownRequester: Requester?
    private var lastSequence: UInt16 = 0

    private var waiting: [Int: Request] = [:]
    /// Pushes that arrived during LOGIN; they are sent after its reply.
    private var heldPushes: [[UInt8]] = []
    private var heldPushBytes = 0
    private var isHoldingPushes = false
    private var queuedPushBytes = 0
    private var backlog: ReaderBacklog
    /// The payload bytes of all replies so far.
    private var replyBytes = 0
    /// Whether the connection is closed or closing; readers check it before they read for it.
    private let isGone = Atomic(false)
    /// Why the connection closes after the requests in flight; once set, nothing more is read.
    private var ending: Ending?
    /// Once set, queued requests are refused; the engine refuses commands already in flight.
    private var isTokenDead = false

    private var isInteractive = false
    /// When the user's last-seen time was last stored; Unix milliseconds.
    private var seenStored: Int64?
    private var interactiveAtLogin: Bool?
    private var unfollowedAtLogin: Set<UserID> = []
    private var settingsAtLogin: (version: Int64, isHidden: Bool)?
    /// The version of the user's settings, from which the hash of a client's configuration is made.
    private(set) var settingsVersion: Int64 = 0
    private var isHidden = false
    private var isShownOnline = false
    private var watched: Set<UserID> = []

    private var softErrors = 0
    private var softErrorsSince: Int64 = 0
    /// Requests of numbers that no list names.
    private var unknownOpcodes = 0

    private var openedAt: Int64 = 0
    private var lastByteAt: Int64 = 0
    private var partialSince: Int64?
    private var timer: TimerToken?
    private var timerAt = Int64.max

    /// - Parameter dialect: that of the listener; nil where the client shows it.
    init(gateway: LaneGateway, dialect: Capabilities? = nil) {
        self.gateway = gateway
        self.dialect = dialect
        capabilities = dialect ?? .classic
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
            // The limit for strangers ends if the LOGIN in flight is accepted.
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

    /// Whether a stranger's frame stays unread until the LOGIN in flight is answered.
    ///
    /// The answer decides how far a frame may inflate. A stranger has one LOGIN at a time: later ones
    /// stay in the kernel's buffer.
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
        // Complete requests are still answered; an incomplete frame is dropped.
        end(.inputEnded)
    }

    func connectionDrained(_ connection: Connection) {
        queuedPushBytes = 0
        guard backlog.isBehind else { return }
        noteBacklog()
        let mayRead = hasEnoughWaiting
        proceed(machine.release(), mayRead: mayRead)
    }

    /// Whether to stop reading for now; further bytes wait in the kernel.
    private var hasEnoughWaiting: Bool {
        machine.inFlight >= limits.maxRequestsInFlight || machine.isBlocked
    }

    /// Holds queries and LOGIN back while the client has too much unread.
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
        if let timer { gateway.lane.cancel(timer) }
        timer = nil
        signOff()
        waiting = [:]
        heldPushes = []
        gateway.closed(self)
        // Last, so that whoever sees the count fall knows that the user's last-seen time is on its way to the store.
        shared.metrics.connectionsClosed.add(1)
        shared.logger.debug(
            "connection closed",
            metadata: ["connection": "\(connection.id)", "reason": "\(reason)"]
        )
    }

    /// Counts this connection as a stranger and closes those above the bound of its address.
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

    /// Closes the connection to free its descriptor, unless it has logged in meanwhile.
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

    /// Closes the connection because the server stops, after the requests in flight.
    func closeForStop() {
        connection.pauseReading()
        end(.serverStops)
    }

    /// Ends the session because its token died; requests in flight are still answered.
    func tokenDied() {
        isTokenDead = true
        // Otherwise a peer that always has a request in flight would stay for ever.
        connection.pauseReading()
        end(.sessionClosed)
    }

    /// Closes the connection after the requests in flight.
    private func end(_ ending: Ending) {
        self.ending = self.ending ?? ending
        closeIfEnded()
    }

    private func closeIfEnded() {
        guard let ending else { return }
        // A preview may take long; meanwhile a session with a dead token must not receive pushes.
        let ignored = ending == .sessionClosed ? machine.beside : 0
        // Do not wait for a client that has stopped reading.
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
        // The bytes after this point start a new frame, which gets its own deadline.
        partialSince = nil
        // Clients' replies to pushes need no answer.
        guard frame.header.command == PacketCommand.request.rawValue else { return }
        lastSequence = frame.header.sequence
        let sequence = frame.header.sequence
        let opcode = Opcode(rawValue: frame.header.opcode)
        shared.metrics.countRequest(opcode)
        guard let info = opcode.info else { return refuseUnknown(sequence, opcode) }
        guard info.isServed else {
            // Newer clients may send opcodes that this server does not serve: not counted as an error.
            return send(.protoOpcode, sequence, opcode)
        }
        // Requests after a LOGIN are checked when they start, by its outcome.
        if machine.phase != .loggingIn, isOff(info) { return send(.protoOpcode, sequence, opcode) }
        guard info.states.contains(machine.states) else {
            return refuseSoftly(.protoState, sequence, opcode)
        }
        // Strangers pay before their payload is decoded.
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

    /// Whether the opcode belongs to a feature that is off for this client, or is another one in its dialect.
    private func isOff(_ info: OpInfo) -> Bool {
        if !info.movedIn.isDisjoint(with: capabilities) { return true }
        return !info.feature.isEmpty
            && !info.feature.isDisjoint(with: gateway.rules.killed.union(features?.off ?? []))
    }

    /// Answers requests that need neither engine nor reader; previews take longer and are admitted.
    private func answer(_ request: SessionRequest, _ sequence: UInt16, _ opcode: Opcode) {
        if case .msgSharePreview(let preview) = request {
            return admit(.preview(preview), sequence, opcode)
        }
        if let refusal = refusal(of: RateRules.charges(for: request, limits: limits)) {
            return send(refusal, sequence, opcode)
        }
        switch request {
        case .ping(let ping):
            // PING is a fence: pushes that arrived before it must be sent before its reply.
            gateway.drainMailbox()
            if let interactive = ping.interactive {
                // A PING after the LOGIN in flight overrides what the LOGIN says.
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
        named = Capabilities(names: hello.capabilities ?? [])
        settleCapabilities()
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
            location: shared.settings.countries.first ?? .empty,
            regCountryCode: shared.settings.countries.isEmpty ? nil : shared.settings.countries,
            phoneAutoCompleteEnabled: false,
            lang: true,
            qrAuthEnabled: true,
            capabilities: hello.capabilities == nil ? nil : named.names,
            features: hello.features == nil ? nil : features?.answers ?? []
        )
    }

    // MARK: - Dialects

    /// Takes what tells the dialect, if nothing did before.
    private func speak(_ told: Capabilities?) {
        guard dialect == nil, let told else { return }
        dialect = told
        settleCapabilities()
    }

    /// What the client reads: what it named, or else its dialect.
    private func settleCapabilities() {
        let wasCounted = isCounted
        capabilities = named.isEmpty ? dialect ?? .classic : named
        origin.dialect = capabilities == .classic ? "" : capabilities.dialect ?? ""
        if let caller, isCounted != wasCounted {
            shared.accounts.count(caller.userID, isCounted: isCounted)
        }
    }

    // MARK: - Features

    /// Decides features for the user, or for the device before LOGIN.
    @discardableResult
    private func decideFeatures() -> Bool {
        knownRequester = nil
        guard features?.decide(by: gateway.rules, for: caller?.userID) == true else { return false }
        gateway.countFeatures(of: self)
        return true
    }

    /// Applies changed feature rules.
    ///
    /// - Returns: the answers to push, if the client has logged in and they changed. Before LOGIN a
    ///   client keeps the answers it has.
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

    /// Charges the user; nil if the bucket held enough.
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
    /// LOGIN is free and SESSION_INIT is charged to the connection alone, so that nobody can keep others
    /// at the same address from logging in. Requests that wait for the outcome of a LOGIN are charged
    /// when they start: to its user, or to the stranger if it was refused.
    private func refusalOfStranger(_ info: OpInfo) -> RequestError? {
        guard caller == nil, info.kind != .login else { return nil }
        if machine.phase == .loggingIn, info.kind != .session { return nil }
        var wait = shared.rates.take(from: .connection, kept: &strangerBucket)
        if wait == nil, info.opcode != .sessionInit {
            wait = shared.rates.take(from: .address, of: address)
        }
        return wait.map { .tooManyRequests.retrying(afterMs: $0) }
    }

    /// Starts queued requests whose turn has come, or refuses those that are no longer allowed: after a
    /// refused LOGIN, requests that need one are refused as well.
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
        if case .command(let command) = request.work, caller == nil {
            speak(DialectRules.clue(in: command))
        }
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
            let query = ReaderPool.Job { store in
                if self.isGone.load(ordering: .relaxed) { return nil }
                shared.metrics.queueTimes.record(.reader, subject, queue.nowUs - request.arrivalUs)
                let time = shared.clock.safeTime(wall: shared.environment.wallMs())
                let result = shared.dispatcher.query(
                    asked,
                    from: requester,
                    time: time,
                    on: store
                )
                shared.router.route(result.events)
                return self.restOfQuery(result.answer, request, requester)
            }
            shared.readers.post(for: subject, query)
        case .preview(let asked):
            let answer = { @Sendable (attach: Attach?) in
                let reply = MsgSharePreviewReply(attachments: attach.map { [$0] } ?? [])
                gateway.post(.answered(self, request, .reply(reply)))
            }
            // `beside` counts this one.
            guard machine.beside <= limits.maxLinkPreviewsAsked else {
                shared.metrics.countLinkPreview(.busy)
                return answer(nil)
            }
            shared.previews.ask(asked.text, then: answer)
        }
    }

    /// Answers a query or LOGIN, or returns what is to be read next; on a reader.
    private func restOfQuery(
        _ answer: Answer,
        _ request: Request,
        _ requester: Requester
    ) -> ReaderPool.Job? {
        guard answer.restOfQuery != nil else {
            let framed = answer.framed(for: request, requester, limits: shared.limits)
            gateway.post(.answered(self, request, framed))
            return nil
        }
        return ReaderPool.Job { store in
            if self.isGone.load(ordering: .relaxed) { return nil }
            let next = self.shared.dispatcher.resume(answer, on: store)
            return self.restOfQuery(next, request, requester)
        }
    }

    /// Posts a command to the engine; on any queue.
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

    /// The subject in whose turns its work runs.
    var subject: WorkSubject { WorkSubject(requester) }

    private var requester: Requester {
        if let knownRequester { return knownRequester }
        let requester = Requester(
            caller: caller,
            origin: origin,
            capabilities: capabilities,
            features: features?.answers,
            token: token,
            language: language
        )
        knownRequester = requester
        return requester
    }

    /// Sends the reply to a request, charges for its size and starts queued requests.
    ///
    /// - Returns: the payload bytes of all replies sent by this call.
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
        if let opened = answer.opened { signedIn(opened) }
        switch answer.interest {
        case .dialog(let chat): noteDialog(chat)
        case .opened(let address): if caller != nil { gateway.comments.open(address, by: self) }
        case .closed(let address): gateway.comments.close(address, by: self)
        case nil: break
        }
        if request.turn == .exclusive { releaseHeldPushes() }
        let bytes = replyBytes - bytesBefore
        if let caller {
            var units = RateRules.units(forReplyOf: bytes, limits: limits)
            if case .query(let query) = request.work {
                units += RateRules.units(forReading: answer.rowsRead, by: query, limits: limits)
            }
            if units > 0 { shared.rates.charge(units, to: .read, of: .user(caller.userID)) }
        }
        noteBacklog()
        let mayRead = request.turn == .exclusive || hasEnoughWaiting
        proceed(machine.finished(request.turn), mayRead: mayRead)
        return bytes
    }

    /// Starts queued requests, resumes reading if there is room, and closes if the session has ended.
    private func proceed(_ tickets: [Int], mayRead: Bool) {
        startWaiting(tickets)
        if mayRead, ending == nil, !hasEnoughWaiting { connection.resumeReading() }
        closeIfEnded()
    }

    // MARK: - Login

    /// Logs the session in with the token that it was just given: several clients ask for everything else
    /// without a LOGIN.
    private func signedIn(_ opened: Answer.Opened) {
        guard !connection.isClosing, machine.signedIn() else { return }
        token = opened.token
        isSignedInByCode = true
        register(opened.session)
        decoder.authenticated = true
        isHidden = opened.isHidden
        settingsVersion = opened.settingsVersion
        decideFeatures()
        armTimer()
        // The token may have died before this session could hear of it.
        let (shared, gateway) = (shared, gateway)
        shared.readers.post(.login, for: subject) { store in
            let found = shared.dispatcher.resolve(opened.token, knownAs: nil, on: store)
            if case .failure = found { gateway.post(.tokenDied(self, opened.session.id)) }
        }
    }

    /// Looks up the token; then the session registers for pushes on its lane, and only then the snapshot
    /// opens, so that it misses no later commit.
    private func startLogin(_ login: LoginRequest, _ request: Request) {
        machine.loginBegan()
        interactiveAtLogin = login.interactive ?? true
        let shared = shared
        let gateway = gateway
        // The client has not chosen the token that it was given: it may log in with another one.
        let known = isSignedInByCode ? nil : caller
        if caller == nil { shared.strangers.moved(connection.id, to: .loggingIn) }
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
        }
        if let caller, caller.sessionID != session.id { signOff() }
        isSignedInByCode = false
        speak(Capabilities(dialect: session.dialect))
        if caller == nil { register(session) }
        token = login.token
        isHoldingPushes = true
        decideFeatures()
        let shared = shared
        let requester = requester
        let reading = ReaderPool.Job { store in
            if self.isGone.load(ordering: .relaxed) { return nil }
            let time = shared.clock.safeTime(wall: shared.environment.wallMs())
            let answer = shared.dispatcher.login(login, from: requester, time: time, on: store)
            return self.restOfQuery(answer, request, requester)
        }
        shared.readers.post(.login, for: WorkSubject(requester), reading)
    }

    /// Limits how often an account logs in and how often an address tries bad tokens.
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
        // What nothing has told so far, nothing tells later.
        speak(.classic)
        caller = Caller(
            userID: session.userID,
            sessionID: session.id,
            deviceID: session.deviceID,
            connectionID: ConnectionID(connection.id)
        )
        gateway.register(self, user: session.userID)
        connection.isLowPriority = false
        shared.strangers.left(connection.id)
        if isCounted { shared.accounts.count(session.userID, isCounted: true) }
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

    /// Removes the user from the session: when it closes, and when a login is refused after registering.
    private func signOff() {
        setInteractive(false)
        guard let caller else { return }
        shared.presence.unwatch(watched, by: caller.userID)
        watched = []
        gateway.unregister(self, user: caller.userID)
        gateway.comments.closeAll(by: self)
        shared.accounts.remove(self, of: caller.userID)
        if isCounted { shared.accounts.count(caller.userID, isCounted: false) }
        self.caller = nil
        token = nil
        connection.isLowPriority = true
        // A closing session needs no decision.
        if !connection.isClosing { decideFeatures() }
    }

    /// Stores the user's last-seen time with the next commit, at most once in `seenStepMs` for a client that
    /// comes and goes.
    ///
    /// - Parameter address: where the session has just logged in from; nil if it did not log in.
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

    /// Notes the user's new settings, one of which decides whether presence is shown.
    func settingsChanged(_ version: Int64, isHidden hidden: Bool) {
        guard let caller else { return }
        // The snapshot of the login may be older than this.
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

    /// Takes over the users that the login began to follow; users followed before count once.
    private func adopt(_ partners: [UserID], of caller: Caller) {
        let known = partners.filter {
            unfollowedAtLogin.contains($0) || !watched.insert($0).inserted
        }
        unfollowedAtLogin = []
        shared.presence.unwatch(known, by: caller.userID)
    }

    /// Stops following the presence of these users.
    func unfollow(_ users: [UserID]) {
        guard let caller else { return }
        // The snapshot of the login may be older than this.
        if machine.phase == .loggingIn { unfollowedAtLogin.formUnion(users) }
        shared.presence.unwatch(users.filter { watched.remove($0) != nil }, by: caller.userID)
    }

    private func watch(_ users: [UserID]) {
        guard let caller else { return }
        let added = users.filter { watched.insert($0).inserted }
        shared.presence.watch(added, by: caller.userID)
    }

    /// Follows the presence of the partner in an active dialog.
    func noteDialog(_ chat: ChatID) {
        guard let caller, let partner = chat.partner(of: caller.userID), partner != caller.userID
        else { return }
        guard !watched.contains(partner), watched.count < 2 * limits.presenceWatch else { return }
        watch([partner])
    }

    // MARK: - Writing

    /// Whether the client is told with each message what its user has not read.
    var isCounted: Bool { capabilities.contains(.classic) }

    /// Sends a message with what its receiver has read. Nobody else gets these bytes, so they are not
    /// compressed.
    func push(_ message: NotifMessage, to reader: ReadCounters.Reader) {
        var message = message
        message.unread = reader.unread
        message.mark = reader.mark
        message.ttl = false
        // One client takes a push with it for an edit; in the message it is in nobody's way.
        message.message.prevMessageID = message.prevMessageID
        message.prevMessageID = nil
        var push = EncodedPush(Push.notifMessage(message), limits: limits, isCompressed: false)
        self.push(&push)
    }

    /// Sends the push in the form that this client's capabilities allow; holds it back during LOGIN.
    ///
    /// A push that cannot be sent closes the session, or its client would miss it unnoticed.
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
        // A client that has read everything so far is no slow reader, however long the push is.
        if pending > 0, queuedPushBytes > limits.maxOutboundPushBytes,
            pending + packet.count > limits.maxOutboundPushBytes
        {
            return closeSlowReader()
        }
        shared.metrics.pushes.add(1)
        // Half the number space away from the client's own numbers, and below 256: some clients match
        // replies by number alone, and some read the high byte as part of the command.
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
        // Do not encode a reply that cannot be sent.
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
            // Pages are cut well below this; a reply that is still too long would break the client.
            shared.metrics.repliesOverLimit.add(1)
            shared.longReplies.error(
                "a reply is too long to be sent; answered as internal",
                metadata: [
                    "connection": "\(connection.id)", "opcode": "\(opcode.rawValue)",
                    "bytes": "\(payload.count)", "limit": "\(limits.mostPayloadBytes)",
                ]
            )
            send(.internalError, sequence, opcode)
            // The client treats this as a refused login, so close the session.
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

    /// Counts a reply about to be sent, or closes a client that has too much unread.
    ///
    /// - Returns: whether to send it.
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

    /// Refuses a malformed request; closes a peer that keeps sending them.
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

    /// Refuses a number that no list names. Apps newer than this server send some.
    private func refuseUnknown(_ sequence: UInt16, _ opcode: Opcode) {
        unknownOpcodes &+= 1
        let isCounted = caller == nil || unknownOpcodes % limits.unknownOpcodesPerSoftError == 0
        if isCounted {
            refuseSoftly(.protoOpcode, sequence, opcode)
        } else {
            send(.protoOpcode, sequence, opcode)
        }
    }

    /// Answers once and closes, because the stream cannot be decoded any further.
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

    /// Sets the session's one timer to its nearest deadline.
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
