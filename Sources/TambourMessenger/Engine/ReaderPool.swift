import Dispatch
import Synchronization
import TambourProtocol
import TambourQueues
package import TambourStore

/// A few read-only connections, each on its own queue. An idle connection takes the next job.
///
/// One reader serves only logins, so that no login waits for a search. The other readers serve a
/// login only when no query waits. Subjects take turns. Each subject has at most one query and one
/// login running, so no subject can occupy all readers.
///
/// `@unchecked Sendable`: only a connection's own queue touches it, and the list of connections
/// never changes.
package final class ReaderPool: @unchecked Sendable {
    package struct Job: Sendable {
        /// Runs on a reader. Returns the next step, which runs after the turns of other subjects.
        /// Returns nil when the job is done.
        let run: @Sendable (StoreConnection) -> Job?

        package init(_ run: @escaping @Sendable (StoreConnection) -> Job?) {
            self.run = run
        }
    }

    package enum Kind: Sendable {
        case query
        case login
    }

    private struct State {
        var queries = FairQueue<WorkSubject, Job>()
        var logins = FairQueue<WorkSubject, Job>()
        /// The idle readers that serve queries.
        var idle: [Int]
        var isLoginReaderIdle = true
        /// Called when no job is left.
        var onIdle: (@Sendable () -> Void)?

        /// Takes the next job for a reader.
        mutating func take(forLoginsOnly: Bool) -> (kind: Kind, subject: WorkSubject, job: Job)? {
            if !forLoginsOnly, let (subject, job) = queries.take() { return (.query, subject, job) }
            if let (subject, job) = logins.take() { return (.login, subject, job) }
            return nil
        }

        mutating func finish(_ kind: Kind, _ subject: WorkSubject, rest: Job?) {
            switch kind {
            case .query: queries.finish(subject, rest: rest)
            case .login: logins.finish(subject, rest: rest)
            }
        }

        /// The number of jobs of a kind that wait for their next step.
        func unfinished(_ kind: Kind) -> Int {
            switch kind {
            case .query: queries.rests
            case .login: logins.rests
            }
        }

        /// If no job is left, clears `onIdle` and returns its old value.
        mutating func takeOnIdle(readers: Int) -> (@Sendable () -> Void)? {
            guard idle.count == readers, isLoginReaderIdle, queries.isEmpty, logins.isEmpty else {
                return nil
            }
            return onIdle.take()
        }

        /// Marks an idle reader as busy if a job is ready for it, and returns its index.
        mutating func wake(loginReader: Int) -> Int? {
            if logins.hasReady, isLoginReaderIdle {
                isLoginReaderIdle = false
                return loginReader
            }
            return queries.hasReady || logins.hasReady ? idle.popLast() : nil
        }
    }

    private let readers: [(queue: SerialQueue, store: StoreConnection)]
    private let loginReader: Int
    private let maxUnfinished: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - stores: connections for queries, at least one.
    ///   - logins: the connection for logins.
    ///   - maxUnfinished: the number of jobs of each kind that may wait for their next step. When
    ///     this limit is reached, a job runs its next step at once.
    package init(
        _ stores: [StoreConnection],
        logins: StoreConnection,
        maxUnfinished: Int,
        environment: Environment
    ) {
        self.maxUnfinished = maxUnfinished
        readers = (stores + [logins]).enumerated().map { index, store in
            let label = "tambour.reader-\(index)"
            return (SerialQueue(label: label, simulated: environment.scheduler), store)
        }
        loginReader = stores.count
        state = Mutex(State(idle: Array(stores.indices)))
    }

    /// Queues a job. The jobs of one kind and subject run one after another, in the order in which
    /// they were posted.
    package func post(
        _ kind: Kind = .query,
        for subject: WorkSubject,
        _ body: @escaping @Sendable (StoreConnection) -> Void
    ) {
        let job = Job {
            body($0)
            return nil
        }
        post(kind, for: subject, job)
    }

    /// Queues a job of several steps. The subject's next job of this kind starts after the last
    /// step.
    package func post(_ kind: Kind = .query, for subject: WorkSubject, _ job: Job) {
        let reader: Int? = state.withLock { state in
            switch kind {
            case .query: state.queries.add(job, of: subject)
            case .login: state.logins.add(job, of: subject)
            }
            return state.wake(loginReader: loginReader)
        }
        start(reader)
    }

    private func start(_ reader: Int?) {
        guard let reader else { return }
        readers[reader].queue.async { self.work(reader) }
    }

    private func work(_ reader: Int) {
        var done: (kind: Kind, subject: WorkSubject, rest: Job?)?
        while true {
            let (next, other, onIdle) = state.withLock { state in
                if let done { state.finish(done.kind, done.subject, rest: done.rest) }
                let next = state.take(forLoginsOnly: reader == loginReader)
                if next == nil {
                    if reader == loginReader {
                        state.isLoginReaderIdle = true
                    } else {
                        state.idle.append(reader)
                    }
                }
                // A job that has just become ready may need another reader.
                let other = state.wake(loginReader: loginReader)
                return (next, other, state.takeOnIdle(readers: loginReader))
            }
            start(other)
            onIdle?()
            guard let next else { return }
            var rest = next.job.run(readers[reader].store)
            while let job = rest, state.withLock({ $0.unfinished(next.kind) >= maxUnfinished }) {
                rest = job.run(readers[reader].store)
            }
            done = (next.kind, next.subject, rest)
        }
    }

    /// Runs `body` when all jobs that were posted earlier are done. Called once, at shutdown.
    package func close(_ body: @escaping @Sendable () -> Void) {
        let isIdle = state.withLock { state in
            state.onIdle = body
            return state.takeOnIdle(readers: loginReader) != nil
        }
        if isIdle { DispatchQueue.global().async(execute: body) }
    }
}
