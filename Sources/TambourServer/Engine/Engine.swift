import Synchronization
package import TambourNet
import TambourProtocol
import TambourStore

/// The one thread that writes: takes all commands that wait, runs them in one transaction with one
/// fsync, then lets events and replies go, in that order.
package final class Engine: Sendable {
    package let queue: SerialQueue
    private let mailbox: Mailbox<Command>
    private let loop: Loop

    init(
        core: EngineCore,
        limits: Limits,
        environment: Environment,
        router: PushRouter
    ) {
        let queue = SerialQueue(label: "tambour.engine", simulated: environment.scheduler)
        let loop = Loop(
            core: core,
            limits: limits,
            environment: environment,
            router: router,
            queue: queue
        )
        self.queue = queue
        self.loop = loop
        mailbox = Mailbox(queue: queue) { loop.run($0) }
        queue.async { loop.workLater() }
    }

    /// Queues a command; its `done` is called on the engine's queue.
    package func post(_ command: Command) {
        mailbox.post(command)
    }

    /// Runs `body` on the engine's queue when everything posted before has run; called once, at the
    /// end: what the engine does in its spare time it does no more.
    package func whenIdle(_ body: @escaping @Sendable () -> Void) {
        queue.async {
            self.mailbox.drainNow()
            self.loop.stopWorking()
            body()
        }
    }

    /// What a step of longer work came to.
    package enum Step<Value: Sendable>: Sendable {
        case more
        case finished(Value)
    }

    /// Does longer work a command a step, those of others in between.
    ///
    /// - Parameters:
    ///   - mayGoOn: asked before each further step.
    ///   - step: may run twice: what its last run says counts.
    ///   - completion: called on the engine's queue; nil when the store failed or the work had to end.
    func work<Value: Sendable>(
        while mayGoOn: @escaping @Sendable () -> Bool,
        step: @escaping @Sendable (WriteTransaction) throws -> Step<Value>,
        then completion: @escaping @Sendable (Value?) -> Void
    ) {
        let outcome = Mutex(Step<Value>.more)
        post(
            Command { tx in
                let reached = try step(tx)
                outcome.withLock { $0 = reached }
                return .done
            } done: { [self] answer in
                guard case .done = answer.outcome else { return completion(nil) }
                switch outcome.withLock({ $0 }) {
                case .finished(let value): completion(value)
                case .more where mayGoOn(): work(while: mayGoOn, step: step, then: completion)
                case .more: completion(nil)
                }
            }
        )
    }

    /// What happens on the engine's queue.
    ///
    /// `@unchecked Sendable`: touched on that queue only.
    private final class Loop: @unchecked Sendable {
        private let core: EngineCore
        private let limits: Limits
        private let environment: Environment
        private let router: PushRouter
        private let queue: SerialQueue
        private var isWorkDue = false
        private var isStopped = false
        /// When the last commands ran, and when a step of spare work is due however busy it is.
        private var lastRun: Duration
        private var workIsDueAt: Duration

        /// So long nobody must have asked for anything before the engine does spare work: where all
        /// processors are busy an engine may wait for its next commands without being idle ...
        private static let pause: Duration = .milliseconds(50)
        /// ... or so many times what its last step took: 1 % of the time of a busy engine.
        private static let restPerWork = 99

        init(
            core: EngineCore,
            limits: Limits,
            environment: Environment,
            router: PushRouter,
            queue: SerialQueue
        ) {
            self.core = core
            self.limits = limits
            self.environment = environment
            self.router = router
            self.queue = queue
            lastRun = queue.now
            workIsDueAt = lastRun
        }

        /// Has a step of spare work done when there is time, if there is any to do.
        func workLater() {
            guard core.hasSpareWork, !isWorkDue, !isStopped else { return }
            isWorkDue = true
            let rest = min(lastRun + Self.pause, workIsDueAt) - queue.now
            queue.async(after: max(rest, .zero)) { [weak self] in self?.work() }
        }

        private func work() {
            isWorkDue = false
            guard !isStopped else { return }
            let start = queue.now
            let isIdle = start - lastRun >= Self.pause
            if isIdle || start >= workIsDueAt {
                // A store that fails is asked again when it has served somebody.
                guard core.runSpareWork(wall: environment.wallMs) else { return }
                let end = queue.now
                workIsDueAt = end + (end - start) * Self.restPerWork
            }
            guard isIdle, core.hasSpareWork else { return workLater() }
            // Behind what was asked meanwhile.
            isWorkDue = true
            queue.async { [weak self] in self?.work() }
        }

        func stopWorking() {
            isStopped = true
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
            lastRun = queue.now
            workLater()
        }
    }
}
