package import TambourEvents
package import TambourProtocol
import TambourSQL
package import TambourStore

/// A piece of work that the engine runs in a write transaction.
package struct Command: Sendable {
    /// The subject whose turn the command takes. The commands of one subject run in the order in
    /// which they were posted.
    package let subject: WorkSubject
    /// The time when the door read the request's bytes, in microseconds of the queues' clock; nil
    /// for the server's own commands.
    let arrivalUs: Int64?
    /// The work of the command. It runs a second time if its first batch was rolled back.
    package let body: @Sendable (WriteTransaction) throws -> Answer
    /// Called after the commit, once the events of the batch have been sent.
    package let done: @Sendable (Answer) -> Void

    package init(
        for subject: WorkSubject = .server,
        arrivalUs: Int64? = nil,
        _ body: @escaping @Sendable (WriteTransaction) throws -> Answer,
        done: @escaping @Sendable (Answer) -> Void = { _ in }
    ) {
        self.subject = subject
        self.arrivalUs = arrivalUs
        self.body = body
        self.done = done
    }
}

/// The engine without its queue: runs batches of commands, one transaction each.
///
/// Callers pass in all times, so tests and simulations can drive this object directly.
package final class EngineCore {
    /// The result of a batch: an answer for each command, and the events to send.
    package struct Result: Sendable {
        package var answers: [Answer]
        package var events: [Event]
    }

    private let writer: StoreWriter
    private let clock: CommitClock
    private let metrics: ServerMetrics
    /// Reports failures of the store; the text contains no user data.
    private let report: @Sendable (String) -> Void
    private let purger: EntityPurger
    private let limits: Limits
    /// Returns those of the given users who have a client that receives unread counters with each
    /// message.
    private let countedReaders: @Sendable ([UserID]) -> [UserID]
    private var spareTurn = 0
    /// The estimated work to deliver the events of the last command, in bytes; see `FanOut`.
    private(set) var toldBytes = 0
    /// Whether the last command has a further step.
    private(set) var hasRest = false

    private enum SpareWork: CaseIterable {
        case entities, messages, words
    }

    package init(
        writer: StoreWriter,
        clock: CommitClock,
        metrics: ServerMetrics,
        countedReaders: @escaping @Sendable ([UserID]) -> [UserID] = { _ in [] },
        report: @escaping @Sendable (String) -> Void
    ) {
        self.writer = writer
        self.clock = clock
        self.metrics = metrics
        self.countedReaders = countedReaders
        self.report = report
        limits = writer.connection.limits
        purger = EntityPurger(limits: limits)
    }

    /// Runs all commands in one transaction, and their further steps in later transactions. If the
    /// transaction fails, runs each command in a separate transaction.
    ///
    /// - Parameter wall: returns the wall clock's time, in Unix milliseconds.
    package func run(_ commands: ArraySlice<Command>, wall: () -> Int64) -> Result {
        var waiting = commands
        var result = run(wall: wall) { waiting.popFirst() }.result
        for index in result.answers.indices {
            while let rest = result.answers[index].rest {
                var next: Command? = Command(rest)
                let further = run(wall: wall) { next.take() }.result
                result.answers[index] = further.answers.first ?? .refusal(.internalError)
                result.events += further.events
            }
        }
        return result
    }

    /// Runs commands in one transaction, one after another, until `next` returns nil. If the
    /// transaction fails, runs each command in a separate transaction.
    ///
    /// - Parameters:
    ///   - wall: returns the wall clock's time, in Unix milliseconds.
    ///   - next: called before each command. It may return nil early to end the batch.
    /// - Returns: the commands that ran, and their results. If an answer has a `rest`, the caller
    ///   must run it.
    package func run(
        wall: () -> Int64,
        next: () -> Command?
    ) -> (commands: [Command], result: Result) {
        var commands: [Command] = []
        if let result = attempt(wall: wall(), next: next, &commands) { return (commands, result) }
        guard commands.count > 1 else {
            let answers = commands.map { _ in Answer.refusal(.internalError) }
            return (commands, Result(answers: answers, events: []))
        }
        metrics.rerunBatches.add(1)
        var result = Result(answers: [], events: [])
        for index in commands.indices {
            let single = run(commands[index...index], wall: wall)
            result.answers += single.answers
            result.events += single.events
        }
        return (commands, result)
    }

    /// Whether there is background work, which can wait until the engine is idle.
    package var hasSpareWork: Bool { hasPurges || writer.hasWordsToIndex }

    /// Whether there may be content that users can still see and that must be removed.
    package var hasPurges: Bool { writer.mayHavePurges }

    /// Does one step of background work in a separate transaction. A step takes some milliseconds.
    ///
    /// - Returns: the events to send; nil when the store failed.
    package func runSpareWork(wall: () -> Int64) -> [Event]? {
        // Kinds of work take turns. If work of one kind fails or never ends, the other kinds still
        // run.
        spareTurn += 1
        let step = Command { [purger, limits, spareTurn] tx in
            for kind in 0..<SpareWork.allCases.count {
                switch SpareWork.allCases[(spareTurn + kind) % SpareWork.allCases.count] {
                case .entities:
                    if tx.mayHavePurges, try purger.step(in: tx) { return .done }
                case .messages:
                    guard tx.mayHavePurges,
                        let step = try tx.purgeMessages(limit: limits.purgedRowsPerStep)
                    else { continue }
                    try tx.tellDeleted(step.removed, in: step.chat, except: nil, limits: limits)
                    return .done
                case .words:
                    guard tx.hasWordsToIndex else { continue }
                    try tx.indexWords()
                    return .done
                }
            }
            tx.noteNoPurges()
            return .done
        }
        let result = run([step][...], wall: wall)
        guard case .done? = result.answers.first?.outcome else { return nil }
        return result.events
    }

    /// Runs a batch once. Returns nil when the batch was rolled back. Exception: if the batch
    /// consists of a single command that was refused, returns the refusal.
    ///
    /// - Parameter commands: receives the commands that `next` returned.
    private func attempt(
        wall: Int64,
        next: () -> Command?,
        _ commands: inout [Command]
    ) -> Result? {
        // Take the first command before anything can fail. If a batch failed without a command, the
        // caller would retry it for ever.
        guard let first = next() else { return Result(answers: [], events: []) }
        commands.append(first)
        let stamp = clock.begin(wall: wall)
        do {
            let tx = try writer.begin(stamp)
            var answers: [Answer] = []
            while answers.count < commands.count {
                let command = commands[answers.count]
                let writes = tx.writes
                let told = tx.events.count
                (toldBytes, hasRest) = (0, false)
                do {
                    let answer = try command.body(tx)
                    hasRest = answer.rest != nil
                    answers.append(answer)
                } catch let refusal as RequestError {
                    // If the command was refused before its first write, the batch continues.
                    // Otherwise the whole batch is rolled back. In the rerun, each command has its
                    // own transaction.
                    guard tx.writes == writes else {
                        writer.rollback()
                        clock.end(committed: false)
                        return commands.count == 1
                            ? Result(answers: [.refusal(refusal)], events: []) : nil
                    }
                    answers.append(.refusal(refusal))
                }
                toldBytes = FanOut.bytes(of: tx.events[told...])
                if let following = next() { commands.append(following) }
            }
            guard tx.writes > 0 else {
                writer.finishUnwritten()
                clock.end(committed: false)
                return Result(answers: answers, events: [])
            }
            // Unread counters are sent before the pushes that they belong to.
            let counters = try tx.counters(of: countedReaders)
            let events = counters + (try writer.commit())
            clock.end(committed: true)
            metrics.commits.add(1)
            metrics.committedCommands.add(commands.count)
            return Result(answers: answers, events: events)
        } catch {
            writer.rollback()
            clock.end(committed: false)
            metrics.failedBatches.add(1)
            report("a batch of \(commands.count) was rolled back: \(error)")
            return nil
        }
    }
}
