import CEpoll
import Dispatch
import Glibc

/// A serial queue that serves many sockets: one epoll descriptor under one dispatch source.
///
/// The source's handler asks epoll once, serves what is ready and returns, so that timers,
/// mailboxes and other blocks of the queue get their turn. What happens between two returns is a
/// *round*: bytes written during a round leave at its end, one system call per connection, and
/// connections closed during a round are reported at its end.
///
/// A connection gets one *turn* a round: one read, or the bytes it left unconsumed when it ended its
/// turn early. Connections of low priority get theirs after all others, and only as many of them as
/// `LowPriority.workPerRound` allows.
///
/// `@unchecked Sendable`: every stored property but the constants is touched on `queue` only, which
/// `preconditionOnLane` checks; `start`, `stop` and `adopt` do no more than post to it.
package final class Lane: @unchecked Sendable {
    private static let eventCapacity: Int32 = 256
    private static let readCapacity = 64 * 1024
    private static let outputCapacity = 256 * 1024
    /// A connection's output is sent, not collected, from this size up.
    private static let directBytes = 64 * 1024
    private static let poison: UInt8 = 0xDB
    /// The number of sockets that a lane takes over in one round. The others are served between two crowds.
    private static let arrivalsPerRound = 16
    /// The number of timers that fire in one round. The others that are due fire between two crowds.
    private static let timersPerRound = 64
    /// The work of a turn of low priority in which nothing is read.
    private static let workPerTurn = 256

    /// Debug builds overwrite what a delegate was shown, so that keeping it shows up in a test.
    package static var poisonsByDefault: Bool {
        #if DEBUG
            true
        #else
            false
        #endif
    }

    /// What connections of low priority get.
    package struct LowPriority: Sendable {
        /// The bytes one of them is read at once, at most.
        package var readBytes: Int
        /// The work that starts no further turn in the same round; see `Connection.charge`.
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
    /// When the bytes at hand were read from the socket, microseconds.
    private(set) var arrivalUs: Int64 = 0
    /// What the delegates of this round have charged.
    private var roundWork = 0

    private var arrivals = TurnQueue<Arrival>()
    private var turns = TurnQueue<Connection>()
    private var lowPriorityTurns = TurnQueue<Connection>()
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
    ///   - lowPriority: What connections of low priority get.
    ///   - poisonAfterCallback: Whether the bytes shown to a delegate are overwritten afterwards.
    ///   - simulated: Runs the queue in place of Dispatch; it has to call `serve` when sockets are ready.
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

    /// Begins to serve; sockets adopted before are served from now on.
    ///
    /// A started lane lives until `stop`.
    package func start() {
        queue.async { self.startOnLane() }
    }

    /// Closes every connection, tells their delegates and gives up the queue's sources.
    ///
    /// Sockets adopted later are closed unseen. `completion` is called on the lane when all is done.
    package func stop(completion: (@Sendable () -> Void)? = nil) {
        queue.async {
            self.stopOnLane()
            completion?()
        }
    }

    /// Takes over a connected socket; the delegate hears of it on the lane.
    ///
    /// A socket that the lane cannot watch is closed unseen: its delegate hears nothing.
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

    /// How many connections the lane serves; on the lane only.
    package var connectionCount: Int {
        preconditionOnLane()
        return connections.count
    }

    /// Carries a socket and its delegate to their lane.
    ///
    /// `@unchecked Sendable`: the delegate was given away by `sending` and only the lane looks inside.
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
            // The handler holds the lane; cancelling drops it and with it the last such reference.
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
            // Those that came before the end are told of it.
            while !arrivals.isEmpty { welcome(arrivals.removeFirst()) }
            isStopped = true
            for connection in connections.reversed() { retire(connection, .laneStopped) }
        }
        timers = TimerQueue()
        turns = TurnQueue()
        lowPriorityTurns = TurnQueue()
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
            // Its delegate was never told of it, so there is no end to tell either.
            Glibc.close(arrival.descriptor)
            return
        }
        connection.listIndex = Int32(connections.count)
        connections.append(connection)
        arrival.delegate.connectionOpened(connection)
    }

    // MARK: Rounds

    /// Runs `body` as a round, or as part of the one that is under way.
    ///
    /// Blocks of the queue that write to many connections do it in a round to send without a detour;
    /// outside of one, what was written leaves in a round of its own a little later.
    package func round<R>(_ body: () throws -> R) rethrows -> R {
        preconditionOnLane()
        if isInRound { return try body() }
        isInRound = true
        roundTimeUs = queue.nowUs
        roundWork = 0
        defer { endRound() }
        return try body()
    }

    /// Milliseconds of a clock that never goes back and has no other meaning; one value a round.
    package var now: Int64 {
        preconditionOnLane()
        return isInRound ? roundTimeUs / 1000 : queue.nowMs
    }

    private func endRound() {
        // Telling one delegate of its end may write to others or close them.
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

    /// Makes sure that a round ends after what was just recorded.
    private func postRound() {
        guard !isInRound, !isRoundPosted else { return }
        isRoundPosted = true
        queue.async {
            self.isRoundPosted = false
            self.round {
                self.presentResumed()
                // Between two turns of what waits here, those who are ready get theirs.
                if self.hasTurns { self.giveTurns(to: self.poll()) }
            }
        }
    }

    /// Serves what is ready; on the lane only.
    package func serve() {
        let count = poll()
        guard count > 0 || hasTurns else { return }
        round { giveTurns(to: count) }
    }

    /// Asks epoll who is ready.
    ///
    /// - Returns: how many of `events` are filled in.
    private func poll() -> Int {
        max(0, Int(epoll_wait(epoll, events.baseAddress, Self.eventCapacity, 0)))
    }

    /// Gives a turn to the first `count` of `events`, then to those who wait for theirs.
    private func giveTurns(to count: Int) {
        // A connection that ends its turn early goes to the end of its queue, for the next round.
        let waiting = turns.count
        for position in 0..<count {
            let event = events[position]
            guard let pointer = event.data.ptr else { continue }
            // A connection closed earlier in this batch is kept by `retired` until the round ends.
            Unmanaged<Connection>.fromOpaque(pointer)._withUnsafeGuaranteedRef {
                serve($0, event.events)
            }
        }
        for _ in 0..<waiting { giveTurn(to: turns.removeFirst()) }
        for _ in 0..<min(arrivals.count, Self.arrivalsPerRound) { welcome(arrivals.removeFirst()) }
        let end = roundWork + lowPriority.workPerRound
        var left = lowPriorityTurns.count
        while left > 0, roundWork < end {
            left -= 1
            charge(Self.workPerTurn)
            giveTurn(to: lowPriorityTurns.removeFirst())
        }
    }

    private func giveTurn(to connection: Connection) {
        connection.awaitsTurn = false
        // A pause ends with a turn of its own.
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

    /// Adds to the work of the round at hand.
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
                // Noted only now, so that a short wait costs no system call.
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
                // Noted only now, so that a short pause costs no system call.
                watch(connection, connection.watched & ~EPOLLIN.rawValue)
            }
        }
        if ready & EPOLLOUT.rawValue != 0, connection.phase != .closed { sendBacklog(connection) }
    }

    /// Ends a connection from which nothing is read, as the socket says it is broken.
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

    /// Forgets a timer; one that has fired is forgotten already.
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

    /// One read; never more, so that a busy peer does not keep the others waiting.
    private func readOnce(_ connection: Connection) {
        guard connection.phase == .open else { return discardOnce(connection) }
        arrivalUs = roundTimeUs
        if let waiting = connection.input, waiting.count > Self.readCapacity / 2 {
            // A frame longer than half the buffer grows where it is kept.
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

    /// The peer sends nothing more; what is written for it still leaves.
    private func endInput(_ connection: Connection) {
        connection.hasInputEnded = true
        switch connection.phase {
        case .open:
            // What was left over in a pause, or at the end of a turn, comes first.
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
                // What is left is presented soon: moving it once for each turn is not worth it.
                return kept.dropFirst(consumed)
            }
            guard consumed > 0 || poisons else { return }
            // A fresh store: the large one is given back as soon as its frame is through.
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

    /// In a round of its own: what is read again must find the same order as what comes from the
    /// socket, and the round at hand may be the delivery of things that have to come first.
    private func presentResumed() {
        // Those that resume while the list is served get their turn in the next round.
        let resuming = resumed
        resumed.removeAll(keepingCapacity: true)
        for connection in resuming { presentAgain(connection) }
    }

    private func presentAgain(_ connection: Connection) {
        connection.isResuming = false
        guard connection.phase == .open, !connection.isReadingPaused else { return }
        if connection.isLowPriority, connection.input != nil {
            // Those of low priority that resume together have their turns like all others of their kind.
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

    /// Tells the delegate of the end of the input once nothing before it waits.
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

    /// Sends what the connection collected; what the socket refuses becomes its backlog.
    private func flush(_ connection: Connection) {
        var segment = connection.firstSegment
        connection.firstSegment = -1
        connection.lastSegment = -1
        connection.collectedBytes = 0
        while segment >= 0, connection.phase != .closed {
            // Pieces in one call; what exceeds it, as when many writers take turns, goes in the next.
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

    /// The bytes a send took, from its result; nil when it closed the connection.
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

    /// Closes the descriptor now and tells the delegate when the round ends.
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
        // A child process that is being born may hold a copy: the peer is told all the same.
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

    /// Retires the connection at its deadline, and before that unless its peer takes some of the backlog.
    private func limitFarewell(of connection: Connection) {
        guard let farewell = connection.farewell else { return }
        let left = connection.pendingOutboundBytes
        let untilDeadline = Duration.milliseconds(farewell.deadlineMs - now)
        let wait = min(farewell.patience, untilDeadline)
        farewell.timer = schedule(after: wait) { [unowned self, unowned connection] in
            // A timer that fired needs no cancelling.
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

    /// Tells the peer that nothing more comes and waits for its own end.
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
        // The end of the input would be told again and again.
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

/// A peer that went away is an error to handle, not a signal to die of.
private let noSignal = Int32(MSG_NOSIGNAL)
