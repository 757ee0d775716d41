import Logging
import Synchronization
import TambourEvents
import TambourFraming
import TambourMessenger
import TambourNet
import TambourProtocol

/// The protocol side of one connection. It reads frames in turns, keeps deadlines, and closes the
/// connection. `SessionRequests` handles the requests, `SessionAccount` the account, and `Outbox`
/// the output.
///
/// `@unchecked Sendable`: other threads only hold references to a session. The session's state is
/// accessed only on its lane. `Connection` checks this on every write.
final class Session: ConnectionDelegate, @unchecked Sendable {
    enum Ending {
        /// The client has closed its side.
        case inputEnded
        case serverStops
        /// The session's token was revoked.
        case sessionClosed
    }

    unowned let gateway: LaneGateway
    let shared: SharedServices
    let requests: SessionRequests
    let account: SessionAccount
    var reader: PacketCodec.Reader
    var outbox: Outbox
    var deadlines: Deadlines
    /// Whether the connection is closed or closing. The store's readers check this value before
    /// they run a query for the session.
    let isGone = Atomic(false)
    /// The reason why the connection closes after the requests in flight. Once it is set, the
    /// session stops reading.
    var ending: Ending?
    /// Whether the session's token is revoked. If so, the session refuses queued requests, and the
    /// engine refuses commands that are already in flight.
    var isTokenDead = false
    private var timer: TimerToken?

    /// - Parameter dialect: the dialect of the listener; nil to detect the client's dialect.
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
        deadlines.opened(at: gateway.lane.now, isOpening: connection.isOpening)
        account.connected(from: connection.peer)
        requests.connected(from: PeerAddress(peer: connection.peer))
        setStranger(true)
        shared.metrics.connectionsOpened.add(1)
        gateway.opened(self)
        joinStrangers(as: .silent)
        setTimer()
    }

    func connectionMayOpenLayers(_ connection: Connection) -> Bool {
        let address = PeerAddress(account.address)
        guard shared.rates.take(from: .handshake, of: .address(address)) != nil else {
            return true
        }
        shared.metrics.countHandshake(failed: "rate")
        connection.close(.local("too many handshakes from this address"))
        return false
    }

    func connectionLayersOpened(_ connection: Connection) {
        deadlines.layersOpened(at: gateway.lane.now)
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
            // The frame is too long for a stranger, but not for a logged-in client. Wait for the
            // LOGIN in flight, which may be accepted.
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

    /// Returns whether a stranger's frame must stay unread until the LOGIN in flight is answered.
    ///
    /// The outcome of the LOGIN decides the limit of an inflated payload, and what an opcode means
    /// that the dialects use differently. A stranger has one LOGIN at a time, and later LOGINs stay
    /// in the kernel's buffer.
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
        // The session still answers complete requests, and drops an incomplete frame.
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
        // Count the close last. An observer of the count then knows that the user's last-seen time
        // is already queued for the store.
        shared.metrics.connectionsClosed.add(1)
        shared.logger.debug(
            "connection closed",
            metadata: ["connection": "\(connection.id)", "reason": "\(reason)"]
        )
    }

    /// Updates the backlog. Holds back queries and LOGINs while the client is behind.
    func noteBacklog() {
        outbox.noteBacklog(nowMs: gateway.lane.now)
        guard outbox.isBehind else { return }
        requests.hold()
        setTimer()
    }

    /// Sets the connection's priority and its limit of waiting reply bytes. The lane serves
    /// strangers after logged-in connections. The limit is lower for strangers.
    func setStranger(_ isStranger: Bool) {
        connection.isLowPriority = isStranger
        outbox.setStranger(isStranger)
    }

    // MARK: - Closing

    /// Counts this connection as a stranger. Closes other strangers if the address has too many.
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

    /// Closes the connection to free its descriptor, unless the client has logged in meanwhile.
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

    /// Closes the connection because the server stops. Requests in flight are answered first.
    func closeForStop() {
        connection.pauseReading()
        end(.serverStops)
    }

    /// Ends the session because its token was revoked. Requests in flight are still answered.
    func tokenDied() {
        isTokenDead = true
        // Stop reading. Otherwise a peer that always has a request in flight would stay connected
        // for ever.
        connection.pauseReading()
        end(.sessionClosed)
    }

    /// Closes the connection when the requests in flight are answered.
    private func end(_ ending: Ending) {
        self.ending = self.ending ?? ending
        closeIfEnded()
    }

    func closeIfEnded() {
        guard let ending else { return }
        // A session with a revoked token does not wait for a link preview. A preview may take long,
        // and the session would still receive pushes in the meantime.
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

    /// Sends a message with the read counters of its receiver. The push is not compressed, because
    /// no other receiver gets the same bytes.
    func push(_ message: NotifMessage, to reader: ReadCounters.Reader) {
        var message = message
        message.unread = reader.unread
        message.mark = reader.mark
        message.ttl = false
        // One client treats a push with `prevMessageID` as an edit, so move the field into the
        // message. There it causes no problem for any client.
        message.message.prevMessageID = message.prevMessageID
        message.prevMessageID = nil
        var push = EncodedPush(Push.notifMessage(message), limits: limits, isCompressed: false)
        self.push(&push)
    }

    /// Sends the push in the form that this client reads. Holds the push back during a LOGIN.
    ///
    /// - Returns: whether there is a packet for this client.
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

    /// Sets the session's only timer to its nearest deadline.
    func setTimer() {
        if let deadline = deadlines.timer(in: situation) { setTimer(at: deadline) }
    }

    private func setTimer(at deadline: Int64) {
        // Set no timer after the close, because nothing would cancel it, and the timer does not
        // retain the session.
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
