import TambourProtocol
import TambourSQL
package import TambourStore

/// Something for the engine to run in a write transaction.
package struct Command: Sendable {
    /// What runs. It may run twice when the batch it was first in had to be rolled back.
    package var body: @Sendable (WriteTransaction) throws -> Outcome

    package init(_ body: @escaping @Sendable (WriteTransaction) throws -> Outcome) {
        self.body = body
    }
}

/// The engine without its queue: runs batches of commands, one transaction each.
///
/// A pure machine: what it knows of time it is given, so tests and simulations drive it directly.
package final class EngineCore {
    /// What a batch came to: an outcome for each command, then what others must hear.
    package struct Result: Sendable {
        package var outcomes: [Outcome]
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
            return Result(outcomes: [.refusal(.internalError)], events: [])
        }
        metrics.rerunBatches.add(1)
        var result = Result(outcomes: [], events: [])
        for index in commands.indices {
            let single = run(commands[index...index], wall: wall)
            result.outcomes += single.outcomes
            result.events += single.events
        }
        return result
    }

    /// Nil when the batch was rolled back.
    private func attempt(_ commands: ArraySlice<Command>, wall: Int64) -> Result? {
        let stamp = clock.begin(wall: wall)
        do {
            let tx = try writer.begin(stamp)
            var outcomes: [Outcome] = []
            outcomes.reserveCapacity(commands.count)
            for command in commands {
                let writes = tx.writes
                do {
                    outcomes.append(try command.body(tx))
                } catch let refusal as RequestError {
                    // A refusal before the first write leaves nothing behind. One after it takes
                    // the whole batch back, and then fails alone.
                    guard tx.writes == writes else {
                        writer.rollback()
                        clock.end(committed: false)
                        return commands.count == 1
                            ? Result(outcomes: [.refusal(refusal)], events: []) : nil
                    }
                    outcomes.append(.refusal(refusal))
                }
            }
            guard tx.writes > 0 else {
                writer.finishUnwritten()
                clock.end(committed: false)
                return Result(outcomes: outcomes, events: [])
            }
            let events = try writer.commit()
            clock.end(committed: true)
            metrics.commits.add(1)
            metrics.committedCommands.add(commands.count)
            return Result(outcomes: outcomes, events: events)
        } catch {
            writer.rollback()
            clock.end(committed: false)
            metrics.failedBatches.add(1)
            report("a batch of \(commands.count) was rolled back: \(error)")
            return nil
        }
    }
}
