import ArgumentParser
import Foundation
import TambourMessenger

extension Tambourd.Admin {
    struct Audit: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Prints a line ID TIME ACTION USER TIMES ADDRESS \"DETAIL\" for every entry of the log.",
            discussion: """
                The log has the actions of administrators, the sign-ins, and the refused sign-ins, oldest \
                first. Refusals are counted per account and hour: TIME is the first, DETAIL has the last. \
                "serve --audit-days" says how far the log goes back.
                """
        )

        @OptionGroup var data: Tambourd.DataOption
        @OptionGroup var page: Tambourd.PageOptions

        @Option(help: "Those about a user: a phone (with its plus) or a user id.")
        var user: String?

        @Option(help: "admin, sign-in or refused.")
        var kind: String?

        @Option(help: "Those of one action, such as new-device, password-refused or end-session.")
        var action: String?

        @Option(help: "Those with this in their address.")
        var address: String?

        @Option(help: "Those of the last days, as many as given.")
        var days: Int?

        func run() throws {
            try page.run(
                [
                    .user: user, .kind: kind, .action: action, .address: address,
                    .days: days.map(String.init),
                ],
                data
            ) { .audit($0) }
        }
    }

    struct Announce: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Posts a text in a channel of which everybody is a member.",
            discussion: """
                Everybody who is not a member of the channel is added first, also people who left it; new \
                accounts join it when they register. The first announcement creates the channel and needs \
                --from. If the server stops meanwhile, it goes on after the next start; the text is posted \
                once.
                """
        )

        @OptionGroup var data: Tambourd.DataOption

        @Argument(help: "What to say.")
        var text: String

        @Option(help: "The owner of the channel to create: a phone (with its plus) or a user id.")
        var from: String?

        @Option(help: "The title of the channel to create.")
        var title = AnnouncementRequest.usualTitle

        @Flag(help: "Announces the text although the last announcement was the same.")
        var again = false

        func validate() throws {
            guard !text.isEmpty, !title.isEmpty, from != "" else {
                throw ValidationError("The text, the title and --from must not be empty.")
            }
            guard from?.contains(where: { $0.isWhitespace }) != true else {
                throw ValidationError("--from is a phone with its plus or a user id.")
            }
        }

        func run() throws {
            try data.run(
                .announce(
                    AnnouncementRequest(text, owner: from, title: title, isRepeated: again)
                )
            )
        }
    }

    struct DefaultChats: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists and changes the groups and channels that new accounts join.",
            subcommands: [List.self, Add.self, Remove.self]
        )

        struct List: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Prints a line ID KIND MEMBERS STATE \"TITLE\" for every default chat.",
                discussion: """
                    STATE is open, full (new accounts do not join), announcements, or deleted.
                    """
            )

            @OptionGroup var data: Tambourd.DataOption

            func run() throws { try data.run(.defaultChats) }
        }

        struct Add: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lets every new account join a group or channel when it registers.",
                discussion: "Accounts that exist already stay as they are."
            )

            @OptionGroup var data: Tambourd.DataOption
            @OptionGroup var chat: ChatArgument

            func run() throws { try data.run(.addDefaultChat(chat.id)) }
        }

        struct Remove: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Takes a chat off the list; its members stay."
            )

            @OptionGroup var data: Tambourd.DataOption
            @OptionGroup var chat: ChatArgument

            func run() throws { try data.run(.removeDefaultChat(chat.id)) }
        }
    }

    /// The id of a chat.
    struct ChatArgument: ParsableArguments {
        // The id of a group is negative, and therefore looks like an option.
        @Argument(parsing: .allUnrecognized, help: "An id as \"chats list\" has it.")
        var chat: [String]

        var id: String { chat[0] }

        func validate() throws {
            guard chat.count == 1 else { throw ValidationError("Name one chat by its id.") }
        }
    }
}
