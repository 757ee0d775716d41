import Logging
import Synchronization
import TambourEvents
import TambourFraming
import TambourMessenger
import TambourNet
import TambourProtocol

/// The protocol side of one connection: decodes frames, checks each request against the opcode table,
/// starts it on the lane or in the messenger, and writes its reply.
///
/// `@unchecked Sendable`: other threads only hold references to a session; its state is accessed on its
/// lane, which `Connection` checks on every write.
final class Session: ConnectionDelegate, @unchecked Sendable {
    enum Ending {
        /// The client has closed its side.
        case inputEnded
        case serverStops
        /// The token is dead.
        case sessionClosed
    }

    unowned let gateway: LaneGateway
    let shared: SharedServices
    var machine: SessionStateMachine
    var reader: PacketCodec.Reader
    var outbox: Outbox
    var client: SessionClient
    var charges: SessionCharges
    var deadlines: Deadlines
    var presence: SessionPresence
    /// The LOGIN in flight whose outcome is open.
    var login: LoginFlow?
    /// The version of the user's settings, from which the hash of a client's configuration is made.
    var settingsVersion: Int64 = 0
    /// The answers that its lane has counted in the metrics.
    var countedAnswers: [SessionFeature] = []
    var waiting: [Int: Request] = [:]
    /// Whether the connection is closed or closing; readers check it before they read for it.
    let isGone = Atomic(false)
    /// Why the connection closes after the requests in flight; once set, nothing more is read.
    var ending: Ending?
    /// Once set, queued requests are refused; the engine refuses commands already in flight.
    var isTokenDead = false
    private var timer: TimerToken?

    /// - Parameter dialect: that of the listener; nil where the client shows it.
    init(gateway: LaneGateway, dialect: Capabilities? = nil) {
        self.gateway = gateway
        shared = gateway.shared
        let limits = gateway.shared.limits
        machine = SessionStateMachine(
            maxQueries: limits.maxOutboundBytes / PacketCodec.replyBudget(limits)
        )
        reader = PacketCodec.Reader(limits: limits)
        outbox = Outbox(gateway.shared)
        client = SessionClient(dialect: dialect)
        charges = SessionCharges(gateway.shared.rates, limits: limits)
        deadlines = Deadlines(limits: limits)
        presence = SessionPresence(limits: limits)
    }

    var limits: Limits { shared.limits }
    var connection: Connection { outbox.connection }
    var caller: Caller? { client.caller }

    // MARK: - Connection

    func connectionOpened(_ connection: Connection) {
        outbox.open(connection)
        deadlines.opened(at: gateway.lane.now)
        client.connected(from: connection.peer)
        charges.connected(from: PeerAddress(peer: connection.peer))
        setStranger(true)
        shared.metrics.connectionsOpened.add(1)
        gateway.opened(self)
        joinStrangers(as: .silent)
        setTimer()
    }

    func connection(_ connection: Connection, received bytes: UnsafeRawBufferPointer) -> Int {
        deadlines.received(at: gateway.lane.now)
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
                guard let frame = try reader.next(in: bytes, from: &offset) else { break }
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
            if machine.hasLogin, case .tooLong(let length, _) = error,
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
    /// The answer decides how far a frame may inflate, and what the numbers mean that a dialect has moved.
    /// A stranger has one LOGIN at a time: later ones stay in the kernel's buffer.
    private func mustAwaitLogin(_ header: PacketHeader) -> Bool {
        if reader.isAuthenticated { return false }
        guard machine.hasLogin else { return false }
        if header.flags != 0 { return true }
        let opcode = Opcode(rawValue: header.opcode)
        return header.command == PacketCommand.request.rawValue
            && (opcode == .login || opcode.info?.movedIn.isEmpty == false)
    }

    func connectionRoundEnded(_ connection: Connection) {
        let isPartial =
            connection.hasPartialInput && !connection.hasEndedTurn && !hasEnoughWaiting
        if deadlines.roundEnded(isPartial: isPartial, at: gateway.lane.now) { setTimer() }
    }

    func connectionInputEnded(_ connection: Connection) {
        // Complete requests are still answered; an incomplete frame is dropped.
        end(.inputEnded)
    }

    func connectionDrained(_ connection: Connection) {
        outbox.drained()
        guard outbox.isBehind else { return }
        noteBacklog()
        let mayRead = hasEnoughWaiting
        proceed(machine.release(), mayRead: mayRead)
    }

    func connectionClosed(_ connection: Connection, reason: CloseReason) {
        machine.closed()
        isGone.store(true, ordering: .relaxed)
        shared.strangers.left(connection.id)
        if let timer { gateway.lane.cancel(timer) }
        timer = nil
        signOff()
        waiting = [:]
        outbox.close()
        gateway.closed(self)
        // Last, so that whoever sees the count fall knows that the user's last-seen time is on its way to the store.
        shared.metrics.connectionsClosed.add(1)
        shared.logger.debug(
            "connection closed",
            metadata: ["connection": "\(connection.id)", "reason": "\(reason)"]
        )
    }

    /// Whether to stop reading for now; further bytes wait in the kernel.
    var hasEnoughWaiting: Bool {
        machine.inFlight >= limits.maxRequestsInFlight || machine.isBlocked
    }

    /// Holds queries and LOGIN back while the client has too much unread.
    func noteBacklog() {
        outbox.noteBacklog(nowMs: gateway.lane.now)
        guard outbox.isBehind else { return }
        machine.hold()
        setTimer()
    }

    /// Serves strangers after everybody else, and lets fewer bytes wait for them.
    func setStranger(_ isStranger: Bool) {
        connection.isLowPriority = isStranger
        outbox.setStranger(isStranger)
    }

    // MARK: - Closing

    /// Counts this connection as a stranger and closes those above the bound of its address.
    func joinStrangers(as stage: Strangers.Stage) {
        let excess = shared.strangers.entered(
            self,
            id: connection.id,
            address: PeerAddress(client.origin.address),
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

    func closeIfEnded() {
        guard let ending else { return }
        // A preview may take long; meanwhile a session with a dead token must not receive pushes.
        let ignored = ending == .sessionClosed ? machine.beside : 0
        // Do not wait for a client that has stopped reading.
        let isWaitedFor = ending == .inputEnded || !outbox.isBehind
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

    // MARK: - Deadlines

    private var situation: Deadlines.Situation {
        Deadlines.Situation(
            phase: machine.phase,
            isStranger: caller == nil,
            stalledAtMs: outbox.stalledAtMs
        )
    }

    /// Sets the session's one timer to its nearest deadline.
    func setTimer() {
        if let deadline = deadlines.timer(in: situation) { setTimer(at: deadline) }
    }

    private func setTimer(at deadline: Int64) {
        if let timer { gateway.lane.cancel(timer) }
        let delay = max(1, deadline - gateway.lane.now)
        timer = gateway.lane.schedule(after: .milliseconds(delay)) { [weak self] in
            self?.timerFired()
        }
    }

    private func timerFired() {
        timer = nil
        guard machine.phase != .closed, !connection.isClosing else { return }
        outbox.noteBacklog(nowMs: gateway.lane.now)
        if outbox.isBehind { machine.hold() }
        switch deadlines.timerFired(in: situation, at: gateway.lane.now) {
        case .setTimer(let deadline): setTimer(at: deadline)
        case .closeSlowReader: outbox.closeSlowReader()
        case .close: close(reason: "a deadline passed in phase \(machine.phase)")
        }
    }
}
