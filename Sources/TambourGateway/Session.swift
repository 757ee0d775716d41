import Logging
import Synchronization
import TambourEvents
import TambourFraming
import TambourMessenger
import TambourNet
import TambourProtocol

/// The protocol side of one connection: reads frames in turns, keeps deadlines, and closes. Its requests
/// and its account have classes of their own; `Outbox` writes.
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
    let requests: SessionRequests
    let account: SessionAccount
    var reader: PacketCodec.Reader
    var outbox: Outbox
    var deadlines: Deadlines
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
        requests = SessionRequests(gateway.shared)
        account = SessionAccount(dialect: dialect, limits: limits)
        reader = PacketCodec.Reader(limits: limits)
        outbox = Outbox(gateway.shared)
        deadlines = Deadlines(limits: limits)
        requests.belong(to: self)
        account.belong(to: self)
    }

    var limits: Limits { shared.limits }
    var connection: Connection { outbox.connection }
    var caller: Caller? { account.caller }

    // MARK: - Connection

    func connectionOpened(_ connection: Connection) {
        outbox.open(connection)
        deadlines.opened(at: gateway.lane.now)
        account.connected(from: connection.peer)
        requests.connected(from: PeerAddress(peer: connection.peer))
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
                if requests.isFull {
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
                requests.received(frame, &turn)
                if turn.isOver, offset < bytes.count {
                    connection.endTurn()
                    break
                }
            }
        } catch {
            // The limit for strangers ends if the LOGIN in flight is accepted.
            if requests.hasLogin, case .tooLong(let length, _) = error,
                length <= limits.maxFrameBytes
            {
                connection.pauseReading()
                return offset
            }
            requests.refuse(error, bytes: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
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
        guard requests.hasLogin else { return false }
        if header.flags != 0 { return true }
        let opcode = Opcode(rawValue: header.opcode)
        return header.command == PacketCommand.request.rawValue
            && (opcode == .login || opcode.info?.movedIn.isEmpty == false)
    }

    func connectionRoundEnded(_ connection: Connection) {
        let isPartial =
            connection.hasPartialInput && !connection.hasEndedTurn && !requests.isFull
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
        requests.release()
    }

    func connectionClosed(_ connection: Connection, reason: CloseReason) {
        requests.closed()
        isGone.store(true, ordering: .relaxed)
        shared.strangers.left(connection.id)
        if let timer { gateway.lane.cancel(timer) }
        timer = nil
        account.signOff()
        outbox.close()
        gateway.closed(self)
        // Last, so that whoever sees the count fall knows that the user's last-seen time is on its way to the store.
        shared.metrics.connectionsClosed.add(1)
        shared.logger.debug(
            "connection closed",
            metadata: ["connection": "\(connection.id)", "reason": "\(reason)"]
        )
    }

    /// Holds queries and LOGIN back while the client has too much unread.
    func noteBacklog() {
        outbox.noteBacklog(nowMs: gateway.lane.now)
        guard outbox.isBehind else { return }
        requests.hold()
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
            address: PeerAddress(account.address),
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
        let areDone = requests.areDone(ignoringPreviews: ending == .sessionClosed)
        // Do not wait for a client that has stopped reading.
        let isWaitedFor = ending == .inputEnded || !outbox.isBehind
        guard areDone || !isWaitedFor else { return }
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

    // MARK: - Pushes

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

    /// Sends the push in the form that this client reads; holds it back during LOGIN.
    ///
    /// - Returns: whether there was something to send.
    @discardableResult
    func push<Content>(_ push: inout EncodedPush<Content>) -> Bool {
        outbox.push(&push, for: account.capabilities)
    }

    // MARK: - Deadlines

    private var situation: Deadlines.Situation {
        Deadlines.Situation(
            phase: requests.phase,
            isStranger: caller == nil,
            stalledAtMs: outbox.stalledAtMs
        )
    }

    /// Sets the session's one timer to its nearest deadline.
    func setTimer() {
        if let deadline = deadlines.timer(in: situation) { setTimer(at: deadline) }
    }

    private func setTimer(at deadline: Int64) {
        // The timer does not keep the session, and nothing cancels one that is set after the close.
        guard requests.phase != .closed else { return }
        if let timer { gateway.lane.cancel(timer) }
        let delay = max(1, deadline - gateway.lane.now)
        timer = gateway.lane.schedule(after: .milliseconds(delay)) { [unowned self] in
            timerFired()
        }
    }

    private func timerFired() {
        timer = nil
        guard requests.phase != .closed, !connection.isClosing else { return }
        outbox.noteBacklog(nowMs: gateway.lane.now)
        if outbox.isBehind { requests.hold() }
        switch deadlines.timerFired(in: situation, at: gateway.lane.now) {
        case .setTimer(let deadline): setTimer(at: deadline)
        case .closeSlowReader: outbox.closeSlowReader()
        case .close: close(reason: "a deadline passed in phase \(requests.phase)")
        }
    }
}
