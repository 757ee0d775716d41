import Synchronization
import TambourNet
import TambourProtocol
import TambourStore

/// What the server does by itself now and then, as commands of its own between those of others.
///
/// `@unchecked Sendable`: the alarm is touched on its queue only.
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

    /// Does all that is due by the commit clock, a step a command.
    ///
    /// - Parameter completion: called on the engine's queue when nothing is left to do.
    package func run(_ completion: @escaping @Sendable () -> Void) {
        let eraser = eraser
        engine.work(
            while: { [self] in !isStopped.load(ordering: .relaxed) },
            step: { try eraser.step(in: $0) ? .more : .finished(()) },
            then: { (_: Void?) in completion() }
        )
    }
}
