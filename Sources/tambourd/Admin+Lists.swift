import ArgumentParser
import Foundation
import TambourMessenger
import TambourProtocol

extension Tambourd {
    /// Options for reading lists page by page.
    struct PageOptions: ParsableArguments {
        @Option(help: "The most lines to print; all by default.")
        var limit: Int?

        @Option(help: "Goes on after the line with this id.")
        var after: String?

        /// Prints a page. If there may be further lines, also prints to standard error how to
        /// continue.
        ///
        /// - Parameter idColumn: The index of the column that contains the id.
        func run(
            _ values: [AdminFilter.Key: String?],
            _ data: DataOption,
            idColumn: Int = 0,
            request: (AdminFilter) -> AdminService.Request
        ) throws {
            var values = values.compactMapValues(\.self)
            values[.limit] = limit.map(String.init)
            values[.after] = after
            for (key, value) in values
            where value.contains(where: \.isNewline) || value.contains("\t") {
                throw Failure("\(key.rawValue): one line, please")
            }
            var count = 0
            var last: Substring?
            try data.run(request(AdminFilter(values))) { line in
                print(line)
                count += 1
                let words = line.split(separator: " ")
                last = idColumn < words.count ? words[idColumn] : nil
            }
            guard let limit, count == limit, let last else { return }
            FileHandle.standardError.write(Data("more: --after=\(last)\n".utf8))
        }
    }
}

extension Tambourd.Admin {
    struct Chats: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists and shows chats, never what is written in them.",
            subcommands: [List.self, Show.self]
        )

        struct List: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Prints a line ID KIND MEMBERS MESSAGES LAST SUBJECT for every chat.",
                discussion: """
                    SUBJECT is a group's title in quotes, or the ids of the two of a dialog. Groups have \
                    negative ids; write --after=-5.
                    """
            )

            @OptionGroup var data: Tambourd.DataOption
            @OptionGroup var page: Tambourd.PageOptions

            @Option(help: "dialog, saved, group or channel.")
            var kind: String?

            @Option(help: "Those of a user: a phone (with its plus) or a user id.")
            var user: String?

            @Option(help: "Those with these letters in their title.")
            var title: String?

            @Option(help: "Those with at least this many members.")
            var minMembers: Int?

            func run() throws {
                try page.run(
                    [
                        .kind: kind, .user: user, .title: title,
                        .minMembers: minMembers.map(String.init),
                    ],
                    data
                ) { .chats($0) }
            }
        }

        struct Show: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract:
                    "Prints what there is to know about a chat, and its first hundred members."
            )

            @OptionGroup var data: Tambourd.DataOption

            // The id of a group is negative, and therefore looks like an option.
            @Argument(parsing: .allUnrecognized, help: "An id as the list has it.")
            var chat: [String]

            func validate() throws {
                guard chat.count == 1 else { throw ValidationError("Name one chat by its id.") }
            }

            func run() throws { try data.run(.chat(chat[0])) }
        }
    }

    struct Sessions: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists, shows and ends logins.",
            subcommands: [List.self, Show.self, End.self]
        )

        struct List: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract:
                    "Prints a line ID USER_ID CREATED SEEN ADDRESS \"CLIENT\" \"INFO\" for every login."
            )

            @OptionGroup var data: Tambourd.DataOption
            @OptionGroup var page: Tambourd.PageOptions

            @Option(help: "Those of a user: a phone (with its plus) or a user id.")
            var user: String?

            @Option(help: "Those with these letters in what the client says of itself.")
            var client: String?

            @Option(help: "Those with this in their address.")
            var address: String?

            @Option(help: "Those not seen for this many days.")
            var idleDays: Int?

            func run() throws {
                try page.run(
                    [
                        .user: user, .client: client, .address: address,
                        .idleDays: idleDays.map(String.init),
                    ],
                    data
                ) { .sessions($0) }
            }
        }

        struct Show: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Prints what there is to know about a login, and whose it is."
            )

            @OptionGroup var data: Tambourd.DataOption

            @Argument(help: "An id as the list has it.")
            var session: String

            func run() throws { try data.run(.session(session)) }
        }

        struct End: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Ends a login, or all of a user: tokens die, connections close.",
                discussion: "To keep a user out, block the user."
            )

            @OptionGroup var data: Tambourd.DataOption

            @Argument(help: "An id as the list has it.")
            var session: String?

            @Option(help: "All of a user instead: a phone (with its plus) or a user id.")
            var user: String?

            func validate() throws {
                guard (session == nil) != (user == nil) else {
                    throw ValidationError("Name a session or --user, one of the two.")
                }
            }

            func run() throws {
                if let session { try data.run(.endSession(session)) }
                if let user { try data.run(.endSessions(user: user)) }
            }
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints everything that is kept of one user, a JSON object a line.",
            discussion: """
                Of others it has what the user sees. Tokens, codes and the password are left out.
                """
        )

        @OptionGroup var data: Tambourd.DataOption

        @Argument(help: "A phone (with its plus) or a user id.")
        var user: String

        @Option(help: "The file to make, readable by its owner alone; standard output when absent.")
        var out: String?

        func run() throws {
            guard let out else { return try data.run(.export(user: user)) }
            let file = try NewFile(out)
            do {
                try data.run(.export(user: user)) { try file.writeLine($0) }
            } catch {
                // Remove the file, because an incomplete export looks the same as a complete one.
                unlink(out)
                throw error
            }
        }
    }

    struct Erase: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Erases a user for ever, at once.",
            discussion: """
                As when the time of PROFILE_DELETE has come; docs/data.md has the inventory. Afterwards \
                "admin vacuum" overwrites what is left in the file. Backups are yours to delete.
                """
        )

        @OptionGroup var data: Tambourd.DataOption

        @Argument(help: "A phone (with its plus) or a user id.")
        var user: String

        @Flag(help: "Does it. Without, it says what there is to erase.")
        var yes = false

        func run() throws { try data.run(.erase(user: user, isConfirmed: yes)) }
    }

    struct Stats: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints rows, bytes and growth of every table, and what a message takes.",
            discussion: """
                Reads the whole store, and keeps the sizes as those of today: growth is counted from them \
                later. Run it once a day.
                """
        )

        @OptionGroup var data: Tambourd.DataOption

        @Option(
            help: "Growth since the newest sizes that are this many days old, or else the oldest."
        )
        var sinceDays = 1

        func run() throws { try data.run(.stats(sinceDays: sinceDays)) }
    }

    struct Vacuum: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Rewrites the store: smaller, and without a byte of what was deleted.",
            discussion: """
                Everybody's commands wait meanwhile, about as long as copying the file takes, and the disk \
                holds it twice more.
                """
        )

        @OptionGroup var data: Tambourd.DataOption

        func run() throws { try data.run(.vacuum) }
    }
}

/// A new file that only its owner can read. Creating it fails if the file already exists.
struct NewFile {
    private let handle: FileHandle

    init(_ path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw Failure("cannot create \(path): \(String(cString: strerror(errno)))")
        }
        handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    }

    func writeLine(_ line: String) throws {
        try handle.write(contentsOf: Data("\(line)\n".utf8))
    }
}
