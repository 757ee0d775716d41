import Synchronization
import TambourProtocol
import TambourQueues
import TambourStore

/// Does the server's periodic work. Each step is a separate command between the clients' commands.
///
/// `@unchecked Sendable`: only the housekeeper's queue touches the alarm.
package final class Housekeeper: @unchecked Sendable {
    private let engine: Engine
    private let eraser: AccountEraser
    private let queue: SerialQueue
    private var alarm: Alarm?
    private let intervalMs: Int
    private let isStopped = Atomic(false)

    init(engine: Engine, eraser: AccountEraser, intervalMs: Int, environment: Environment) {
        self.engine = engine
        self.eraser = eraser
        self.intervalMs = intervalMs
        queue = SerialQueue(label: "tambour.housekeeper", simulated: environment.scheduler)
    }

    func start() {
        queue.async { [self] in
            alarm = Alarm(on: queue) { [weak self] in
                guard let self else { return }
                run {}
                setAlarm()
            }
            setAlarm()
        }
    }

    private func setAlarm() {
        alarm?.set(
            atMs: queue.nowMs + Int64(intervalMs),
            leewayMs: intervalMs / 10
        )
    }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        queue.async { [self] in
            alarm?.cancel()
            alarm = nil
        }
    }

    /// Does all work that is due by the commit clock, one command per step.
    ///
    /// - Parameter completion: called on the engine's queue when no work is left.
    package func run(_ completion: @escaping @Sendable () -> Void) {
        let eraser = eraser
        engine.work(
            while: { [self] in !isStopped.load(ordering: .relaxed) },
            step: { try eraser.step(in: $0) ? .more : .finished(()) },
            then: { (_: Void?) in completion() }
        )
    }
}
