package import Dispatch
import TambourNet
import TambourProtocol
import TambourStore

/// The one thread that writes: takes all commands that wait, runs them in one transaction with one
/// fsync, then lets events and replies go, in that order.
///
/// `@unchecked Sendable`: `core` is touched on `queue` only.
package final class Engine: @unchecked Sendable {
    private struct Job: Sendable {
        let command: Command
        let done: @Sendable (Outcome) -> Void
    }

    package let queue = DispatchQueue(label: "tambour.engine")
    private let core: EngineCore
    private let limits: Limits
    private let environment: Environment
    private let metrics: ServerMetrics
    private let router: PushRouter
    private var mailbox: Mailbox<Job>!

    init(
        core: EngineCore,
        limits: Limits,
        environment: Environment,
        metrics: ServerMetrics,
        router: PushRouter
    ) {
        self.core = core
        self.limits = limits
        self.environment = environment
        self.metrics = metrics
        self.router = router
        mailbox = Mailbox(queue: queue) { [unowned self] jobs in self.drain(jobs) }
    }

    /// Queues a command; `done` is called on the engine's queue after its events have left.
    package func post(
        _ command: Command,
        done: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        mailbox.post(Job(command: command, done: done))
    }

    private func drain(_ jobs: [Job]) {
        dispatchPrecondition(condition: .onQueue(queue))
        var start = 0
        while start < jobs.count {
            let end = min(start + limits.maxBatchCommands, jobs.count)
            let batch = jobs[start..<end]
            let result = core.run(batch.map(\.command)[...], wall: environment.wallMs)
            router.route(result.events)
            for (job, outcome) in zip(batch, result.outcomes) { job.done(outcome) }
            start = end
        }
    }

    /// Runs `body` on the engine's queue when everything posted before has run.
    package func whenIdle(_ body: @escaping @Sendable () -> Void) {
        queue.async {
            self.mailbox.drainNow()
            body()
        }
    }
}
