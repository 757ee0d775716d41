import CEpoll
import Dispatch
import Glibc

/// A serial queue that serves many sockets: one epoll descriptor under one dispatch source.
///
/// The source's handler polls epoll once, serves the ready sockets and returns, so that timers,
/// mailboxes and other blocks of the queue get their turn. One such call is a *round*: bytes written
/// during a round are sent at its end, with one system call per connection, and connections closed
/// during a round are reported at its end.
///
/// A connection gets one *turn* a round: one read, or the bytes it left unconsumed when it ended its
/// turn early. Connections of low priority get theirs after all others, and only as many of them as
/// `LowPriority.workPerRound` allows.
///
/// `@unchecked Sendable`: every stored property but the constants is accessed on `queue` only, which
/// `preconditionOnLane` checks; `start`, `stop` and `adopt` only post to it.
package final class Lane: @unchecked Sendable {
    private static let eventCapacity: Int32 = 256
    private static let readCapacity = 64 * 1024
    private static let outputCapacity = 256 * 1024
    /// Output of this size or more is sent at once instead of being collected.
    private static let directBytes = 64 * 1024
    private static let poison: UInt8 = 0xDB
    /// How many new sockets a lane takes over in one round, so that a crowd does not delay the others.
    private static let arrivalsPerRound = 16
    /// How many timers fire in one round; further due timers fire in the next.
    private static let timersPerRound = 64
    /// The work charged for a low-priority turn, even if nothing is read.
    private static let workPerTurn = 256

    /// Debug builds overwrite bytes after showing them to a delegate, so that a test notices a delegate
    /// that keeps them.
    package static var poisonsByDefault: Bool {
        #if DEBUG
            true
        #else
            false
        #endif
    }

    /// The share of connections of low priority.
    package struct LowPriority: Sendable {
        /// The most bytes read from one of them at once.
        package var readBytes: Int
        /// After this much work no further turn starts in the same round; see `Connection.charge`.
        package var workPerRound: Int

        package init(readBytes: Int = 64 * 1024, workPerRound: Int = 64 * 1024) {
            self.readBytes = max(1, readBytes)
            self.workPerRound = max(1, workPerRound)
        }
    }

    /// One stretch of the output buffer, written by one connection.
    private struct Segment {
        var start: Int
        var count: Int
        var next: Int32
    }

    package let index: Int
    package let queue: SerialQueue

    private let timerTickMs: Int64
    private let poisons: Bool
    private let lowPriority: LowPriority
    private let epoll: Int32
    private let events: UnsafeMutableBufferPointer<epoll_event>
    private let readBuffer: UnsafeMutableRawBufferPointer
    private let outputBuffer: UnsafeMutableRawPointer

    private var source: (any DispatchSourceRead)?
    private var alarm: Alarm?
    private var isStopped = false

    private var connections: [Connection] = []
    private var timers = TimerQueue<() -> Void>()
    private var armedForMs = Int64.max

    private var isInRound = false
    private var isRoundPosted = false
    private var roundTimeUs: Int64 = 0
    /// When the bytes being presented were read from the socket; microseconds.
    private(set) var arrivalUs: Int64 = 0
    /// The work that delegates have charged in this round.
    private var roundWork = 0

    private var arrivals = FIFO<Arrival>()
    private var turns = FIFO<Connection>()
    private var lowPriorityTurns = FIFO<Connection>()
    private var hasTurns: Bool {
        !turns.isEmpty || !lowPriorityTurns.isEmpty || !arrivals.isEmpty
    }

    private var outputUsed = 0
    private var segments: [Segment] = []
    private var dirty: [Connection] = []
    private var resumed: [Connection] = []
    private var retired: [(connection: Connection, reason: CloseReason)] = []

    /// - Parameters:
    ///   - label: The queue's label, for debuggers.
    ///   - timerTick: Deadlines are rounded up to a multiple of this, so that timers share wake-ups.
    ///   - lowPriority: The share of connections of low priority.
    ///   - poisonAfterCallback: Whether bytes are overwritten after they were shown to a delegate.
    ///   - simulated: Replaces Dispatch; it must call `serve` when sockets are ready.
    package init(
        index: Int,
        label: String,
        timerTick: Duration = .milliseconds(10),
        lowPriority: LowPriority = LowPriority(),
        poisonAfterCallback: Bool = Lane.poisonsByDefault,
        simulated: (any SimulatedScheduler)? = nil
    ) {
        self.index = index
        queue = SerialQueue(label: label, simulated: simulated)
        timerTickMs = max(1, timerTick.wholeMilliseconds)
        poisons = poisonAfterCallback
        self.lowPriority = lowPriority
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        precondition(epoll >= 0, "no epoll descriptor: errno \(errno)")
        events = .allocate(capacity: Int(Self.eventCapacity))
        events.initialize(repeating: epoll_event())
        readBuffer = .allocate(byteCount: Self.readCapacity, alignment: 64)
        outputBuffer = .allocate(byteCount: Self.outputCapacity, alignment: 64)
    }

    deinit {
        events.deallocate()
        readBuffer.deallocate()
        outputBuffer.deallocate()
        Glibc.close(epoll)
    }

    /// Stops the program when the caller is not on this lane.
    @inline(__always)
    package func preconditionOnLane() {
        queue.preconditionOnQueue()
    }

    // MARK: Life

    /// Starts serving, including sockets adopted earlier.
    ///
    /// A started lane lives until `stop`.
    package func start() {
        queue.async { self.startOnLane() }
    }

    /// Closes every connection, notifies their delegates and cancels the queue's sources.
    ///
    /// Sockets adopted later are closed without notice. `completion` is called on the lane at the end.
    package func stop(completion: (@Sendable () -> Void)? = nil) {
        queue.async {
            self.stopOnLane()
            completion?()
        }
    }

    /// Takes over a connected socket; the delegate is notified on the lane.
    ///
    /// A socket that epoll refuses is closed, and its delegate is not notified.
    package func adopt(
        fileDescriptor: Int32,
        peer: String,
        delegate: sending any ConnectionDelegate
    ) {
        let arrival = Arrival(descriptor: fileDescriptor, peer: peer, delegate: delegate)
        queue.async {
            self.arrivals.append(arrival)
            self.postRound()
        }
    }

    /// The number of connections; on the lane only.
    package var connectionCount: Int {
        preconditionOnLane()
        return connections.count
    }

    /// Carries a socket and its delegate to their lane.
    ///
    /// `@unchecked Sendable`: `sending` gave the delegate away, and only the lane accesses it.
    private final class Arrival: @unchecked Sendable {
        let descriptor: Int32
        let peer: String
        let delegate: any ConnectionDelegate

        init(descriptor: Int32, peer: String, delegate: sending any ConnectionDelegate) {
            self.descriptor = descriptor
            self.peer = peer
            self.delegate = delegate
        }
    }

    private func startOnLane() {
        guard alarm == nil, !isStopped else { return }
        if !queue.isSimulated {
            let source = DispatchSource.makeReadSource(fileDescriptor: epoll, queue: queue.dispatch)
            source.setEventHandler { self.serve() }
            // The handler retains the lane until the source is cancelled.
            source.setCancelHandler { withExtendedLifetime(self) {} }
            self.source = source
            source.activate()
        }
        alarm = Alarm(on: queue) { [unowned self] in fireTimers() }
        armTimer()
    }

    private func stopOnLane() {
        guard !isStopped else { return }
        round {
            // Sockets that arrived before the stop are opened first, so that their delegates see the close.
            while let arrival = arrivals.popFirst() { welcome(arrival) }
            isStopped = true
            for connection in connections.reversed() { retire(connection, .laneStopped) }
        }
        timers = TimerQueue()
        turns = FIFO()
        lowPriorityTurns = FIFO()
        source?.cancel()
        source = nil
        alarm?.cancel()
        alarm = nil
    }

    private func welcome(_ arrival: Arrival) {
        let connection = Connection(
            lane: self,
            descriptor: arrival.descriptor,
            peer: arrival.peer,
            delegate: arrival.delegate
        )
        makeNonBlocking(arrival.descriptor)
        connection.watched = EPOLLIN.rawValue
        guard !isStopped, control(EPOLL_CTL_ADD, connection) else {
            // Its delegate was never told of the connection, so do not report its close either.
            Glibc.close(arrival.descriptor)
            return
        }
        connection.listIndex = Int32(connections.count)
        connections.append(connection)
        arrival.delegate.connectionOpened(connection)
    }

    // MARK: Rounds

    /// Runs `body` as a round, or as part of the current one.
    ///
    /// Blocks of the queue that write to many connections use a round to send at its end; bytes written
    /// outside of one are sent in a round that is posted for them.
    package func round<R>(_ body: () throws -> R) rethrows -> R {
        preconditionOnLane()
        if isInRound { return try body() }
        isInRound = true
        roundTimeUs = queue.nowUs
        roundWork = 0
        defer { endRound() }
        return try body()
    }

    /// Milliseconds of a monotonic clock; constant during a round.
    package var now: Int64 {
        preconditionOnLane()
        return isInRound ? roundTimeUs / 1000 : queue.nowMs
    }

    private func endRound() {
        // A delegate told of its close may write to other connections or close them.
        while !dirty.isEmpty || !retired.isEmpty {
            flushAll()
            let gone = retired
            retired.removeAll()
            for (connection, reason) in gone { reportClosed(connection, reason) }
        }
        armTimer()
        isInRound = false
        if !resumed.isEmpty || hasTurns { postRound() }
    }

    /// Ensures that a round ends after this, to send and report what was recorded.
    private func postRound() {
        guard !isInRound, !isRoundPosted else { return }
        isRoundPosted = true
        queue.async {
            self.isRoundPosted = false
            self.round {
                self.presentResumed()
                // Ready sockets get their turns between those of waiting connections.
                if self.hasTurns { self.giveTurns(to: self.poll()) }
            }
        }
    }

    /// Serves the ready sockets; on the lane only.
    package func serve() {
        let count = poll()
        guard count > 0 || hasTurns else { return }
        round { giveTurns(to: count) }
    }

    /// Polls epoll without waiting.
    ///
    /// - Returns: how many of `events` are filled in.
    private func poll() -> Int {
        max(0, Int(epoll_wait(epoll, events.baseAddress, Self.eventCapacity, 0)))
    }

    /// Gives a turn to the first `count` of `events`, then to waiting connections.
    private func giveTurns(to count: Int) {
        // A connection that ends its turn early goes to the end of its queue, for the next round.
        let waiting = turns.count
        for position in 0..<count {
            let event = events[position]
            guard let pointer = event.data.ptr else { continue }
            // `retired` keeps a connection that was closed earlier in this batch until the round ends.
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
        if connection.isLowPriority {
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
                // Stop watching only now, so that a short wait costs no system call.
                watch(connection, connection.watched & ~EPOLLIN.rawValue)
            } else if !connection.isReadingPaused || connection.isClosing {
                if connection.isLowPriority, connection.phase == .open {
                    awaitTurn(connection)
                } else {
                    readOnce(connection)
                }
            } else if failed {
                fail(connection)
            } else {
                // Stop watching only now, so that a short pause costs no system call.
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

    // MARK: Timers

    /// Runs `body` on the lane once `delay` has passed, rounded up to the lane's tick; on the lane only.
    package func schedule(after delay: Duration, _ body: @escaping () -> Void) -> TimerToken {
        let wanted = now + max(1, delay.wholeMilliseconds)
        let deadline = (wanted + timerTickMs - 1) / timerTickMs * timerTickMs
        let token = timers.schedule(atMs: deadline, body)
        if !isInRound { armTimer() }
        return token
    }

    /// Cancels a timer; does nothing if it has fired.
    package func cancel(_ token: TimerToken) {
        preconditionOnLane()
        timers.cancel(token)
    }

    private func fireTimers() {
        armedForMs = .max
        round {
            var left = Self.timersPerRound
            while left > 0, let body = timers.step(nowMs: now) {
                left -= 1
                body()
            }
        }
    }

    private func armTimer() {
        guard let alarm, let next = timers.nextDeadlineMs, next < armedForMs else { return }
        armedForMs = next
        alarm.set(atMs: next)
    }

    // MARK: Input

    /// Reads once, so that a busy peer does not keep the others waiting.
    private func readOnce(_ connection: Connection) {
        guard connection.phase == .open else { return discardOnce(connection) }
        arrivalUs = roundTimeUs
        if let waiting = connection.input, waiting.count > Self.readCapacity / 2 {
            // A frame longer than half the buffer is read into its own store.
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
            let limit = connection.isLowPriority ? lowPriority.readBytes : Self.readCapacity
            let end = min(Self.readCapacity, used + limit)
            let count = read(connection, into: .init(rebasing: readBuffer[used..<end]))
            if count == 0 { return }
            presentFromBuffer(used + count, to: connection)
        }
        if connection.phase == .open { connection.delegate?.connectionRoundEnded(connection) }
    }

    /// The number of bytes read; zero when there is nothing to present.
    private func read(_ connection: Connection, into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = Glibc.read(connection.descriptor, room.baseAddress, room.count)
        if count > 0 { return count }
        if count == 0 {
            endInput(connection)
        } else if errno != EAGAIN && errno != EINTR {
            retire(connection, connection.farewell?.reason ?? .reset(errno))
        }
        return 0
    }

    /// Notes that the peer has closed its side; pending output is still sent.
    private func endInput(_ connection: Connection) {
        connection.hasInputEnded = true
        switch connection.phase {
        case .open:
            // Bytes left over from a pause or an ended turn are presented first.
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

    private func presentKept(_ kept: ByteStore, to connection: Connection) {
        arrivalUs = kept.arrivalUs
        let count = kept.count
        let consumed = present(kept.bytes, to: connection)
        if consumed == count || connection.isClosing {
            connection.input = nil
        } else {
            if connection.hasEndedTurn { awaitTurn(connection) }
            if connection.hasEndedTurn, !poisons {
                // The rest is presented soon; do not move it for each turn.
                return kept.dropFirst(consumed)
            }
            guard consumed > 0 || poisons else { return }
            // A fresh store, so that a large one is freed as soon as its frame is complete.
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

    /// Presents kept bytes to connections that resumed; in a round of its own, because the current one may
    /// be delivering replies and pushes that have to come first.
    private func presentResumed() {
        // Connections that resume meanwhile get their turn in the next round.
        let resuming = resumed
        resumed.removeAll(keepingCapacity: true)
        for connection in resuming { presentAgain(connection) }
    }

    private func presentAgain(_ connection: Connection) {
        connection.isResuming = false
        guard connection.phase == .open, !connection.isReadingPaused else { return }
        if connection.isLowPriority, connection.input != nil {
            // Connections of low priority take turns even when many resume together.
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

    /// Reports the end of the input once all bytes before it have been presented.
    private func tellEnd(of connection: Connection) {
        guard connection.isEndUntold, connection.phase == .open, !connection.isReadingPaused,
            !connection.hasEndedTurn
        else { return }
        connection.isEndUntold = false
        connection.delegate?.connectionInputEnded(connection)
    }

    // MARK: Output

    func collect(_ bytes: UnsafeRawBufferPointer, for connection: Connection) {
        if bytes.count >= Self.directBytes {
            flush(connection)
            if connection.backlog == nil, connection.phase != .closed {
                sendDirectly(bytes, to: connection)
                return
            }
        }
        if connection.backlog == nil, outputUsed + bytes.count > Self.outputCapacity { flushAll() }
        if connection.phase == .closed { return }
        if let backlog = connection.backlog { return backlog.append(bytes) }
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

    private func flushAll() {
        let writers = dirty
        dirty.removeAll(keepingCapacity: true)
        for connection in writers {
            connection.isDirty = false
            flush(connection)
        }
        outputUsed = 0
        segments.removeAll(keepingCapacity: true)
    }

    /// Sends the collected output; bytes that the socket does not take become the backlog.
    private func flush(_ connection: Connection) {
        var segment = connection.firstSegment
        connection.firstSegment = -1
        connection.lastSegment = -1
        connection.collectedBytes = 0
        while segment >= 0, connection.phase != .closed {
            // Up to 64 pieces in one call; many interleaved writers need more calls.
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

    private func sendDirectly(_ bytes: UnsafeRawBufferPointer, to connection: Connection) {
        let result = Glibc.send(
            connection.descriptor,
            bytes.baseAddress,
            bytes.count,
            noSignal
        )
        guard let sent = accepted(result, by: connection) else { return }
        keep(UnsafeRawBufferPointer(rebasing: bytes[sent...]), for: connection)
    }

    private func sendBacklog(_ connection: Connection) {
        guard let backlog = connection.backlog else {
            return watch(connection, connection.watched & ~EPOLLOUT.rawValue)
        }
        let bytes = backlog.bytes
        let result = Glibc.send(
            connection.descriptor,
            bytes.baseAddress,
            bytes.count,
            noSignal
        )
        guard let sent = accepted(result, by: connection) else { return }
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

    /// The number of bytes sent, from the result of a send; nil if the connection was closed for its error.
    private func accepted(_ result: Int, by connection: Connection) -> Int? {
        if result >= 0 { return result }
        if errno == EAGAIN || errno == EINTR { return 0 }
        retire(connection, connection.farewell?.reason ?? .reset(errno))
        return nil
    }

    private func keep(_ bytes: UnsafeRawBufferPointer, for connection: Connection) {
        if bytes.isEmpty { return }
        if let backlog = connection.backlog { return backlog.append(bytes) }
        connection.backlog = ByteStore(bytes)
        watch(connection, connection.watched | EPOLLOUT.rawValue)
    }

    // MARK: Ends

    /// Closes the descriptor now; the delegate is notified when the round ends.
    func retire(_ connection: Connection, _ reason: CloseReason) {
        if connection.phase == .closed { return }
        connection.phase = .closed
        retired.append((connection, reason))
        let position = Int(connection.listIndex)
        connections.swapAt(position, connections.count - 1)
        connections[position].listIndex = Int32(position)
        connections.removeLast()
        if let timer = connection.farewell?.timer { timers.cancel(timer) }
        connection.farewell = nil
        connection.backlog = nil
        connection.input = nil
        connection.collectedBytes = 0
        connection.firstSegment = -1
        connection.lastSegment = -1
        _ = control(EPOLL_CTL_DEL, connection)
        // A child process between fork and exec may hold a copy of the descriptor: shut the socket down.
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
        Glibc.close(connection.descriptor)
        postRound()
    }

    func bidFarewell(
        _ connection: Connection,
        _ reason: CloseReason,
        within limit: Duration,
        patience: Duration
    ) {
        guard connection.phase == .open else { return }
        connection.phase = .flushing
        connection.input = nil
        connection.farewell = Connection.Farewell(
            reason,
            deadlineMs: now + limit.wholeMilliseconds,
            patience: patience
        )
        limitFarewell(of: connection)
        if connection.backlog == nil, connection.firstSegment < 0 { endOutput(connection) }
        watch(connection, connection.watched | EPOLLIN.rawValue)
    }

    /// Retires the connection at its deadline, or earlier if its peer stops taking the backlog.
    private func limitFarewell(of connection: Connection) {
        guard let farewell = connection.farewell else { return }
        let left = connection.pendingOutboundBytes
        let untilDeadline = Duration.milliseconds(farewell.deadlineMs - now)
        let wait = min(farewell.patience, untilDeadline)
        farewell.timer = schedule(after: wait) { [unowned self, unowned connection] in
            // This timer has fired; do not cancel it.
            farewell.timer = nil
            if connection.phase == .flushing, connection.pendingOutboundBytes < left,
                now < farewell.deadlineMs
            {
                limitFarewell(of: connection)
            } else {
                retire(connection, farewell.reason)
            }
        }
    }

    /// Closes our side of the stream and waits for the peer to close its own.
    private func endOutput(_ connection: Connection) {
        if connection.hasInputEnded {
            return retire(connection, connection.farewell?.reason ?? .peerClosed)
        }
        connection.phase = .lingering
        shutdown(connection.descriptor, Int32(SHUT_WR))
    }

    private func reportClosed(_ connection: Connection, _ reason: CloseReason) {
        let delegate = connection.delegate
        connection.delegate = nil
        delegate?.connectionClosed(connection, reason: reason)
    }

    // MARK: Epoll

    private func watch(_ connection: Connection, _ events: UInt32) {
        // After the end of the input, level-triggered epoll would report it for ever.
        let wanted = connection.hasInputEnded ? events & ~EPOLLIN.rawValue : events
        guard wanted != connection.watched, connection.phase != .closed else { return }
        connection.watched = wanted
        if !control(EPOLL_CTL_MOD, connection) { retire(connection, .reset(errno)) }
    }

    private func control(_ operation: Int32, _ connection: Connection) -> Bool {
        var event = epoll_event()
        event.events = connection.watched
        event.data.ptr = Unmanaged.passUnretained(connection).toOpaque()
        return epoll_ctl(epoll, operation, connection.descriptor, &event) == 0
    }
}

/// Makes a closed peer an error instead of SIGPIPE.
private let noSignal = Int32(MSG_NOSIGNAL)
