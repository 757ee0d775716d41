import ArgumentParser
import TambourClient
import TambourProtocol

struct Groups: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Creates and changes groups and channels.",
        discussion: """
            A person is named by phone, by the name of a contact, or by the beginning of such a name.

            EXAMPLES
              tambour groups create Friends Bob +79990000003
              tambour groups add Friends Carol
              tambour groups title Friends "Best friends"
              tambour groups members Friends --json | jq -r .name
            """,
        subcommands: [
            Create.self, Add.self, Remove.self, Title.self, Leave.self, Members.self,
        ]
    )

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates a group or channel, and prints its id."
        )

        @OptionGroup var options: ChangeOptions

        @Argument(help: "The title.")
        var title: String

        @Argument(help: "The other members.")
        var people: [String] = []

        @Flag(help: "Creates a channel, in which only administrators write.")
        var channel = false

        func run() async throws {
            let title = ChatName.plain(title)
            var before: Set<ChatID> = []
            try await options.perform { client in
                let members = try await client.people(named: people, within: options.wait.count)
                before = Set(try client.chats(includingHidden: true).map(\.id))
                // If the server refuses the creation, the action stays in the queue. No
                // `isPerformed` is therefore needed to detect the refusal.
                return QueuedChange([
                    try await client.createChat(title: title, members: members, isChannel: channel)
                ])
            } then: { client in
                let chats = try client.chats(includingHidden: true)
                let new = chats.filter { $0.id.isGroup && !before.contains($0.id) }
                if let chat = new.first(where: { $0.title == title }) { try say("\(chat.id)") }
            }
        }
    }

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Adds people to a group or channel."
        )

        @OptionGroup var options: ChangeOptions

        @Argument(help: .group)
        var chat: String

        @Argument(help: "The people to add.")
        var people: [String]

        func run() async throws {
            try await options.perform { client in
                let chat = try await client.group(named: chat, within: options.wait.count)
                let people = try await client.people(named: people, within: options.wait.count)
                return QueuedChange([try await client.add(people, to: chat)]) {
                    try await $0.members(among: people, of: chat) == people.count
                }
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes people from a group or channel."
        )

        @OptionGroup var options: ChangeOptions

        @Argument(help: .group)
        var chat: String

        @Argument(help: "The people to remove.")
        var people: [String]

        func run() async throws {
            try await options.perform { client in
                let chat = try await client.group(named: chat, within: options.wait.count)
                let people = try await client.people(named: people, within: options.wait.count)
                return QueuedChange([try await client.remove(people, from: chat)]) {
                    try await $0.members(among: people, of: chat) == 0
                }
            }
        }
    }

    struct Title: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Renames a group or channel.")

        @OptionGroup var options: ChangeOptions

        @Argument(help: .group)
        var chat: String

        @Argument(help: "The new title; several words are joined with spaces.")
        var title: [String]

        func run() async throws {
            let title = title.map(ChatName.plain).joined(separator: " ")
            guard !title.isEmpty else { throw ValidationError("A title cannot be empty.") }
            try await options.perform { client in
                let chat = try await client.group(named: chat, within: options.wait.count)
                return QueuedChange([try await client.update(chat, title: title)]) {
                    try $0.chat(chat)?.title == title
                }
            }
        }
    }

    struct Leave: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Leaves a group or channel, and deletes it from this device."
        )

        @OptionGroup var options: ChangeOptions

        @Argument(help: .group)
        var chat: String

        func run() async throws {
            try await options.perform { client in
                let chat = try await client.group(named: chat, within: options.wait.count)
                return QueuedChange([try await client.leave(chat)].compactMap(\.self)) {
                    try $0.chat(chat)?.isGone != false
                }
            }
        }
    }

    struct Members: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the members of a group or channel, as the server knows them."
        )

        @OptionGroup var account: AccountOptions

        @Argument(help: .group)
        var chat: String

        @Flag(help: "Prints a line of JSON for each member (docs/schema/person.json).")
        var json = false

        func run() async throws {
            let client = try account.signedIn()
            client.start()
            let chat = try await client.group(named: chat, within: 10)
            let members = try await client.telling(nil) { try await client.roster(of: chat) }
            await client.stop()
            for member in members {
                try say(
                    json
                        ? PersonLine(member.person, role: member.role).json
                        : member.person.line(role: member.role)
                )
            }
        }
    }
}

extension ArgumentHelp {
    /// The help of an argument that names a group or channel.
    fileprivate static let group: ArgumentHelp = "The group or channel: its id or title."
}

extension Client {
    /// Returns the group or channel that a name means.
    fileprivate func group(named name: String, within seconds: Int) async throws -> ChatID {
        let chat = try await chat(named: name, within: seconds)
        guard chat.isGroup else {
            throw Failure("“\(ChatName.plain(name))” is a person, not a group or channel")
        }
        return chat
    }

    /// Returns how many of `people` are members of a group or channel.
    fileprivate func members(among people: [UserID], of chat: ChatID) async throws -> Int {
        try await roster(of: chat).count { people.contains($0.id) }
    }

    /// Returns the people that `names` mean. Queries the server about unknown phone numbers.
    ///
    /// - Parameter seconds: The time limit of each query. If 0, does not query the server.
    fileprivate func people(named names: [String], within seconds: Int) async throws -> [UserID] {
        guard let me = try me() else { return [] }
        var people: [UserID] = []
        for name in names {
            let dialog = try await dialog(named: name, within: seconds)
            if let person = dialog.partner(of: me) { people.append(person) }
        }
        return people
    }
}
