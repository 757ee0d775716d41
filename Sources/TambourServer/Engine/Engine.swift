package import Dispatch
import TambourNet
import TambourProtocol
import TambourStore

/// The one thread that writes: takes all commands that wait, runs them in one transaction with one
/// fsync, then lets events and replies go, in that order.
///
package final class Engine: Sendable {
    private struct Job: Sendable {
        let command: Command
        let done: @Sendable (Outcome) -> Void
    }

    package let queue: DispatchQueue
    private let mailbox: Mailbox<Job>

    init(
        core: EngineCore,
        limits: Limits,
        environment: Environment,
        router: PushRouter
    ) {
        let loop = Loop(core: core, limits: limits, environment: environment, router: router)
        queue = DispatchQueue(label: "tambour.engine")
        mailbox = Mailbox(queue: queue) { loop.run($0) }
    }

    /// Queues a command; `done` is called on the engine's queue after its events have left.
    package func post(
        _ command: Command,
        done: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        mailbox.post(Job(command: command, done: done))
    }

    /// Runs `body` on the engine's queue when everything posted before has run.
    package func whenIdle(_ body: @escaping @Sendable () -> Void) {
        queue.async {
            self.mailbox.drainNow()
            body()
        }
    }

    /// What happens on the engine's queue.
    ///
    /// `@unchecked Sendable`: touched on that queue only.
    private final class Loop: @unchecked Sendable {
        private let core: EngineCore
        private let limits: Limits
        private let environment: Environment
        private let router: PushRouter

        init(core: EngineCore, limits: Limits, environment: Environment, router: PushRouter) {
            self.core = core
            self.limits = limits
            self.environment = environment
            self.router = router
        }

        func run(_ jobs: [Job]) {
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
    }
}
