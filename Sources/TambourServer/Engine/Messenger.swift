import TambourNet
import TambourProtocol
import TambourStore

/// The messenger as a door sees it: runs commands, reads queries, and does the two steps of a login.
///
/// Answers are handed over on some queue; a command's events have reached the doors before its answer.
final class Messenger: Sendable {
    /// Who makes a request, when it came, and whether its answer is still wanted.
    struct RequestContext: Sendable {
        let requester: Requester
        /// When it was read; microseconds of the queues' clock.
        let arrivalUs: Int64
        /// Whether anybody still waits for the answer; asked before each step of a read.
        let isWanted: @Sendable () -> Bool

        fileprivate var subject: WorkSubject { WorkSubject(requester) }
    }

    private let engine: Engine
    private let readers: ReaderPool
    private let dispatcher: Dispatcher
    private let passwords: PasswordHasher
    private let router: PushRouter
    private let clock: CommitClock
    private let environment: Environment
    private let queueTimes: QueueTimes

    init(
        engine: Engine,
        readers: ReaderPool,
        dispatcher: Dispatcher,
        passwords: PasswordHasher,
        router: PushRouter,
        clock: CommitClock,
        environment: Environment,
        queueTimes: QueueTimes
    ) {
        self.engine = engine
        self.readers = readers
        self.dispatcher = dispatcher
        self.passwords = passwords
        self.router = router
        self.clock = clock
        self.environment = environment
        self.queueTimes = queueTimes
    }

    private var safeTime: Int64 { clock.safeTime(wall: environment.wallMs()) }

    // MARK: - Commands

    /// Runs a command on the engine, after hashing the password that it carries.
    func run(
        _ command: CommandRequest,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        guard PasswordHasher.concerns(command) else {
            return post(command, nil, context, then: completion)
        }
        passwords.post(command, from: context.requester) { [self] password, finished in
            switch password {
            case .success(let password):
                post(command, password, context) {
                    completion($0)
                    finished()
                }
            case .failure(let error):
                completion(.refusal(error))
                finished()
            }
        }
    }

    private func post(
        _ command: CommandRequest,
        _ password: HashedPassword?,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        let dispatcher = dispatcher
        let command = Command(for: context.subject, arrivalUs: context.arrivalUs) { tx in
            try dispatcher.command(command, from: context.requester, password: password, in: tx)
        } done: {
            completion($0)
        }
        engine.post(command)
    }

    // MARK: - Queries

    /// Reads a query on a reader, step by step.
    func read(
        _ query: QueryRequest,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        let job = ReaderPool.Job { [self] store in
            guard context.isWanted() else { return nil }
            note(.reader, context)
            let result = dispatcher.query(
                query,
                from: context.requester,
                time: safeTime,
                on: store
            )
            router.route(result.events)
            return rest(of: result.answer, context, then: completion)
        }
        readers.post(for: context.subject, job)
    }

    /// Hands over the answer of a read, or returns what is to be read next; on a reader.
    private func rest(
        of answer: Answer,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) -> ReaderPool.Job? {
        guard answer.restOfQuery != nil else {
            completion(answer)
            return nil
        }
        return ReaderPool.Job { [self] store in
            guard context.isWanted() else { return nil }
            return rest(of: dispatcher.resume(answer, on: store), context, then: completion)
        }
    }

    // MARK: - Login

    /// Looks up a login token.
    ///
    /// - Parameter known: the account of the connection; another one's token is refused.
    func resolve(
        _ token: String,
        knownAs known: Caller?,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Result<SessionRecord, RequestError>) -> Void
    ) {
        readers.post(.login, for: context.subject) { [self] store in
            guard context.isWanted() else { return }
            note(.login, context)
            completion(dispatcher.resolve(token, knownAs: known, on: store))
        }
    }

    /// Checks that a token which was just given is still alive.
    func check(
        _ token: String,
        of subject: WorkSubject,
        then died: @escaping @Sendable () -> Void
    ) {
        readers.post(.login, for: subject) { [dispatcher] store in
            let found = dispatcher.resolve(token, knownAs: nil, on: store)
            if case .failure = found { died() }
        }
    }

    /// Reads the snapshot of a LOGIN whose session already hears of events, so that it misses no later commit.
    func login(
        _ request: LoginRequest,
        _ context: RequestContext,
        then completion: @escaping @Sendable (Answer) -> Void
    ) {
        let job = ReaderPool.Job { [self] store in
            guard context.isWanted() else { return nil }
            let answer = dispatcher.login(
                request,
                from: context.requester,
                time: safeTime,
                on: store
            )
            return rest(of: answer, context, then: completion)
        }
        readers.post(.login, for: context.subject, job)
    }

    private func note(_ place: QueueTimes.Place, _ context: RequestContext) {
        queueTimes.record(place, context.subject, engine.queue.nowUs - context.arrivalUs)
    }
}
