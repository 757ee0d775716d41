import CEpoll
import Glibc
import TambourQueues

/// Handles the turns of connections. In a turn, the lane reads the connection's input and presents
/// it to the delegate.
extension Lane {
    private static let poison: UInt8 = 0xDB
    /// The maximum number of new sockets that a lane opens in one round. It prevents many new
    /// sockets from delaying other connections.
    private static let arrivalsPerRound = 16
    /// The work charged for a low-priority turn, even if no bytes are read.
    private static let workPerTurn = 256

    /// Gives turns to the connections of the first `count` events. Then serves waiting connections,
    /// new sockets and low-priority connections, in this order.
    func giveTurns(to count: Int) {
        // Serve only the connections that wait now. If a connection ends its turn early, it moves
        // to the end of its queue and waits for the next round.
        let waiting = turns.count
        for position in 0..<count {
            let event = events[position]
            guard let pointer = event.data.ptr else { continue }
            // The connection may have been closed earlier in this batch. `retired` keeps the object
            // alive until the round ends.
            Unmanaged<Connection>.fromOpaque(pointer)._withUnsafeGuaranteedRef {
                serve($0, event.events)
            }
        }
        for _ in 0..<waiting {
            if let connection = turns.popFirst() { giveTurn(to: connection) }
        }
        for _ in 0..<Self.arrivalsPerRound {
            guard let arrival = arrivals.popFirst() else { break }
            welcome(arrival)
        }
        let end = roundWork + lowPriority.workPerRound
        var left = lowPriorityTurns.count
        while left > 0, roundWork < end, let connection = lowPriorityTurns.popFirst() {
            left -= 1
            charge(Self.workPerTurn)
            giveTurn(to: connection)
        }
    }

    private func giveTurn(to connection: Connection) {
        connection.awaitsTurn = false
        // A paused connection gets its turn when it resumes.
        guard connection.phase == .open, !connection.isReadingPaused else { return }
        if connection.hasEndedTurn, let kept = connection.input {
            presentKept(kept, to: connection)
            if connection.phase == .open { connection.delegate?.connectionRoundEnded(connection) }
            tellEnd(of: connection)
        } else if !connection.hasInputEnded {
            readOnce(connection)
        }
        if !connection.awaitsTurn { watch(connection, connection.watched | EPOLLIN.rawValue) }
    }

    private func awaitTurn(_ connection: Connection) {
        guard !connection.awaitsTurn else { return }
        connection.awaitsTurn = true
        if connection.isServedLast {
            lowPriorityTurns.append(connection)
        } else {
            turns.append(connection)
        }
    }

    /// Adds to the work of the current round.
    func charge(_ work: Int) {
        roundWork += work
    }

    private func serve(_ connection: Connection, _ ready: UInt32) {
        if connection.phase == .closed { return }
        let failed = ready & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
        if connection.hasInputEnded {
            if failed { fail(connection) }
        } else if ready & EPOLLIN.rawValue != 0 || failed {
            if connection.awaitsTurn, connection.phase == .open {
                // Stop watching for input only when input arrives. A short wait therefore costs no
                // system call.
                watch(connection, connection.watched & ~EPOLLIN.rawValue)
            } else if !connection.isReadingPaused || connection.isClosing {
                if connection.isServedLast, connection.phase == .open {
                    awaitTurn(connection)
                } else {
                    readOnce(connection)
                }
            } else if failed {
                fail(connection)
            } else {
                // Stop watching for input only when input arrives. A short pause therefore costs no
                // system call.
                watch(connection, connection.watched & ~EPOLLIN.rawValue)
            }
        }
        if ready & EPOLLOUT.rawValue != 0, connection.phase != .closed { sendBacklog(connection) }
    }

    /// Closes a connection whose socket reports an error or a hang-up.
    private func fail(_ connection: Connection) {
        let error = socketError(of: connection.descriptor)
        let reason: CloseReason = error == 0 ? .peerClosed : .reset(error)
        retire(connection, connection.farewell?.reason ?? reason)
    }

    // MARK: Input

    /// Reads once, so that a busy peer does not delay other connections.
    private func readOnce(_ connection: Connection) {
        guard connection.phase == .open else { return discardOnce(connection) }
        arrivalUs = roundTimeUs
        if let layers = connection.layers { return readOnce(connection, through: layers) }
        if let waiting = connection.input, waiting.count > Self.readCapacity / 2 {
            // The kept bytes fill more than half of the lane's buffer. Read into the connection's
            // own store.
            let count = read(connection, into: waiting.room(Self.readCapacity))
            if count == 0 { return }
            waiting.grew(by: count)
            waiting.arrivalUs = arrivalUs
            presentKept(waiting, to: connection)
        } else {
            var used = 0
            if let waiting = connection.input {
                used = waiting.count
                readBuffer.copyMemory(from: waiting.bytes)
            }
            let limit = connection.isServedLast ? lowPriority.readBytes : Self.readCapacity
            let end = min(Self.readCapacity, used + limit)
            let count = read(connection, into: .init(rebasing: readBuffer[used..<end]))
            if count == 0 { return }
            presentFromBuffer(used + count, to: connection)
        }
        if connection.phase == .open { connection.delegate?.connectionRoundEnded(connection) }
    }

    /// Returns the number of bytes read. Returns zero when there are no bytes to present.
    func read(_ connection: Connection, into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = Glibc.read(connection.descriptor, room.baseAddress, room.count)
        if count > 0 { return count }
        if count == 0 {
            endInput(connection)
        } else if errno != EAGAIN && errno != EINTR {
            retire(connection, connection.farewell?.reason ?? .reset(errno))
        }
        return 0
    }

    /// Records that the peer has closed its side. Pending output is still sent.
    func endInput(_ connection: Connection) {
        connection.hasInputEnded = true
        switch connection.phase {
        case .open:
            // If bytes are left from a pause or an ended turn, present them first.
            if connection.isResuming || connection.hasEndedTurn {
                connection.isEndUntold = true
            } else {
                connection.delegate?.connectionInputEnded(connection)
            }
        case .lingering: retire(connection, connection.farewell?.reason ?? .peerClosed)
        case .flushing, .closed: break
        }
        watch(connection, connection.watched)
    }

    private func discardOnce(_ connection: Connection) {
        _ = read(connection, into: readBuffer)
    }

    private func presentFromBuffer(_ count: Int, to connection: Connection) {
        let bytes = UnsafeMutableRawBufferPointer(rebasing: readBuffer[..<count])
        let consumed = present(UnsafeRawBufferPointer(bytes), to: connection)
        if consumed == count || connection.isClosing {
            connection.input = nil
        } else {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
            if let kept = connection.input {
                kept.replace(with: rest)
                kept.arrivalUs = arrivalUs
            } else {
                connection.input = ByteStore(rest, arrivalUs: arrivalUs)
            }
            if connection.hasEndedTurn { awaitTurn(connection) }
        }
        if poisons { bytes.initializeMemory(as: UInt8.self, repeating: Self.poison) }
    }

    func presentKept(_ kept: ByteStore, to connection: Connection) {
        arrivalUs = kept.arrivalUs
        let count = kept.count
        let consumed = present(kept.bytes, to: connection)
        if consumed == count || connection.isClosing {
            connection.input = nil
        } else {
            if connection.hasEndedTurn { awaitTurn(connection) }
            if connection.hasEndedTurn, !poisons {
                // Do not copy the rest, because it is presented again soon.
                return kept.dropFirst(consumed)
            }
            guard consumed > 0 || poisons else { return }
            // Use a new store, so that a large store is freed as soon as its frame is complete.
            connection.input = ByteStore(
                .init(rebasing: kept.bytes[consumed...]),
                arrivalUs: kept.arrivalUs
            )
        }
        if poisons { kept.overwrite(with: Self.poison) }
    }

    private func present(_ bytes: UnsafeRawBufferPointer, to connection: Connection) -> Int {
        connection.hasEndedTurn = false
        guard let delegate = connection.delegate else { return bytes.count }
        let consumed = delegate.connection(connection, received: bytes)
        precondition(0...bytes.count ~= consumed, "a delegate consumed what it was not given")
        if consumed == bytes.count { connection.hasEndedTurn = false }
        return consumed
    }

    func resume(_ connection: Connection) {
        guard connection.phase == .open, !connection.isResuming else { return }
        connection.isResuming = true
        resumed.append(connection)
        postRound()
    }

    /// Presents kept bytes to resumed connections. This runs in a separate round, because the
    /// current round may be delivering replies and pushes that must be written first.
    func presentResumed() {
        // Connections that resume while this runs get their turns in the next round.
        let resuming = resumed
        resumed.removeAll(keepingCapacity: true)
        for connection in resuming { presentAgain(connection) }
    }

    private func presentAgain(_ connection: Connection) {
        connection.isResuming = false
        guard connection.phase == .open, !connection.isReadingPaused else { return }
        if connection.isServedLast, connection.input != nil {
            // Do not serve a low-priority connection at once, because many may resume together. It
            // waits for its turn.
            connection.hasEndedTurn = true
            return awaitTurn(connection)
        }
        watch(connection, connection.watched | EPOLLIN.rawValue)
        if let kept = connection.input {
            presentKept(kept, to: connection)
            if connection.phase == .open { connection.delegate?.connectionRoundEnded(connection) }
        }
        tellEnd(of: connection)
    }

    /// Reports the end of the input, if all bytes before the end have been presented.
    private func tellEnd(of connection: Connection) {
        guard connection.isEndUntold, connection.phase == .open, !connection.isReadingPaused,
            !connection.hasEndedTurn
        else { return }
        connection.isEndUntold = false
        connection.delegate?.connectionInputEnded(connection)
    }
}
