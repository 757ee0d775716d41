import Synchronization
import TambourProtocol
package import TambourQueues
import TambourStore

/// The only writer of the store. It runs the waiting commands in one transaction with one fsync.
/// Then it sends first the events and then the replies.
///
/// The commands of one subject run in the order in which they were posted, and subjects take turns.
/// A batch ends at `maxBatchCommands` or after `maxBatchMs`. If a subject's commands take more than
/// `maxBatchMsPerUser` of a batch, the subject waits for the next batch. If a subject's command has
/// a large fan-out (`FanOut`), the subject waits until the doors have delivered the pushes. In the
/// meantime, other subjects are served.
package final class Engine: Sendable {
    package let queue: SerialQueue
    private let mailbox: Mailbox<Command>
    private let loop: Loop

    init(
        core: EngineCore,
        limits: Limits,
        environment: Environment,
        router: EventRouter,
        queueTimes: QueueTimes
    ) {
        let queue = SerialQueue(label: "tambour.engine", simulated: environment.scheduler)
        let loop = Loop(
            core: core,
            limits: limits,
            environment: environment,
            router: router,
            queueTimes: queueTimes,
            queue: queue
        )
        self.queue = queue
        self.loop = loop
        mailbox = Mailbox(queue: queue) { loop.run($0) }
        queue.async { loop.workLater() }
    }

    /// Queues a command. The engine calls the command's `done` on its queue.
    package func post(_ command: Command) {
        mailbox.post(command)
    }

    /// Runs all commands that were posted so far, and stops background work. Then calls `body` on
    /// the engine's queue. Called once, at shutdown.
    package func whenIdle(_ body: @escaping @Sendable () -> Void) {
        queue.async {
            self.mailbox.drainNow()
            self.loop.runAll()
            self.loop.stopWorking()
            body()
        }
    }

    /// The result of a step of longer work.
    package enum Step<Value: Sendable>: Sendable {
        case more
        case finished(Value)
    }

    /// Does longer work in steps. Each step is a separate command, and other commands run between
    /// the steps.
    ///
    /// - Parameters:
    ///   - mayGoOn: called before each further step. It returns false to stop the work.
    ///   - step: does one step. It may run twice; then the result of the second run counts.
    ///   - completion: called on the engine's queue with the result; nil when the store failed or
    ///     the work was stopped.
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

    /// The part of the engine that runs on its queue.
    ///
    /// `@unchecked Sendable`: only the engine's queue touches this object.
    private final class Loop: @unchecked Sendable {
        private let core: EngineCore
        private let limits: Limits
        private let environment: Environment
        private let router: EventRouter
        private let queueTimes: QueueTimes
        private let queue: SerialQueue
        private let maxBatchUs: Int64
        private var waiting: FairQueue<WorkSubject, Command>
        /// The subjects that wait for the next batch or for the delivery by the doors. The values
        /// are the costs of their last commands, in microseconds.
        private var held: [WorkSubject: Int64] = [:]
        /// Whether a block that runs the next batch is queued.
        private var isNextPosted = false
        private var isWorkDue = false
        private var isStopped = false
        /// The time when the last commands ran.
        private var lastRun: Duration
        /// The time when background work is due even on a busy engine.
        private var workIsDueAt: Duration

        /// The engine does background work when no command has run for this time. A shorter pause
        /// does not prove that the engine is idle, because all processors may be busy.
        private static let pause: Duration = .milliseconds(50)
        /// The pause between two steps of background work on a busy engine, as a multiple of the
        /// duration of the last step. Background work usually gets 1 % of the engine's time. It
        /// gets 10 % if it must remove content that users can still see.
        private var restPerWork: Int { core.hasPurges ? 9 : 99 }

        init(
            core: EngineCore,
            limits: Limits,
            environment: Environment,
            router: EventRouter,
            queueTimes: QueueTimes,
            queue: SerialQueue
        ) {
            self.core = core
            self.limits = limits
            self.environment = environment
            self.router = router
            self.queueTimes = queueTimes
            self.queue = queue
            maxBatchUs = .microseconds(ofMs: limits.maxBatchMs)
            waiting = FairQueue(budget: .microseconds(ofMs: limits.maxBatchMsPerUser))
            lastRun = queue.now
            workIsDueAt = lastRun
        }

        /// Schedules a step of background work, if there is any.
        func workLater() {
            guard core.hasSpareWork, environment.doesSpareWork, !isWorkDue, !isStopped else {
                return
            }
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
                // If the store fails, return. Background work then waits until the next batch of
                // commands has run.
                guard let events = core.runSpareWork(wall: environment.wallMs) else { return }
                router.route(events)
                let end = queue.now
                workIsDueAt = end + (end - start) * restPerWork
            }
            guard isIdle, core.hasSpareWork else { return workLater() }
            // Commands that have arrived in the meantime run before the next step.
            isWorkDue = true
            queue.async { [weak self] in self?.work() }
        }

        func stopWorking() {
            isStopped = true
        }

        func run(_ commands: [Command]) {
            for command in commands { waiting.add(command, of: command.subject) }
            if !isNextPosted { runBatch() }
        }

        /// Runs all waiting commands.
        func runAll() {
            while !waiting.isEmpty {
                release(Set(held.keys))
                runBatch()
            }
        }

        /// Releases held subjects once the doors have delivered the pushes of their commands.
        private func releaseLater(_ subjects: Set<WorkSubject>) {
            guard !subjects.isEmpty else { return }
            router.whenDelivered { [weak self, queue] in
                queue.async { [weak self] in
                    self?.release(subjects)
                    self?.postNext()
                }
            }
        }

        private func release(_ subjects: Set<WorkSubject>) {
            for subject in subjects {
                guard let cost = held.removeValue(forKey: subject) else { continue }
                waiting.finish(subject, cost: cost)
            }
        }

        /// Runs a batch, and then queues the next batch. Commands that have arrived in the meantime
        /// can take part in it.
        private func runBatch() {
            waiting.beginRound()
            let start = queue.nowUs
            var now = start
            var count = 0
            var running: WorkSubject?
            var (telling, unfinished) = (Set<WorkSubject>(), Set<WorkSubject>())
            /// Records the time and the fan-out of the previous command, if there was one.
            func finish() {
                let before = now
                now = queue.nowUs
                guard let subject = running else { return }
                running = nil
                if core.toldBytes >= FanOut.most {
                    telling.insert(subject)
                } else if core.hasRest {
                    unfinished.insert(subject)
                } else {
                    return waiting.finish(subject, cost: now - before)
                }
                held[subject] = now - before
            }
            let (commands, result) = core.run(wall: environment.wallMs) {
                finish()
                guard count < limits.maxBatchCommands || count == 0 else { return nil }
                guard now - start < maxBatchUs || count == 0 else { return nil }
                guard let (subject, command) = waiting.take() else { return nil }
                count += 1
                running = subject
                if let arrival = command.arrivalUs {
                    queueTimes.record(.engine, subject, now - arrival)
                }
                return command
            }
            // Record the cost of the last command. It is not yet recorded if the batch failed
            // inside the command.
            finish()
            router.route(result.events)
            for (command, answer) in zip(commands, result.answers) {
                if let rest = answer.rest {
                    let further = Command(for: command.subject, rest, done: command.done)
                    waiting.addRest(further, of: command.subject)
                } else {
                    command.done(answer)
                }
            }
            release(unfinished)
            releaseLater(telling)
            lastRun = queue.now
            workLater()
            postNext()
        }

        private func postNext() {
            guard waiting.hasReadyNext, !isNextPosted else { return }
            isNextPosted = true
            queue.async { [weak self] in
                guard let self else { return }
                isNextPosted = false
                if waiting.hasReadyNext { runBatch() }
            }
        }
    }
}

extension Int64 {
    /// Converts a limit to microseconds. If the result overflows, returns the largest value, which
    /// means no limit.
    fileprivate static func microseconds(ofMs ms: Int) -> Int64 {
        Int64(clamping: ms.multipliedReportingOverflow(by: 1000).overflow ? .max : ms * 1000)
    }
}
