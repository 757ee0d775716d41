import Dispatch
import Synchronization
import TambourNet
package import TambourStore

/// A few connections that only read, each on a queue of its own; jobs go to whichever is free.
///
/// `@unchecked Sendable`: each connection is touched on its own queue only, and the list of them
/// never changes.
package final class ReaderPool: @unchecked Sendable {
    package typealias Job = @Sendable (StoreConnection) -> Void

    private struct State {
        var waiting: [Job] = []
        var idle: [Int]
    }

    private let readers: [(queue: SerialQueue, store: StoreConnection)]
    private let state: Mutex<State>

    package init(_ stores: [StoreConnection], environment: Environment) {
        readers = stores.enumerated().map { index, store in
            let label = "tambour.reader-\(index)"
            return (SerialQueue(label: label, simulated: environment.scheduler), store)
        }
        state = Mutex(State(idle: Array(stores.indices)))
    }

    /// Queues a job. Readers take jobs in the order they were posted, each a share at a time: two jobs
    /// may run at once or the later one first.
    package func post(_ job: @escaping Job) {
        let reader: Int? = state.withLock { state in
            state.waiting.append(job)
            return state.idle.popLast()
        }
        guard let reader else { return }
        readers[reader].queue.async { self.work(reader) }
    }

    private func work(_ reader: Int) {
        while true {
            let jobs: [Job] = state.withLock { state in
                if state.waiting.isEmpty {
                    state.idle.append(reader)
                    return []
                }
                // A share, so that the others find work too.
                let share = max(1, state.waiting.count / readers.count)
                let jobs = Array(state.waiting.prefix(share))
                state.waiting.removeFirst(share)
                return jobs
            }
            if jobs.isEmpty { return }
            for job in jobs { job(readers[reader].store) }
        }
    }

    /// Runs `body` when everything posted before has run; used once, at the end.
    package func close(_ body: @escaping @Sendable () -> Void) {
        let group = DispatchGroup()
        for reader in readers {
            group.enter()
            reader.queue.async { group.leave() }
        }
        group.notify(queue: .global(), execute: body)
    }
}
