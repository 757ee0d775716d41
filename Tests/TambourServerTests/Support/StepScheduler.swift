import TambourQueues

/// Runs the work of queues one piece at a time, on one thread and in the order of submission. The
/// clock advances only when the test calls `advance`.
///
/// `@unchecked Sendable`: everything happens on the thread of the test.
final class StepScheduler: SimulatedScheduler, @unchecked Sendable {
    private typealias Piece = (queue: SerialQueue, work: @Sendable () -> Void)

    private var waiting: [Piece] = []
    private var delayed: [(due: Duration, piece: Piece)] = []
    private var running: [SerialQueue] = []
    private(set) var now: Duration = .seconds(1000)

    func run(on queue: SerialQueue, after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        if delay <= .zero {
            waiting.append((queue, work))
        } else {
            delayed.append((now + delay, (queue, work)))
        }
    }

    func isOn(_ queue: SerialQueue) -> Bool { running.last === queue }

    /// Advances the clock. Makes due work ready, but does not run it.
    func advance(by duration: Duration) {
        now += duration
        let due = delayed.filter { $0.due <= now }.sorted { $0.due < $1.due }
        delayed.removeAll { $0.due <= now }
        waiting += due.map(\.piece)
    }

    /// Runs the next piece of work whose queue is not running already. A piece can call this
    /// function, as if another thread ran the next piece.
    ///
    /// - Returns: Whether a piece ran.
    @discardableResult
    func step() -> Bool {
        let next = waiting.firstIndex { piece in !running.contains { $0 === piece.queue } }
        guard let next else { return false }
        let piece = waiting.remove(at: next)
        running.append(piece.queue)
        piece.work()
        running.removeLast()
        return true
    }

    func runAll() {
        while step() {}
    }
}
