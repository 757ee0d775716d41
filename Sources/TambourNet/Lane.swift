import CEpoll
import Dispatch
import Glibc
package import TambourQueues

/// A serial queue that serves many sockets, with one epoll descriptor and one dispatch source.
///
/// The source's handler polls epoll once, serves the ready sockets and returns. Such a call of the
/// handler is a *round*. Between rounds, timers, mailboxes and other blocks of the queue run. At
/// the end of a round, the lane sends all bytes that were written during the round, with one system
/// call per connection. It also reports the connections that were closed during the round.
///
/// A connection gets one *turn* per round. In a turn, the lane reads once. If the connection ended
/// its last turn early, the lane presents the unconsumed bytes instead. Low-priority connections,
/// and connections whose layers are opening, get their turns last. In each round, the work of these
/// turns is limited to `LowPriority.workPerRound`.
///
/// `@unchecked Sendable`: all stored properties except the constants are accessed only on `queue`.
/// `preconditionOnLane` checks this. `start`, `stop` and `adopt` only post blocks to the queue.
package final class Lane: @unchecked Sendable {
    private static let eventCapacity: Int32 = 256
    static let readCapacity = 64 * 1024
    static let outputCapacity = 256 * 1024
    /// The maximum number of timers that fire in one round. Further due timers fire in the next
    /// round.
    private static let timersPerRound = 64

    /// Whether lanes, by default, overwrite bytes after presenting them. This is true in debug
    /// builds. Tests then detect a delegate that uses the bytes after the call.
    package static var poisonsByDefault: Bool {
        #if DEBUG
            true
        #else
            false
        #endif
    }

    /// The limits of low-priority connections.
    package struct LowPriority: Sendable {
        /// The limit of bytes in one read from a low-priority connection.
        package var readBytes: Int
        /// The limit for the work of low-priority turns in one round. When it is reached, no
        /// further low-priority turn starts. `Connection.charge` defines the unit.
        package var workPerRound: Int
        /// The work that is charged for each step in which a connection's layers open.
        let workPerOpening: Int

        /// - Parameter openingsPerRound: the number of opening steps whose work equals
        ///   `workPerRound`.
        package init(
            readBytes: Int = 64 * 1024,
            workPerRound: Int = 64 * 1024,
            openingsPerRound: Int = 4
        ) {
            self.readBytes = max(1, readBytes)
            self.workPerRound = max(1, workPerRound)
            workPerOpening = self.workPerRound / max(1, openingsPerRound)
        }
    }

    /// A contiguous part of the output buffer that one connection has written.
    struct Segment {
        var start: Int
        var count: Int
        var next: Int32
    }

    package let index: Int
    package let queue: SerialQueue

    private let timerTickMs: Int64
    private let epoll: Int32
    private var source: (any DispatchSourceRead)?
    private var alarm: Alarm?
    private var isStopped = false

    private var connections: [Connection] = []
    private var timers = TimerQueue<() -> Void>()
    private var armedForMs = Int64.max

    private var isInRound = false
    private var isRoundPosted = false
    private var retired: [(connection: Connection, reason: CloseReason)] = []

    // The state of turns, see Lane+Turns.swift.
    let events: UnsafeMutableBufferPointer<epoll_event>
    let readBuffer: UnsafeMutableRawBufferPointer
    let poisons: Bool
    let lowPriority: LowPriority
    var roundTimeUs: Int64 = 0
    /// The time when the currently presented bytes were read from the socket, in microseconds.
    var arrivalUs: Int64 = 0
    /// The work that delegates have charged in this round.
    var roundWork = 0
    var arrivals = FIFO<Arrival>()
    var turns = FIFO<Connection>()
    var lowPriorityTurns = FIFO<Connection>()
    var resumed: [Connection] = []
    private var hasTurns: Bool {
        !turns.isEmpty || !lowPriorityTurns.isEmpty || !arrivals.isEmpty
    }

    // The state of output, see Lane+Output.swift.
    let outputBuffer: UnsafeMutableRawPointer
    var outputUsed = 0
    var segments: [Segment] = []
    var dirty: [Connection] = []

    /// - Parameters:
    ///   - label: The queue's label, for debuggers.
    ///   - timerTick: The tick of the timers. Deadlines are rounded up to a multiple of it, so that
    ///     several timers share one wake-up.
    ///   - lowPriority: The limits of low-priority connections.
    ///   - poisonAfterCallback: Whether bytes are overwritten after a delegate has seen them.
    ///   - simulated: A scheduler that replaces Dispatch. It must call `serve` when sockets are
    ///     ready.
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

    // MARK: Starting and stopping

    /// Starts serving sockets, including those that were adopted earlier.
    ///
    /// A started lane exists until `stop`.
    package func start() {
        queue.async { self.startOnLane() }
    }

    /// Closes every connection, notifies their delegates and cancels the queue's sources.
    ///
    /// If a socket is adopted later, the lane closes it without a notification. At the end, the
    /// lane calls `completion` on its queue.
    package func stop(completion: (@Sendable () -> Void)? = nil) {
        queue.async {
            self.stopOnLane()
            completion?()
        }
    }

    /// Adopts a connected socket and notifies the delegate on the lane.
    ///
    /// If epoll refuses the socket, the lane closes it, and does not notify its delegate.
    /// - Parameter layers: the layers between the socket and the delegate, beginning at the socket.
    package func adopt(
        fileDescriptor: Int32,
        peer: String,
        layers: sending [any ConnectionLayer] = [],
        delegate: sending any ConnectionDelegate
    ) {
        let arrival = Arrival(
            descriptor: fileDescriptor,
            peer: peer,
            layers: LayerStack(layers),
            delegate: delegate
        )
        queue.async {
            self.arrivals.append(arrival)
            self.postRound()
        }
    }

    /// The number of connections. Read it on the lane only.
    package var connectionCount: Int {
        preconditionOnLane()
        return connections.count
    }

    /// Transfers a socket and its delegate to their lane.
    ///
    /// `@unchecked Sendable`: the caller has given away the delegate and the layers (`sending`).
    /// Only the lane accesses them.
    final class Arrival: @unchecked Sendable {
        let descriptor: Int32
        let peer: String
        let layers: LayerStack?
        let delegate: any ConnectionDelegate

        init(
            descriptor: Int32,
            peer: String,
            layers: sending LayerStack?,
            delegate: sending any ConnectionDelegate
        ) {
            self.descriptor = descriptor
            self.peer = peer
            self.layers = layers
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
            // Open the sockets that arrived before the stop, so that their delegates are notified
            // of the close.
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

    func welcome(_ arrival: Arrival) {
        let connection = Connection(
            lane: self,
            descriptor: arrival.descriptor,
            peer: arrival.peer,
            layers: arrival.layers,
            delegate: arrival.delegate
        )
        makeNonBlocking(arrival.descriptor)
        connection.watched = EPOLLIN.rawValue
        guard !isStopped, control(EPOLL_CTL_ADD, connection) else {
            // The delegate does not know the connection, so do not report the close.
            Glibc.close(arrival.descriptor)
            return
        }
        connection.listIndex = Int32(connections.count)
        connections.append(connection)
        openLayers(of: connection)
        arrival.delegate.connectionOpened(connection)
    }

    // MARK: Rounds

    /// Runs `body` as a round, or as part of the current one.
    ///
    /// If a block of the queue writes to many connections, it calls this method. All bytes are then
    /// sent together at the end of the round. If bytes are written outside a round, the lane posts
    /// a round to send them.
    package func round<R>(_ body: () throws -> R) rethrows -> R {
        preconditionOnLane()
        if isInRound { return try body() }
        isInRound = true
        roundTimeUs = queue.nowUs
        roundWork = 0
        defer { endRound() }
        return try body()
    }

    /// The time of a monotonic clock, in milliseconds. It is constant during a round.
    package var now: Int64 {
        preconditionOnLane()
        return isInRound ? roundTimeUs / 1000 : queue.nowMs
    }

    private func endRound() {
        // Repeat, because a delegate may write to other connections or close them when it is
        // notified of a close.
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

    /// Posts a round, unless a round is running or already posted. The round handles recorded
    /// output and closes.
    func postRound() {
        guard !isInRound, !isRoundPosted else { return }
        isRoundPosted = true
        queue.async {
            self.isRoundPosted = false
            self.round {
                self.presentResumed()
                // Also give turns to ready sockets, so that waiting connections do not delay them.
                if self.hasTurns { self.giveTurns(to: self.poll()) }
            }
        }
    }

    /// Serves the ready sockets. Call it on the lane only.
    package func serve() {
        let count = poll()
        guard count > 0 || hasTurns else { return }
        round { giveTurns(to: count) }
    }

    /// Polls epoll without waiting.
    ///
    /// - Returns: the number of valid entries in `events`.
    private func poll() -> Int {
        max(0, Int(epoll_wait(epoll, events.baseAddress, Self.eventCapacity, 0)))
    }

    // MARK: Timers

    /// Runs `body` on the lane after `delay`, rounded up to the lane's tick. Call it on the lane
    /// only.
    package func schedule(after delay: Duration, _ body: @escaping () -> Void) -> TimerToken {
        let wanted = now + max(1, delay.wholeMilliseconds)
        let deadline = (wanted + timerTickMs - 1) / timerTickMs * timerTickMs
        let token = timers.schedule(atMs: deadline, body)
        if !isInRound { armTimer() }
        return token
    }

    /// Cancels a timer. Does nothing if the timer has fired.
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

    // MARK: Closing connections

    /// Closes the descriptor now. The delegate is notified when the round ends.
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
        connection.layers = nil
        connection.collectedBytes = 0
        connection.firstSegment = -1
        connection.lastSegment = -1
        _ = control(EPOLL_CTL_DEL, connection)
        // Shut the socket down explicitly. A child process between fork and exec may have a copy of
        // the descriptor, which would keep the connection open.
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
        closeLayers(of: connection)
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

    /// Retires the connection at its deadline, or earlier if its peer stops accepting the backlog.
    private func limitFarewell(of connection: Connection) {
        guard let farewell = connection.farewell else { return }
        let left = connection.pendingOutboundBytes
        let untilDeadline = Duration.milliseconds(farewell.deadlineMs - now)
        let wait = min(farewell.patience, untilDeadline)
        farewell.timer = schedule(after: wait) { [unowned self, unowned connection] in
            // The timer has fired, so forget it. It must not be cancelled later.
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

    /// Closes the server's side of the stream and waits until the peer closes its side.
    func endOutput(_ connection: Connection) {
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

    func watch(_ connection: Connection, _ events: UInt32) {
        // After the end of the input, stop watching for input. Level-triggered epoll would report
        // the end again and again.
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
