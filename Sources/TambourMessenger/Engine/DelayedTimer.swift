import Synchronization
import TambourProtocol
import TambourQueues
import TambourStore

/// Sends scheduled messages when they are due. Each step is a separate command between the clients'
/// commands.
///
/// `@unchecked Sendable`: only the timer's queue touches mutable state.
package final class DelayedTimer: @unchecked Sendable {
    private let engine: Engine
    private let dispatcher: Dispatcher
    private let wallMs: @Sendable () -> Int64
    private let queue: SerialQueue
    private var alarm: Alarm?
    /// The due time for which the timer is armed, in Unix milliseconds; nil while the timer is not
    /// armed.
    private var next: Int64?
    private let isStopped = Atomic(false)

    /// The longest time between two looks at the wall clock. The timer looks repeatedly, because an
    /// administrator may change the clock.
    private static let longestSleepMs: Int64 = 60_000

    init(engine: Engine, dispatcher: Dispatcher, environment: Environment) {
        self.engine = engine
        self.dispatcher = dispatcher
        wallMs = environment.wallMs
        queue = SerialQueue(label: "tambour.delayed", simulated: environment.scheduler)
    }

    /// Sends messages that became due while the server was down, and arms the timer for later
    /// messages.
    func start() {
        queue.async { [self] in
            alarm = Alarm(on: queue) { [weak self] in
                guard let self else { return }
                next = nil
                run {}
            }
        }
        run {}
    }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        queue.async { self.alarm?.cancel() }
    }

    /// Arms the timer for a message that is due at `time`, in Unix milliseconds.
    func arm(at time: Int64) {
        queue.async { [self] in
            guard time < next ?? .max else { return }
            next = time
            let sleep = min(max(0, time - wallMs()), Self.longestSleepMs)
            alarm?.set(atMs: queue.nowMs + sleep, leewayMs: 10)
        }
    }

    /// Sends all messages that are due by the commit clock. Each step is a separate command.
    ///
    /// - Parameter completion: called on the engine's queue at the end of the run. The run ends
    ///   when no due message is left. It ends early if the timer was stopped or the store failed.
    package func run(_ completion: @escaping @Sendable () -> Void) {
        let dispatcher = dispatcher
        engine.work(
            while: { [self] in !isStopped.load(ordering: .relaxed) },
            step: { tx in
                let next = try dispatcher.sendDue(in: tx)
                return next.map { $0 <= tx.ct } ?? false ? .more : .finished(next)
            },
            then: { [self] (next: Int64??) in
                defer { completion() }
                guard !isStopped.load(ordering: .relaxed) else { return }
                switch next {
                case .some(.some(let time)): arm(at: time)
                case .some(.none): break
                // The store failed: try again after the longest sleep.
                case .none: arm(at: wallMs() + Self.longestSleepMs)
                }
            }
        )
    }
}
