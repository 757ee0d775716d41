import Dispatch
import Synchronization
package import TambourStore

/// Sends scheduled messages when their time comes: as commands of its own between those of others.
///
/// `@unchecked Sendable`: what changes is touched on its queue only.
package final class DelayedTimer: @unchecked Sendable {
    private let engine: Engine
    private let dispatcher: Dispatcher
    private let wallMs: @Sendable () -> Int64
    private let queue = DispatchQueue(label: "tambour.delayed")
    private var timer: (any DispatchSourceTimer)?
    /// When the timer is to fire, Unix milliseconds; nil while nothing waits.
    private var next: Int64?
    private let isStopped = Atomic(false)

    /// The wall clock may be set: so often it is looked at again.
    private static let longestSleepMs: Int64 = 60_000

    init(engine: Engine, dispatcher: Dispatcher, wallMs: @escaping @Sendable () -> Int64) {
        self.engine = engine
        self.dispatcher = dispatcher
        self.wallMs = wallMs
    }

    /// Sends what came due while the server was away, and waits for the rest.
    func start() {
        queue.async { [self] in
            let made = DispatchSource.makeTimerSource(queue: queue)
            made.setEventHandler { [weak self] in
                guard let self else { return }
                next = nil
                run {}
            }
            made.schedule(deadline: .distantFuture)
            made.activate()
            timer = made
        }
        run {}
    }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        queue.async { self.timer?.cancel() }
    }

    /// Something is to be sent at `time`, Unix milliseconds.
    func arm(at time: Int64) {
        queue.async { [self] in
            guard time < next ?? .max else { return }
            next = time
            let sleep = min(max(0, time - wallMs()), Self.longestSleepMs)
            timer?.schedule(
                deadline: .now() + .milliseconds(Int(sleep)),
                leeway: .milliseconds(10)
            )
        }
    }

    /// Sends all that is due by the commit clock, a step a command.
    ///
    /// - Parameter completion: called on the engine's queue when the rest has to wait.
    package func run(_ completion: @escaping @Sendable () -> Void) {
        let dispatcher = dispatcher
        // A command may run twice: what the last run said counts.
        let upcoming = Mutex<(time: Int64, now: Int64)?>(nil)
        engine.post(
            Command { tx in
                let time = try dispatcher.sendDue(in: tx)
                upcoming.withLock { $0 = time.map { ($0, tx.ct) } }
                return .done
            } done: { [self] answer in
                guard case .done = answer.outcome, !isStopped.load(ordering: .relaxed) else {
                    // A store that fails is asked again.
                    if !isStopped.load(ordering: .relaxed) {
                        arm(at: wallMs() + Self.longestSleepMs)
                    }
                    return completion()
                }
                guard let (time, now) = upcoming.withLock({ $0 }) else { return completion() }
                if time <= now { return run(completion) }
                arm(at: time)
                completion()
            }
        )
    }
}
