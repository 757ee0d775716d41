import ArgumentParser
import Foundation
import TambourServer

extension Tambourd {
    struct Admin: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Looks after a data directory, through its server when one runs.",
            subcommands: [Users.self, Reports.self, Metrics.self, Check.self, Reload.self]
        )
    }

    struct DataOption: ParsableArguments {
        @Option(help: "The data directory.")
        var data: String?

        var directory: String {
            data ?? ProcessInfo.processInfo.environment["TAMBOUR_DATA"] ?? "./var"
        }

        /// Asks the server that holds the directory, or opens the store when none does.
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
                guard FileManager.default.fileExists(atPath: directory) || Self.creates(request)
                else { throw Failure("there is no data directory \(directory)") }
                umask(0o077)
                let backend = try OfflineAdminBackend(dataDirectory: directory)
                try AdminService(backend).run(request, output: output)
            } catch let failure as Failure {
                throw failure
            } catch {
                throw Failure(String(describing: error))
            }
        }

        private static func creates(_ request: AdminService.Request) -> Bool {
            if case .createUsers = request { true } else { false }
        }
    }
}

extension Tambourd.Admin {
    struct Users: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates, lists and blocks users.",
            subcommands: [Create.self, List.self, Block.self]
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
            abstract: "Reads the file of --features again; sessions whose answers change are told.",
            discussion: "A file with a mistake changes nothing: the rules before it hold."
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
            // Tokens are shown once: a file that is there may hold the only copy of others.
            let file = open(tokensOut, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard file >= 0 else {
                throw Failure("cannot create \(tokensOut): \(String(cString: strerror(errno)))")
            }
            let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
            try data.run(request) { try handle.write(contentsOf: Data("\($0)\n".utf8)) }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a line PHONE USER_ID STATE NAME for every user."
        )

        @OptionGroup var data: Tambourd.DataOption

        func run() throws { try data.run(.listUsers) }
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
