import CEpoll
import Glibc

/// Handles the output of connections. During a round, the lane collects the output in its buffer.
/// At the end of the round, it sends the output. Bytes that a socket does not accept become the
/// backlog of its connection.
extension Lane {
    /// The size from which output is sent at once instead of being collected.
    private static let directBytes = 64 * 1024

    func collect(_ bytes: UnsafeRawBufferPointer, for connection: Connection) {
        if bytes.count >= Self.directBytes {
            flush(connection)
            if let layers = connection.layers {
                return send(bytes, through: layers, to: connection)
            }
            if connection.backlog == nil, connection.phase != .closed {
                sendDirectly(bytes, to: connection)
                return
            }
        }
        if connection.backlog == nil, outputUsed + bytes.count > Self.outputCapacity { flushAll() }
        if connection.phase == .closed { return }
        if let backlog = connection.backlog {
            guard let layers = connection.layers else { return backlog.append(bytes) }
            // The backlog contains only bytes that have passed the layers, so pass these bytes
            // through them too.
            flush(connection)
            return send(bytes, through: layers, to: connection)
        }
        append(bytes, for: connection)
        if Int(connection.collectedBytes) >= Self.directBytes { flush(connection) }
    }

    private func append(_ bytes: UnsafeRawBufferPointer, for connection: Connection) {
        guard let source = bytes.baseAddress else { return }
        precondition(outputUsed + bytes.count <= Self.outputCapacity, "the output buffer is full")
        (outputBuffer + outputUsed).copyMemory(from: source, byteCount: bytes.count)
        let last = Int(connection.lastSegment)
        if last >= 0, segments[last].start + segments[last].count == outputUsed {
            segments[last].count += bytes.count
        } else {
            let fresh = Int32(segments.count)
            segments.append(Segment(start: outputUsed, count: bytes.count, next: -1))
            if last >= 0 { segments[last].next = fresh } else { connection.firstSegment = fresh }
            connection.lastSegment = fresh
        }
        outputUsed += bytes.count
        connection.collectedBytes += Int32(bytes.count)
        if !connection.isDirty {
            connection.isDirty = true
            dirty.append(connection)
            postRound()
        }
    }

    func flushAll() {
        let writers = dirty
        dirty.removeAll(keepingCapacity: true)
        for connection in writers {
            connection.isDirty = false
            flush(connection)
        }
        outputUsed = 0
        segments.removeAll(keepingCapacity: true)
    }

    /// Sends the collected output. Bytes that the socket does not accept become the backlog.
    func flush(_ connection: Connection) {
        var segment = connection.firstSegment
        connection.firstSegment = -1
        connection.lastSegment = -1
        connection.collectedBytes = 0
        if let layers = connection.layers {
            return flush(from: segment, through: layers, to: connection)
        }
        while segment >= 0, connection.phase != .closed {
            // One call sends up to 64 pieces. If many connections have written in turn, more calls
            // are needed.
            withUnsafeTemporaryAllocation(of: iovec.self, capacity: 64) { pieces in
                var count = 0
                while segment >= 0, count < pieces.count {
                    let piece = segments[Int(segment)]
                    pieces.initializeElement(
                        at: count,
                        to: iovec(
                            iov_base: outputBuffer + piece.start,
                            iov_len: piece.count
                        )
                    )
                    count += 1
                    segment = piece.next
                }
                send(UnsafeMutableBufferPointer(rebasing: pieces[..<count]), to: connection)
            }
        }
        if connection.phase == .flushing, connection.backlog == nil { endOutput(connection) }
    }

    private func send(_ pieces: UnsafeMutableBufferPointer<iovec>, to connection: Connection) {
        var sent = 0
        if connection.backlog == nil {
            var message = msghdr()
            message.msg_iov = pieces.baseAddress
            message.msg_iovlen = pieces.count
            sent = sendmsg(connection.descriptor, &message, noSignal)
            guard let taken = accepted(sent, by: connection) else { return }
            sent = taken
        }
        for piece in pieces {
            let skipped = min(sent, piece.iov_len)
            sent -= skipped
            keep(
                UnsafeRawBufferPointer(
                    start: piece.iov_base + skipped,
                    count: piece.iov_len - skipped
                ),
                for: connection
            )
        }
    }

    func sendDirectly(_ bytes: UnsafeRawBufferPointer, to connection: Connection) {
        guard let sent = send(bytes, to: connection) else { return }
        keep(UnsafeRawBufferPointer(rebasing: bytes[sent...]), for: connection)
    }

    /// Returns the number of bytes sent. Returns nil if an error has closed the connection.
    private func send(_ bytes: UnsafeRawBufferPointer, to connection: Connection) -> Int? {
        let sent = Glibc.send(connection.descriptor, bytes.baseAddress, bytes.count, noSignal)
        return accepted(sent, by: connection)
    }

    func sendBacklog(_ connection: Connection) {
        guard let backlog = connection.backlog else {
            return watch(connection, connection.watched & ~EPOLLOUT.rawValue)
        }
        guard let sent = send(backlog.bytes, to: connection) else { return }
        backlog.dropFirst(sent)
        guard backlog.isEmpty else { return }
        connection.backlog = nil
        watch(connection, connection.watched & ~EPOLLOUT.rawValue)
        if connection.phase == .flushing {
            endOutput(connection)
        } else {
            connection.delegate?.connectionDrained(connection)
        }
    }

    /// Converts the result of a send to the number of bytes sent. On an error, closes the
    /// connection and returns nil.
    private func accepted(_ result: Int, by connection: Connection) -> Int? {
        if result >= 0 { return result }
        if errno == EAGAIN || errno == EINTR { return 0 }
        retire(connection, connection.farewell?.reason ?? .reset(errno))
        return nil
    }

    func keep(_ bytes: UnsafeRawBufferPointer, for connection: Connection) {
        if bytes.isEmpty { return }
        if let backlog = connection.backlog { return backlog.append(bytes) }
        connection.backlog = ByteStore(bytes)
        watch(connection, connection.watched | EPOLLOUT.rawValue)
    }
}

/// The flag with which a write to a closed peer returns an error instead of raising SIGPIPE.
private let noSignal = Int32(MSG_NOSIGNAL)
