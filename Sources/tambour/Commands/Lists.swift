import ArgumentParser
import TambourClient

struct Chats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the chats on this device.",
        discussion: """
            EXAMPLES
              tambour chats --sync
              tambour chats --json | jq -r 'select(.unread > 0) | .title'
            """
    )

    @OptionGroup var account: AccountOptions

    @Flag(help: "Includes hidden chats.")
    var all = false

    @Flag(help: "Fetches changes from the server first.")
    var sync = false

    @Flag(help: "Prints a line of JSON for each chat (docs/schema/chat.json).")
    var json = false

    /// The time limit of `--sync`.
    private static let patience = Duration.seconds(15)

    func run() async throws {
        let client = try account.signedIn()
        if sync {
            client.start()
            _ = await client.telling(Self.patience) { await client.settle(within: Self.patience) }
        }
        for chat in try client.chats(includingHidden: all) {
            try say(json ? ChatLine(chat).json : chat.line())
        }
        await client.stop()
    }
}

struct People: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the contacts on this device.",
        discussion: """
            EXAMPLES
              tambour people --json | jq -r '[.name, .phone] | @tsv'
            """
    )

    @OptionGroup var account: AccountOptions

    @Flag(help: "Prints a line of JSON for each contact (docs/schema/person.json).")
    var json = false

    func run() async throws {
        let client = try account.signedIn()
        for person in try client.people() {
            try say(json ? PersonLine(person).json : person.line())
        }
        await client.stop()
    }
}

struct Sessions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the devices that are signed in to the account, or signs them out.",
        discussion: """
            The list comes from the server.

            EXAMPLES
              tambour sessions --json | jq -r 'select(.current | not) | .device'
              tambour sessions close 117676934795820807
              tambour sessions close --others
            """,
        subcommands: [List.self, Close.self],
        defaultSubcommand: List.self
    )

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the devices, this one first."
        )

        @OptionGroup var account: AccountOptions

        @Flag(help: "Prints a line of JSON for each device (docs/schema/session.json).")
        var json = false

        func run() async throws {
            let client = try account.signedIn()
            client.start()
            let sessions = try await client.telling(nil) { try await client.sessions() }
            await client.stop()
            for session in sessions {
                try say(json ? SessionLine(session).json : session.line())
            }
        }
    }

    struct Close: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Signs out other devices.")

        @OptionGroup var account: AccountOptions

        @Argument(help: "The ids of the devices, as `tambour sessions` prints them.")
        var ids: [Int64] = []

        @Flag(help: "Signs out all devices but this one.")
        var others = false

        func validate() throws {
            if ids.isEmpty != others {
                throw ValidationError("Give either the ids of devices or --others.")
            }
        }

        func run() async throws {
            let client = try account.signedIn()
            client.start()
            do {
                try await client.telling(nil) { try await close(client) }
            } catch {
                await client.stop()
                throw error
            }
            await client.stop()
        }

        private func close(_ client: Client) async throws {
            if others { return try await client.closeOtherSessions() }
            let known = Set(try await client.sessions().compactMap(\.id))
            for id in ids {
                guard known.contains(id) else {
                    throw Failure(
                        "No device \(id) is signed in: `tambour sessions` lists those that are"
                    )
                }
            }
            for id in ids { try await client.closeSession(id) }
        }
    }
}
