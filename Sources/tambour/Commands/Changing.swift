import ArgumentParser
import TambourClient
import TambourProtocol

struct Mark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Marks a chat as read, up to its newest message or a given one.",
        discussion: """
            EXAMPLES
              tambour mark Bob
              tambour mark Bob 117676934795820807 --unread
            """
    )

    @OptionGroup var options: ChangeOptions

    @Argument(help: .chat)
    var chat: String

    @Argument(help: .message)
    var message: Int64?

    @Flag(help: "Marks the given message and all later ones as unread.")
    var unread = false

    func validate() throws {
        if unread, message == nil {
            throw ValidationError("--unread needs the message from which on the chat is unread.")
        }
    }

    func run() async throws {
        try await options.perform { client in
            let chat = try await client.chat(named: chat, within: options.wait.count)
            if unread, let message {
                let first = MessageID(message)
                return QueuedChange([try await client.markUnread(from: first, in: chat)]) {
                    try $0.readMark(of: chat) < first.timeMs
                }
            }
            let newest = try client.history(of: chat, .newest, count: 1).rows
            let last = message.map { MessageID($0) } ?? newest.compactMap(\.message).last
            guard let last else {
                throw Failure("There is no message to mark: this device holds none of the chat")
            }
            return QueuedChange([try await client.markRead(last, in: chat)]) {
                try $0.readMark(of: chat) >= last.timeMs
            }
        }
    }
}

struct Edit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Replaces the text of an own message. Without a text, reads the standard input.",
        discussion: """
            EXAMPLES
              id=$(tambour history Bob -n 1 --json | jq -r .id)
              tambour edit Bob "$id" "See you at nine"
            """
    )

    @OptionGroup var options: ChangeOptions

    @Argument(help: .chat)
    var chat: String

    @Argument(help: .message)
    var message: Int64

    @Argument(help: "The new text; several words are joined with spaces.")
    var text: [String] = []

    func run() async throws {
        let text = try messageText(text)
        try await options.perform { client in
            let chat = try await client.chat(named: chat, within: options.wait.count)
            let message = MessageID(message)
            return QueuedChange([try await client.edit(message, in: chat, text: text)]) {
                try $0.row(of: message, in: chat).map { $0.text == text } ?? true
            }
        }
    }
}

struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Deletes messages for everybody, or for this account only.",
        discussion: """
            EXAMPLES
              tambour delete Bob 117676934795820807
              tambour search --chat Bob spam --json | jq -r .id |
                xargs tambour delete Bob --for-me
            """
    )

    @OptionGroup var options: ChangeOptions

    @Argument(help: .chat)
    var chat: String

    @Argument(help: "The ids of the messages, as `tambour history --json` prints them.")
    var messages: [Int64]

    @Flag(help: "Deletes the messages for this account only.")
    var forMe = false

    func run() async throws {
        try await options.perform { client in
            let chat = try await client.chat(named: chat, within: options.wait.count)
            let messages = messages.map { MessageID($0) }
            let action = try await client.delete(messages, in: chat, onlyForMe: forMe)
            return QueuedChange([action]) { client in
                try messages.allSatisfy { try client.row(of: $0, in: chat) == nil }
            }
        }
    }
}

struct React: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reacts to a message, or removes this account's reaction.",
        discussion: """
            A new reaction replaces this account's earlier one.

            EXAMPLES
              tambour react Bob 117676934795820807 👍
              tambour react Bob 117676934795820807 --remove
            """
    )

    @OptionGroup var options: ChangeOptions

    @Argument(help: .chat)
    var chat: String

    @Argument(help: .message)
    var message: Int64

    @Argument(help: "The emoji.")
    var emoji: String?

    @Flag(help: "Removes the reaction.")
    var remove = false

    func validate() throws {
        if remove == (emoji != nil) {
            throw ValidationError("Give either an emoji or --remove.")
        }
    }

    func run() async throws {
        try await options.perform { client in
            let chat = try await client.chat(named: chat, within: options.wait.count)
            let message = MessageID(message)
            return QueuedChange([try await client.react(emoji, to: message, in: chat)]) {
                guard let row = try $0.row(of: message, in: chat) else { return true }
                return row.reactions.first(where: \.isOwn)?.emoji == emoji
            }
        }
    }
}

extension ArgumentHelp {
    /// The help of an argument that is the id of a message.
    fileprivate static let message: ArgumentHelp =
        "The id of the message, as `tambour history --json` prints it."
}

extension Client {
    /// Returns the row that shows a message; nil if this device does not store the message.
    fileprivate func row(of message: MessageID, in chat: ChatID) throws -> HistoryRow? {
        try history(of: chat, .around(message), count: 1).rows.first { $0.message == message }
    }
}
