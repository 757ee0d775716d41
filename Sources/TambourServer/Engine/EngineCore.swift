import TambourProtocol
import TambourSQL
package import TambourStore

/// Something for the engine to run in a write transaction.
package struct Command: Sendable {
    /// What runs. It may run twice when the batch it was first in had to be rolled back.
    package let body: @Sendable (WriteTransaction) throws -> Answer
    /// Hears of it after the commit, when the events of the batch have left.
    package let done: @Sendable (Answer) -> Void

    package init(
        _ body: @escaping @Sendable (WriteTransaction) throws -> Answer,
        done: @escaping @Sendable (Answer) -> Void = { _ in }
    ) {
        self.body = body
        self.done = done
    }
}

/// The engine without its queue: runs batches of commands, one transaction each.
///
/// What it knows of time it is given, so tests and simulations drive it directly.
package final class EngineCore {
    /// What a batch came to: an answer for each command, and what others must hear.
    package struct Result: Sendable {
        package var answers: [Answer]
        package var events: [Event]
    }

    private let writer: StoreWriter
    private let clock: CommitClock
    private let metrics: ServerMetrics
    /// Tells of failures of the store; the text holds no user data.
    private let report: @Sendable (String) -> Void

    package init(
        writer: StoreWriter,
        clock: CommitClock,
        metrics: ServerMetrics,
        report: @escaping @Sendable (String) -> Void
    ) {
        self.writer = writer
        self.clock = clock
        self.metrics = metrics
        self.report = report
    }

    /// Runs all commands in one transaction; if that fails, each in one of its own.
    ///
    /// - Parameter wall: reads the wall clock, Unix milliseconds.
    package func run(_ commands: ArraySlice<Command>, wall: () -> Int64) -> Result {
        if let result = attempt(commands, wall: wall()) { return result }
        guard commands.count > 1 else {
            return Result(answers: [.refusal(.internalError)], events: [])
        }
        metrics.rerunBatches.add(1)
        var result = Result(answers: [], events: [])
        for index in commands.indices {
            let single = run(commands[index...index], wall: wall)
            result.answers += single.answers
            result.events += single.events
        }
        return result
    }

    /// Whether there is something that can wait until nobody asks for anything.
    package var hasSpareWork: Bool { writer.hasWordsToIndex }

    /// Does a step of it: some milliseconds, in a transaction of its own, which tells nobody anything.
    ///
    /// - Returns: false when the store failed.
    package func runSpareWork(wall: () -> Int64) -> Bool {
        let step = Command { tx in
            try tx.indexWords()
            return .done
        }
        guard case .done? = run([step][...], wall: wall).answers.first?.outcome else {
            return false
        }
        return true
    }

    /// Nil when the batch was rolled back.
    private func attempt(_ commands: ArraySlice<Command>, wall: Int64) -> Result? {
        let stamp = clock.begin(wall: wall)
        do {
            let tx = try writer.begin(stamp)
            var answers: [Answer] = []
            answers.reserveCapacity(commands.count)
            for command in commands {
                let writes = tx.writes
                do {
                    answers.append(try command.body(tx))
                } catch let refusal as RequestError {
                    // A refusal before the first write leaves nothing behind. One after it takes
                    // the whole batch back, and then fails alone.
                    guard tx.writes == writes else {
                        writer.rollback()
                        clock.end(committed: false)
                        return commands.count == 1
                            ? Result(answers: [.refusal(refusal)], events: []) : nil
                    }
                    answers.append(.refusal(refusal))
                }
            }
            guard tx.writes > 0 else {
                writer.finishUnwritten()
                clock.end(committed: false)
                return Result(answers: answers, events: [])
            }
            let events = try writer.commit()
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
