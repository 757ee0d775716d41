import Dispatch
import Synchronization
import TambourProtocol
import TambourQueues
package import TambourStore

/// Methods for the operator's commands. Each method blocks its caller until the result is
/// available. Never call one on a queue of the engine, a reader or a door.
extension Messenger {
    /// Runs a piece of work on the engine. The work runs a second time if its first batch was
    /// rolled back.
    package func write(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        let failure = Box<(any Error)?>(nil)
        let done = DispatchSemaphore(value: 0)
        let command = Command { tx in
            failure.value = nil
            do {
                try body(tx)
            } catch let error as AdminService.Failure {
                // Convert the error to a refusal. Another kind of error would roll back the whole
                // batch with the commands of clients.
                failure.value = error
                throw RequestError.notAllowed
            }
            return .done
        } done: { answer in
            if case .refusal(let error) = answer.outcome, failure.value == nil {
                failure.value = error
            }
            done.signal()
        }
        engine.post(command)
        done.wait()
        if let error = failure.value { throw error }
    }

    /// Runs a piece of work on a reader. The work and the queries of clients take turns.
    package func read(_ body: @escaping @Sendable (StoreConnection) throws -> Void) throws {
        let failure = Box<(any Error)?>(nil)
        let done = DispatchSemaphore(value: 0)
        readers.post(for: .server) { store in
            do { try body(store) } catch { failure.value = error }
            done.signal()
        }
        done.wait()
        if let error = failure.value { throw error }
    }

    /// Opens another read-only connection for long-running work.
    package func openStore() throws -> StoreConnection {
        try stores.openApart()
    }

    /// Whether a rewrite of the store delays all commands.
    package var isVacuuming: Bool { vacuums.load(ordering: .relaxed) > 0 }

    /// Rewrites the store without deleted data. Commands wait until the rewrite ends.
    ///
    /// - Returns: the size of the file before and after, in bytes.
    package func vacuum() throws -> (before: Int64, after: Int64) {
        let result = Mutex<Result<(before: Int64, after: Int64), any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        vacuums.add(1, ordering: .relaxed)
        defer { vacuums.subtract(1, ordering: .relaxed) }
        engine.queue.async { [stores] in
            let outcome = Result { try stores.vacuum() }
            result.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        guard let outcome = result.withLock({ $0 }) else {
            preconditionFailure("the engine signals when it is done")
        }
        return try outcome.get()
    }
}
