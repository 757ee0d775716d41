import Dispatch
import Synchronization
import TambourNet
import TambourProtocol
package import TambourStore

/// A few connections that only read, each on a queue of its own; jobs go to whichever is free.
///
/// One reader is for logins alone, so that no search keeps them waiting; the others take logins only
/// while no query waits. Subjects have their turns one after the other, and a subject has one query and
/// one login running at most: nobody holds all readers.
///
/// `@unchecked Sendable`: each connection is touched on its own queue only, and the list of them
/// never changes.
package final class ReaderPool: @unchecked Sendable {
    package struct Job: Sendable {
        /// Runs on a reader; returns what is to run after others had their turns, nil at the end.
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
        /// Readers of queries with nothing to do.
        var idle: [Int]
        var isLoginReaderIdle = true
        /// Called when nothing is left to do.
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

        /// Takes what is to be called when nothing is left to do, if that is so.
        mutating func takeOnIdle(readers: Int) -> (@Sendable () -> Void)? {
            guard idle.count == readers, isLoginReaderIdle, queries.isEmpty, logins.isEmpty else {
                return nil
            }
            return onIdle.take()
        }

        /// Takes an idle reader that has something to do off the list.
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
    ///   - maxUnfinished: how many jobs of each kind may wait for their next step. While that many wait, a
    ///     job runs its next step at once.
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

    /// Queues a job. The jobs of one kind and subject run one after the other, in the order in which
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

    /// The same for a job of several steps: the subject's next job follows the last one.
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
                // What just became possible may be for another reader than this one.
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

    /// Runs `body` when everything posted before has run; used once, at the end.
    package func close(_ body: @escaping @Sendable () -> Void) {
        let isIdle = state.withLock { state in
            state.onIdle = body
            return state.takeOnIdle(readers: loginReader) != nil
        }
        if isIdle { DispatchQueue.global().async(execute: body) }
    }
}
