package import Dispatch
import TambourNet
import TambourProtocol
import TambourStore

/// The one thread that writes: takes all commands that wait, runs them in one transaction with one
/// fsync, then lets events and replies go, in that order.
package final class Engine: Sendable {
    package let queue: DispatchQueue
    private let mailbox: Mailbox<Command>

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

    /// Queues a command; its `done` is called on the engine's queue.
    package func post(_ command: Command) {
        mailbox.post(command)
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

        func run(_ commands: [Command]) {
            var start = 0
            while start < commands.count {
                let end = min(start + limits.maxBatchCommands, commands.count)
                let batch = commands[start..<end]
                let result = core.run(batch, wall: environment.wallMs)
                router.route(result.events)
                for (command, answer) in zip(batch, result.answers) { command.done(answer) }
                start = end
            }
        }
    }
}
