import ArgumentParser
import TambourClient

struct Queue: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists, cancels and retries actions that the server has not performed yet.",
        discussion: """
            An action waits until the server can be reached. An action that the server refused stays in the list until it is \
            retried or cancelled.

            EXAMPLES
              tambour queue
              tambour queue --flush
              tambour queue cancel 117676934795820807
              tambour queue retry --all
            """,
        subcommands: [List.self, Cancel.self, Retry.self],
        defaultSubcommand: List.self
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the actions, oldest first. Exit code 2: some wait for the server."
        )

        @OptionGroup var account: AccountOptions

        @Flag(help: "Connects first, and performs the actions.")
        var flush = false

        @Flag(help: "Prints only how many actions wait.")
        var count = false

        @Flag(help: "Prints a line of JSON for each action (docs/schema/action.json).")
        var json = false

        /// The time limit of `--flush`.
        private static let patience = Duration.seconds(60)

        func run() async throws {
            let client = try account.signedIn()
            if flush {
                client.start()
                _ = await client.telling(Self.patience) {
                    await client.settle(within: Self.patience)
                }
            }
            let length = try client.queueLength()
            let actions = try client.waiting()
            await client.stop()
            if count {
                try say("\(length)")
            } else {
                for action in actions {
                    try say(json ? ActionLine(action).json : action.line())
                }
            }
            if length > 0 { throw ExitCode(2) }
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancels waiting actions, and discards refused ones."
        )

        @OptionGroup var account: AccountOptions

        @Argument(help: "The ids of the actions, as `tambour queue` prints them.")
        var ids: [ActionID] = []

        @Flag(help: "Cancels all actions.")
        var all = false

        func validate() throws { try requireEither(ids, all) }

        func run() async throws {
            let client = try account.signedIn()
            do {
                for action in try client.actions(all ? nil : ids) {
                    try await client.cancel(action.id)
                }
            } catch {
                await client.stop()
                throw error
            }
            await client.stop()
        }
    }

    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retries actions that the server refused."
        )

        @OptionGroup var options: ChangeOptions

        @Argument(help: "The ids of the actions, as `tambour queue` prints them.")
        var ids: [ActionID] = []

        @Flag(help: "Retries all refused actions.")
        var all = false

        func validate() throws { try requireEither(ids, all) }

        func run() async throws {
            try await options.perform { client in
                var actions = try client.actions(all ? nil : ids)
                if all { actions.removeAll { $0.failure == nil } }
                for action in actions {
                    guard action.failure != nil else {
                        throw Failure(
                            "The server has not refused action \(action.id): it is sent as soon as the server can be reached"
                        )
                    }
                }
                for action in actions { try await client.retry(action.id) }
                return QueuedChange(actions.map(\.id))
            }
        }
    }
}

/// The id of an action as an argument. Most ids are negative, and the parser would take them for
/// options. `ChatName.marked` prevents this.
struct ActionID: ExpressibleByArgument {
    let rawValue: Int64

    init?(argument: String) {
        guard let value = Int64(ChatName.plain(argument)) else { return nil }
        rawValue = value
    }
}

/// - Throws: `ValidationError` if the user gives neither ids nor `--all`, or both.
private func requireEither(_ ids: [ActionID], _ all: Bool) throws {
    if ids.isEmpty != all { throw ValidationError("Give either the ids of actions or --all.") }
}

extension Client {
    /// Returns the queued and refused actions with these ids.
    ///
    /// - Parameter ids: The ids; nil to return all actions.
    /// - Throws: `Failure` if no queued or refused action has one of the ids.
    fileprivate func actions(_ ids: [ActionID]?) throws -> [Waiting] {
        let actions = try waiting()
        guard let ids else { return actions }
        return try ids.map { id in
            guard let action = actions.first(where: { $0.id.rawValue == id.rawValue }) else {
                throw Failure("No action \(id.rawValue) waits: `tambour queue` lists those that do")
            }
            return action
        }
    }
}
