import Dispatch
import Synchronization
import TambourStore

/// What the server does by itself now and then, as commands of its own between those of others.
///
/// `@unchecked Sendable`: the timer is made, set and cancelled under a lock.
package final class Housekeeper: @unchecked Sendable {
    private let engine: Engine
    private let eraser: AccountEraser
    private let timer = Mutex<(any DispatchSourceTimer)?>(nil)
    private let intervalMs: Int
    private let isStopped = Atomic(false)

    init(engine: Engine, eraser: AccountEraser, intervalMs: Int) {
        self.engine = engine
        self.eraser = eraser
        self.intervalMs = intervalMs
    }

    func start() {
        let interval = DispatchTimeInterval.milliseconds(intervalMs)
        timer.withLock { timer in
            let made = DispatchSource.makeTimerSource(
                queue: DispatchQueue(label: "tambour.housekeeper")
            )
            made.setEventHandler { [weak self] in self?.run {} }
            made.schedule(
                deadline: .now() + interval,
                repeating: interval,
                leeway: .milliseconds(intervalMs / 10)
            )
            made.resume()
            timer = made
        }
    }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        timer.withLock { $0?.cancel() }
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
