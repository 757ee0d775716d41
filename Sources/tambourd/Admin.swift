import ArgumentParser
import Foundation
import TambourMessenger
import TambourServer

extension Tambourd {
    struct Admin: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Looks after a data directory, through its server when one runs.",
            subcommands: [
                Users.self, Invites.self, Chats.self, DefaultChats.self, Sessions.self,
                Reports.self, Announce.self, Export.self, Erase.self, Audit.self, Stats.self,
                Metrics.self, Check.self, Vacuum.self, Reload.self,
            ]
        )
    }

    struct DataOption: ParsableArguments {
        @Option(help: "The data directory.")
        var data: String?

        var directory: String {
            data ?? ProcessInfo.processInfo.environment["TAMBOUR_DATA"] ?? "./var"
        }

        /// Sends the request to the server that uses the data directory. If no server runs, opens
        /// the store itself.
        func run(
            _ request: AdminService.Request,
            output: (String) throws -> Void = { print($0) }
        ) throws {
            do {
                if try AdminClient(dataDirectory: directory).run(request, output: output) { return }
                switch request {
                case .metrics, .reload: throw Failure("no server runs on \(directory)")
                default: break
                }
                switch request {
                case .createUsers: break
                default:
                    guard FileManager.default.fileExists(atPath: directory) else {
                        throw Failure("there is no data directory \(directory)")
                    }
                }
                umask(0o077)
                let backend: any AdminBackend =
                    ReadOnlyAdminBackend.isNeeded(for: directory)
                    ? try ReadOnlyAdminBackend(dataDirectory: directory)
                    : try OfflineAdminBackend(dataDirectory: directory)
                try AdminService(backend).run(request, output: output)
            } catch let failure as Failure {
                throw failure
            } catch {
                throw Failure(String(describing: error))
            }
        }
    }
}

extension Tambourd.Admin {
    struct Users: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates, lists, shows and blocks users.",
            subcommands: [Create.self, List.self, Show.self, Block.self]
        )
    }

    struct Reports: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints what people reported, one line each, or closes a report."
        )

        @OptionGroup var data: Tambourd.DataOption

        @Option(help: "Takes the report with this number off the list.")
        var close: String?

        func run() throws { try data.run(close.map { .closeReport($0) } ?? .reports) }
    }

    struct Metrics: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints what the server counts, in the Prometheus text format."
        )

        @OptionGroup var data: Tambourd.DataOption

        func run() throws { try data.run(.metrics) }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Checks the store's integrity and the commit clock; prints ok."
        )

        @OptionGroup var data: Tambourd.DataOption

        func run() throws { try data.run(.check) }
    }

    struct Reload: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reads the file of --features and the certificates again.",
            discussion: """
                Sessions whose answers change are told. Open connections keep their certificate. A file with \
                a mistake changes nothing: what it said before holds. SIGHUP does the same.
                """
        )

        @OptionGroup var data: Tambourd.DataOption

        func run() throws { try data.run(.reload) }
    }
}

extension Tambourd.Admin.Users {
    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates users with consecutive phones and a login token each."
        )

        @OptionGroup var data: Tambourd.DataOption

        @Option(help: "How many.")
        var count: Int

        @Option(help: "The first phone, as +79990000001.")
        var firstPhone: String

        @Option(help: "Where the lines PHONE USER_ID TOKEN go; standard output when absent.")
        var tokensOut: String?

        func run() throws {
            guard let phone = PhoneNumber.parse(firstPhone) else {
                throw Failure("\(firstPhone) is no phone number")
            }
            let request = AdminService.Request.createUsers(count: count, firstPhone: phone)
            guard let tokensOut else { return try data.run(request) }
            // Never replace an existing file. The server shows a token only once, so an existing
            // file may contain the only copy of earlier tokens.
            let file = try NewFile(tokensOut)
            try data.run(request) { try file.writeLine($0) }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a line PHONE USER_ID STATE NAME for every user."
        )

        @OptionGroup var data: Tambourd.DataOption
        @OptionGroup var page: Tambourd.PageOptions

        @Option(help: "active, blocked or erased; by default all but the erased ones.")
        var state: String?

        @Option(help: "Those with these letters in their name.")
        var name: String?

        @Option(help: "Those whose phone begins so.")
        var phone: String?

        @Option(help: "The members of a chat.")
        var chat: String?

        @Option(help: "Those not seen for this many days.")
        var idleDays: Int?

        func run() throws {
            try page.run(
                [
                    .state: state, .name: name, .phone: phone, .chat: chat,
                    .idleDays: idleDays.map(String.init),
                ],
                data,
                idColumn: 1
            ) { .users($0) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints what there is to know about a user, a line each."
        )

        @OptionGroup var data: Tambourd.DataOption

        @Argument(help: "A phone (with its plus) or a user id.")
        var user: String

        func run() throws { try data.run(.user(user)) }
    }

    struct Block: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Blocks a user: every session ends and no new one begins."
        )

        @OptionGroup var data: Tambourd.DataOption

        @Argument(help: "A phone (with its plus) or a user id.")
        var user: String

        @Flag(help: "Lets the user in again.")
        var undo = false

        func run() throws { try data.run(.block(user: user, isBlocked: !undo)) }
    }
}
