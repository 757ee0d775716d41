import ArgumentParser
import TambourClient
import TambourProtocol

/// How long a command waits for the server, in seconds.
struct Seconds: ExpressibleByArgument, ExpressibleByIntegerLiteral, CustomStringConvertible {
    let count: Int

    init(integerLiteral count: Int) { self.count = count }

    /// - Returns: nil if the text is not a number of seconds between 0 and one day.
    init?(argument: String) {
        guard let count = Int(argument), (0...86_400).contains(count) else { return nil }
        self.count = count
    }

    var description: String { "\(count)" }
    var defaultValueDescription: String { description }
    var duration: Duration { .seconds(count) }
}

/// The options of commands that change data: the account, and how long to wait for the server.
struct ChangeOptions: ParsableArguments {
    @OptionGroup var account: AccountOptions

    @Option(
        help: ArgumentHelp(
            "How long to wait for the server; 0 only queues the change.",
            valueName: "seconds"
        )
    )
    var wait: Seconds = 30

    /// Queues a change, and waits until the server has performed or refused it.
    ///
    /// - Parameters:
    ///   - body: Queues the change.
    ///   - finish: Runs after the server has performed the change.
    /// - Throws: `Failure` if the server refuses the change; `ExitCode(2)` if the change still
    ///   waits at the end.
    func perform(
        _ body: (Client) async throws -> QueuedChange,
        then finish: (Client) throws -> Void = { _ in }
    ) async throws {
        let client = try account.signedIn()
        let events = client.events()
        let refusals = Task {
            var reasons: [String] = []
            for await case .refused(let reason) in events { reasons.append(reason) }
            return reasons
        }
        let outcome: Outcome
        do {
            let change = try await body(client)
            if wait.count > 0 {
                client.start()
                await client.wait(for: change.actions, within: wait.duration)
            }
            outcome = try Outcome(of: change.actions, client)
            if outcome.isDone {
                // Another process sends the change. It does not report a refusal to this process.
                if client.state == .elsewhere, try await !change.isPerformed(client) {
                    throw Failure(
                        "The server refused the change. The `tambour` that is connected shows the reason."
                    )
                }
                try finish(client)
            }
        } catch {
            await client.stop()
            throw error
        }
        await client.stop()
        if let reason = await refusals.value.first {
            throw Failure("The server refused the change: \(reason)")
        }
        try outcome.report()
    }
}

/// A change that waits in the queue.
struct QueuedChange {
    /// The ids of the queued actions.
    let actions: [OutgoingID]
    /// Returns whether the account's data on this device contains the change. Called after the
    /// actions have left the queue.
    let isPerformed: (Client) async throws -> Bool

    init(
        _ actions: [OutgoingID],
        isPerformed: @escaping (Client) async throws -> Bool = { _ in true }
    ) {
        self.actions = actions
        self.isPerformed = isPerformed
    }
}

/// The outcome of queued actions: how many still wait, and why the server refused one of them.
struct Outcome {
    /// The number of actions that still wait for the server.
    let waiting: Int
    /// The reason why the server refused the first refused action; nil if none was refused.
    let failure: String?
    private let isSignedIn: Bool
    private let isOnline: Bool

    /// Whether all actions have left the queue: none waits, and none was refused.
    var isDone: Bool { waiting == 0 && failure == nil }

    init(of actions: [OutgoingID], _ client: Client) throws {
        waiting = try actions.count { try client.isWaiting($0) }
        failure = try actions.lazy.compactMap { try client.failure(of: $0) }.first
        isSignedIn = try client.isSignedIn()
        isOnline = client.state == .online
    }

    /// Tells the user which actions wait and which one was refused.
    ///
    /// - Throws: `Failure` if the server refused an action; `ExitCode(2)` if an action still waits.
    func report() throws {
        if waiting > 0 {
            let what = waiting == 1 ? "One action waits" : "\(waiting) actions wait"
            let next = "`tambour queue` lists what waits, and `tambour queue --flush` sends it."
            let cause = isOnline ? " The server limits how fast it accepts them." : ""
            remark(
                isSignedIn
                    ? "\(what) for the server.\(cause) \(next)"
                    : "\(what) for the server. \(AccountOptions.signedOut)"
            )
        }
        if let failure {
            throw Failure(
                "The server refused it: \(failure). `tambour queue` lists it, to retry or cancel."
            )
        }
        if waiting > 0 { throw ExitCode(2) }
    }
}

extension Client {
    /// Runs `body` with a time limit. If it takes longer than two seconds, tells the user what the
    /// command waits for.
    ///
    /// - Returns: The result of `body`; false if the time limit passes first.
    func within(_ limit: Duration, _ body: @escaping @Sendable () async -> Bool) async -> Bool {
        await telling(limit) {
            await withTaskGroup(of: Bool.self) { group in
                group.addTask { await body() }
                group.addTask {
                    try? await Task.sleep(for: limit)
                    return false
                }
                let isDone = await group.next() ?? false
                group.cancelAll()
                return isDone
            }
        }
    }

    /// The time after which the command tells the user what it waits for.
    private static let silence = Duration.seconds(2)

    /// Runs `body`. If it takes longer than two seconds, tells the user what the command waits for.
    ///
    /// - Parameter limit: The time limit of `body`, which the notice states; nil if there is no
    ///   limit.
    func telling<Value>(
        _ limit: Duration?,
        _ body: () async throws -> Value
    ) async rethrows -> Value {
        let notice = Task {
            if let limit, limit <= Self.silence { return }
            try await Task.sleep(for: Self.silence)
            remark(printable(await waitNotice(limit.map { $0 - Self.silence })))
        }
        defer { notice.cancel() }
        return try await body()
    }

    /// Returns a notice for the user: what the command waits for, how long it waits, and what
    /// Ctrl-C does.
    private func waitNotice(_ rest: Duration?) async -> String {
        let address = (try? server()).flatMap { $0?.description }
        let server = address ?? "the server"
        let failure = await connectionFailure()
        let cause =
            switch state {
            case .online: "an answer of \(server)"
            case .syncing: "the changes from \(server)"
            case .elsewhere: "the `tambour` that is connected"
            case .stopped, .connecting, .signedOut: "a connection to \(server)"
            }
        let time = rest.map { ", up to \($0.components.seconds) s more" } ?? ""
        let why = failure.map {
            " \(ClientError.unreachable(server: server, $0).words)"
        }
        return "Waiting for \(cause)\(time).\(why ?? "") Ctrl-C stops waiting; nothing is lost."
    }

    /// Waits until all actions in `outgoing` are done or refused. Also returns when the account is
    /// signed out or the time limit passes.
    func wait(for outgoing: [OutgoingID], within limit: Duration) async {
        let changes = changes()
        _ = await within(limit) {
            var left = outgoing[...]
            func isWaiting() -> Bool {
                // The actions finish in roughly this order, so it is enough to check the first
                // unfinished one.
                while let next = left.first, (try? self.isWaiting(next)) != true {
                    left.removeFirst()
                }
                return !left.isEmpty && (try? self.isSignedIn()) != false
            }
            guard isWaiting() else { return true }
            for await change in changes where change.queue || change.account || change.everything {
                guard isWaiting() else { return true }
            }
            return false
        }
    }
}
