import Logging
import Synchronization
import TambourEvents
import TambourMessenger
import TambourProtocol

/// Runs a program for each code. The program reads two lines from its standard input: the phone
/// number or e-mail address, and the code.
///
/// At most `maxCodeProgramsRunning` programs run at a time; further codes wait. If a program fails
/// or hangs, its code returns to the end of the queue after 1, 2, 4 … s. After five tries the code
/// is dropped, and the person must request another code. A program that hangs does not block the
/// server.
final class CodeProgram: Sendable {
    private struct Job: Sendable {
        let recipient: CodeRecipient
        let code: String
        /// The number of failed runs.
        var failures = 0
    }

    private struct State {
        var waiting: [Job] = []
        /// The number of jobs that wait for their next retry.
        var resting = 0
        var running: [Int: Task<Void, Never>] = [:]
        var lastID = 0
        var runs: [CodeRunOutcome: Int] = [:]
        var isClosed = false
        /// Called when the last running program has ended.
        var ended: (@Sendable () -> Void)?
    }

    private static let tries = 5
    /// The time for which a program may continue after the server begins to stop.
    private static let grace: Duration = .seconds(2)

    private let program: Program
    private let limits: Limits
    private let logger: Logger
    private let state = Mutex(State())

    init(program: Program, limits: Limits, logger: Logger) {
        self.program = program
        self.limits = limits
        self.logger = logger
    }

    /// Whether another code may be requested. True if fewer than `maxCodesWaiting` codes wait.
    var hasRoom: Bool {
        state.withLock { $0.waiting.count + $0.resting < limits.maxCodesWaiting }
    }

    /// The number of runs since the start of the server, by outcome.
    var runs: [CodeRunOutcome: Int] {
        state.withLock { state in
            Dictionary(
                uniqueKeysWithValues: CodeRunOutcome.allCases.map { ($0, state.runs[$0] ?? 0) }
            )
        }
    }

    private func count(_ outcome: CodeRunOutcome, _ number: Int = 1) {
        state.withLock { $0.runs[outcome, default: 0] += number }
    }

    func deliver(_ recipient: CodeRecipient, _ code: String) {
        state.withLock { $0.waiting.append(Job(recipient: recipient, code: code)) }
        startNext()
    }

    /// Drops waiting codes. Gives running programs a short time to finish, and then kills the
    /// remaining ones with all their children.
    func stop(then body: @escaping @Sendable () -> Void) {
        let (dropped, isIdle) = state.withLock { state in
            state.isClosed = true
            let dropped = state.waiting.count + state.resting
            state.waiting = []
            if !state.running.isEmpty { state.ended = body }
            return (dropped, state.running.isEmpty)
        }
        if dropped > 0 {
            count(.dropped, dropped)
            logger.warning("login codes were not delivered", metadata: ["count": "\(dropped)"])
        }
        if isIdle { return body() }
        Task {
            try? await Task.sleep(for: Self.grace)
            for task in state.withLock({ Array($0.running.values) }) { task.cancel() }
        }
    }

    private func startNext() {
        state.withLock { state in
            while !state.isClosed, !state.waiting.isEmpty,
                state.running.count < limits.maxCodeProgramsRunning
            {
                let job = state.waiting.removeFirst()
                state.lastID += 1
                let id = state.lastID
                state.running[id] = Task {
                    await run(job)
                    ended(id)
                }
            }
        }
    }

    private func ended(_ id: Int) {
        let body: (@Sendable () -> Void)? = state.withLock { state in
            state.running[id] = nil
            guard state.running.isEmpty else { return nil }
            defer { state.ended = nil }
            return state.ended
        }
        body?()
        startNext()
    }

    private func run(_ job: Job) async {
        do {
            let input = "\(job.recipient.address)\n\(job.code)\n"
            try await program.run(
                input,
                within: .milliseconds(limits.codeProgramTimeoutMs)
            )
            count(.sent)
        } catch {
            var job = job
            job.failures += 1
            logger.warning(
                "the login code program failed",
                metadata: ["try": "\(job.failures)", "reason": "\(error)"]
            )
            if job.failures < Self.tries {
                count(.failed)
                retry(job)
            } else {
                count(.dropped)
            }
        }
    }

    /// Queues a failed job again after a delay. The delay doubles with every failure of the job.
    private func retry(_ job: Job) {
        let isOpen = state.withLock { state in
            if !state.isClosed { state.resting += 1 }
            return !state.isClosed
        }
        guard isOpen else { return }
        Task {
            try? await Task.sleep(for: .seconds(1 << (job.failures - 1)))
            state.withLock { state in
                state.resting -= 1
                if !state.isClosed { state.waiting.append(job) }
            }
            startNext()
        }
    }
}
