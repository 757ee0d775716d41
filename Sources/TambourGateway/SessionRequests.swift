import Logging
import Synchronization
import TambourFraming
import TambourMessenger
import TambourNet
import TambourProtocol
import TambourQueues

/// Handles the requests of a session from frame to reply. Checks, charges, starts and answers them.
///
/// Only the session's lane touches this object.
final class SessionRequests {
    /// The session owns this object and therefore outlives it.
    private unowned(unsafe) var owner: Session?
    private let limits: Limits
    private var charges: SessionCharges
    private var machine: SessionStateMachine
    /// The requests that wait for their turn, by ticket.
    private var waiting: [Int: Session.Request] = [:]

    init(_ shared: SharedServices) {
        limits = shared.limits
        charges = SessionCharges(shared.rates, limits: limits)
        machine = SessionStateMachine(
            maxQueries: limits.maxOutboundBytes / PacketCodec.replyBudget(limits)
        )
    }

    func belong(to session: Session) {
        owner = session
    }

    private var session: Session {
        guard let owner else { preconditionFailure("a session takes its parts at once") }
        return owner
    }

    private var gateway: LaneGateway { session.gateway }
    private var shared: SharedServices { session.shared }
    private var account: SessionAccount { session.account }
    private var caller: Caller? { session.caller }
    private var connection: Connection { session.connection }

    // MARK: - State

    func connected(from address: PeerAddress) {
        charges.connected(from: address)
    }

    /// Applies the rate limits of logins per account and of bad tokens per address.
    func limited(_ found: Result<OpenSession, RequestError>) -> Result<OpenSession, RequestError> {
        charges.limited(found)
    }

    var phase: SessionStateMachine.Phase { machine.phase }

    /// Whether the session is logged in. It stays logged in during a second LOGIN, because a
    /// refusal of the second does not end the first login.
    var isLoggedIn: Bool { machine.isLoggedIn }

    /// Whether a LOGIN runs or waits.
    var hasLogin: Bool { machine.hasLogin }

    /// Whether the session must stop reading for now. Unread bytes wait in the kernel.
    var isFull: Bool {
        machine.inFlight >= limits.maxRequestsInFlight || machine.isBlocked
    }

    /// Returns whether every request has been answered.
    ///
    /// - Parameter ignoringPreviews: whether to ignore requests for link previews, which may take
    ///   long.
    func areDone(ignoringPreviews: Bool) -> Bool {
        machine.inFlight == (ignoringPreviews ? machine.beside : 0)
    }

    /// Records that the session is logged in without a LOGIN, because a reply gave its client a
    /// token.
    ///
    /// - Returns: false when a LOGIN has begun or has been answered.
    func signedIn() -> Bool { machine.signedIn() }

    func loginEnded(accepted: Bool) {
        machine.loginEnded(accepted: accepted)
    }

    /// Holds back further queries and LOGINs until `release`.
    func hold() {
        machine.hold()
    }

    /// Ends the hold and starts waiting requests.
    func release() {
        let mayRead = isFull
        proceed(machine.release(), mayRead: mayRead)
    }

    /// Drops the waiting requests. Replies to requests in flight are no longer sent.
    func closed() {
        machine.closed()
        waiting = [:]
    }

    // MARK: - Arrival

    func received(_ frame: Frame, _ turn: inout Turn) {
        session.deadlines.frameEnded()
        // A client's reply to a push needs no answer.
        guard frame.header.command == PacketCommand.request.rawValue else { return }
        let sequence = frame.header.sequence
        session.outbox.noteSequence(sequence)
        let opcode = Opcode(rawValue: frame.header.opcode)
        shared.metrics.countRequest(opcode)
        guard let info = opcode.info else { return refuseUnknown(sequence, opcode) }
        guard info.isServed else {
            // Newer clients may send opcodes that this server does not serve. Such requests do not
            // count as malformed.
            return send(.protoOpcode, sequence, opcode)
        }
        // Requests that arrive during a LOGIN are checked when they start, because the check
        // depends on the LOGIN's outcome.
        if !machine.hasLogin, isOff(info) { return send(.protoOpcode, sequence, opcode) }
        guard info.states.contains(machine.statesOnArrival) else {
            return refuseSoftly(.protoState, sequence, opcode)
        }
        // Strangers pay before their payload is decoded. A request that waits for a LOGIN is
        // charged when it starts. If the LOGIN succeeds, its user pays. If it is refused, the
        // stranger pays.
        let paysLater = machine.hasLogin && info.kind != .session
        if !paysLater, let refusal = refusalOfStranger(info) {
            return send(refusal, sequence, opcode)
        }
        let request: ClientRequest
        do throws(PayloadError) {
            let payload = try session.reader.payload(of: frame)
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

    private func isOff(_ info: OpInfo) -> Bool { account.isOff(info) }

    private func refusalOfStranger(_ info: OpInfo) -> RequestError? {
        caller == nil ? charges.refusalOfStranger(info) : nil
    }

    /// Answers requests that need neither the engine nor a reader. Link previews take longer, so
    /// they are admitted like other work.
    private func answer(_ request: SessionRequest, _ sequence: UInt16, _ opcode: Opcode) {
        if case .msgSharePreview(let preview) = request {
            return admit(.preview(preview), sequence, opcode)
        }
        let price = RateRules.charges(for: request, limits: limits)
        if let refusal = charges.refusal(of: price, for: caller?.userID) {
            return send(refusal, sequence, opcode)
        }
        switch request {
        case .ping(let ping):
            // PING is a fence: pushes that the lane received before the PING must be sent before
            // its reply.
            gateway.drainMailbox()
            if let interactive = ping.interactive { account.setInteractive(interactive) }
            reply(PingReply(), sequence, opcode)
        case .log(let log):
            let version = machine.isLoggedIn ? account.appVersion : nil
            shared.metrics.countLog(log.events, version: version)
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
        let reply = account.initialize(hello)
        if machine.phase == .connected { shared.strangers.moved(connection.id, to: .talking) }
        machine.initialized()
        session.setTimer()
        return reply
    }

    // MARK: - Requests that run outside the lane

    private func admit(_ work: Session.Request.Work, _ sequence: UInt16, _ opcode: Opcode) {
        let request = Session.Request(
            work,
            sequence,
            opcode,
            arrivalUs: connection.arrivalUs,
            isUnpaid: machine.hasLogin
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

    private func refusalOfRate(_ request: Session.Request) -> RequestError? {
        request.charges(limits: limits)
            .flatMap { charges.refusal(of: $0, for: caller?.userID) }
    }

    /// Starts queued requests whose turn has come. Refuses those that are no longer allowed. For
    /// example, after a refused LOGIN, it refuses requests that need a login.
    private func startWaiting(_ tickets: [Int]) {
        var tickets = tickets[...]
        while let ticket = tickets.popFirst() {
            guard let request = waiting.removeValue(forKey: ticket) else { continue }
            guard let info = request.opcode.info else {
                preconditionFailure("the table knows what was decoded")
            }
            if session.isTokenDead {
                send(.protoState, request.sequence, request.opcode)
            } else if !info.states.contains(machine.states) {
                refuseSoftly(.protoState, request.sequence, request.opcode)
            } else if isOff(info) {
                send(.protoOpcode, request.sequence, request.opcode)
            } else if let refusal = request.isUnpaid ? refusalOfStranger(info) : nil {
                send(refusal, request.sequence, request.opcode)
            } else if let refusal = refusalOfRate(request) {
                send(refusal, request.sequence, request.opcode)
            } else {
                start(request)
                continue
            }
            tickets += machine.finished(request.turn)
        }
    }

    private func start(_ request: Session.Request) {
        switch request.work {
        case .login(let login):
            machine.loginBegan()
            account.startLogin(login, request)
        case .command(let command):
            if caller == nil { account.speak(DialectRules.clue(in: command)) }
            shared.messenger.run(command, context(of: request)) { [session] answer in
                session.gateway.post(.answered(session, request, Session.Reply(answer)))
            }
        case .query(let query):
            shared.messenger.read(query, context(of: request), then: framing(request))
        case .preview(let preview):
            let answer = { @Sendable [session] (attach: Attach?) in
                let reply = MsgSharePreviewReply(attachments: attach.map { [$0] } ?? [])
                session.gateway.post(.answered(session, request, Session.Reply(.reply(reply))))
            }
            // `beside` includes this request.
            guard machine.beside <= limits.maxLinkPreviewsAsked else {
                shared.metrics.countLinkPreview(.busy)
                return answer(nil)
            }
            shared.messenger.preview(preview.text, then: answer)
        }
    }

    func context(of request: Session.Request) -> Messenger.RequestContext {
        Messenger.RequestContext(requester: account.requester, arrivalUs: request.arrivalUs) {
            [session] in
            !session.isGone.load(ordering: .relaxed)
        }
    }

    /// Returns a completion for a query. It runs on the store's reader and frames the page there.
    /// The lane therefore spends no time on the framing.
    func framing(_ request: Session.Request) -> @Sendable (Answer) -> Void {
        let capabilities = account.capabilities
        return { [session] answer in
            let reply = Session.Reply.framed(
                answer,
                to: request,
                for: capabilities,
                limits: session.limits
            )
            session.gateway.post(.answered(session, request, reply))
        }
    }

    /// Sends the reply to a request, charges for its size and starts queued requests.
    ///
    /// - Returns: the payload bytes of all replies sent by this call.
    @discardableResult
    func answered(_ request: Session.Request, _ reply: Session.Reply) -> Int {
        let answer = reply.answer
        guard machine.phase != .closed else {
            if let following = answer.following {
                shared.messenger.unfollow(following.partners, by: following.watcher)
            }
            return 0
        }
        let bytesBefore = session.outbox.replyBytes
        if request.turn == .exclusive { account.finishLogin(answer) }
        write(reply, to: request)
        if let opened = answer.opened { account.signedIn(opened) }
        switch answer.interest {
        case .dialog(let chat): account.noteDialog(chat)
        case .opened(let address): if caller != nil { gateway.comments.open(address, by: session) }
        case .closed(let address): gateway.comments.close(address, by: session)
        case nil: break
        }
        if request.turn == .exclusive { session.outbox.release(dropping: caller == nil) }
        let bytes = session.outbox.replyBytes - bytesBefore
        if let caller {
            let units = request.units(
                forReplyOf: bytes,
                reading: answer.rowsRead,
                limits: limits
            )
            charges.charge(units, to: caller.userID)
        }
        session.noteBacklog()
        let mayRead = request.turn == .exclusive || isFull
        proceed(machine.finished(request.turn), mayRead: mayRead)
        return bytes
    }

    private func write(_ reply: Session.Reply, to request: Session.Request) {
        let (sequence, opcode) = (request.sequence, request.opcode)
        if let packet = reply.packet {
            return session.outbox.write(reply: packet, payloadBytes: reply.payloadBytes)
        }
        switch reply.answer.outcome {
        case .reply(let payload): self.reply(payload, sequence, opcode)
        case .encoded(let payload):
            let isWritten = payload.withUnsafeBytes {
                session.outbox.write($0, to: (sequence, opcode), for: account.capabilities)
            }
            if !isWritten { refuseTooLong(sequence, opcode) }
        case .refusal(let error): send(error, sequence, opcode)
        case .done: preconditionFailure("a request has a reply")
        }
    }

    /// Starts queued requests, resumes reading if there is room, and closes if the session has
    /// ended.
    func proceed(_ tickets: [Int], mayRead: Bool) {
        startWaiting(tickets)
        if mayRead, session.ending == nil, !isFull { connection.resumeReading() }
        session.closeIfEnded()
    }

    // MARK: - Writing

    private func reply(_ payload: some WirePayload, _ sequence: UInt16, _ opcode: Opcode) {
        if !session.outbox.write(payload, to: (sequence, opcode), for: account.capabilities) {
            refuseTooLong(sequence, opcode)
        }
    }

    private func refuseTooLong(_ sequence: UInt16, _ opcode: Opcode) {
        send(.internalError, sequence, opcode)
        // The client would treat the error as a refused login, although the LOGIN succeeded. Close
        // the session.
        if opcode == .login { session.close(reason: "the reply to LOGIN is too long") }
    }

    private func send(_ error: RequestError, _ sequence: UInt16, _ opcode: Opcode) {
        shared.metrics.countRefusal(error.code)
        let reply = ErrorReply(error, in: account.language)
        session.outbox.write(
            reply,
            .error,
            to: (sequence, opcode),
            for: account.capabilities
        )
    }

    /// Refuses a malformed request. Closes the connection of a peer that keeps sending malformed
    /// requests.
    private func refuseSoftly(_ error: RequestError, _ sequence: UInt16, _ opcode: Opcode) {
        send(error, sequence, opcode)
        if !charges.allowsSoftError(at: gateway.lane.now) {
            session.close(reason: "too many protocol errors")
        }
    }

    private func refuseUnknown(_ sequence: UInt16, _ opcode: Opcode) {
        if charges.isSoftError(unknownFrom: caller) {
            refuseSoftly(.protoOpcode, sequence, opcode)
        } else {
            send(.protoOpcode, sequence, opcode)
        }
    }

    /// Answers once and closes, because the rest of the stream cannot be decoded.
    func refuse(_ error: FrameError, bytes: UnsafeRawBufferPointer) {
        shared.metrics.framesRefused.add(1)
        let header = bytes.count >= PacketHeader.size ? PacketHeader(bytes) : nil
        let refusal: RequestError =
            if case .version = error {
                .protoVer(String(describing: error))
            } else {
                .protoFrame(String(describing: error))
            }
        send(refusal, header?.sequence ?? 0, Opcode(rawValue: header?.opcode ?? 0))
        shared.brokenFrames.notice(
            "broken frame",
            metadata: [
                "connection": "\(connection.id)", "error": "\(error)",
                "header": "\(bytes.prefix(PacketHeader.size).map { String($0, radix: 16) })",
            ]
        )
        session.close(reason: "broken frame")
    }
}
