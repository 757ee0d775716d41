import ArgumentParser
import Foundation
import TambourServer

extension Tambourd {
    struct Backup: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copies a store, while its server writes or without one.",
            discussion: """
                Makes a directory with one database file and a file "digests" that says what the copied \
                snapshot held. Whatever the server had acknowledged before is in it. A PostgreSQL store \
                is backed up by pg_dump.
                """
        )

        @Argument(help: "The directory to make; nothing may be there yet.")
        var backup: String

        @OptionGroup var data: DataOption

        func run() throws {
            umask(0o077)
            try told {
                try TambourServer.Backup(backup).take(from: data.directory) { print($0) }
            }
        }
    }

    struct Restore: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Makes a data directory of a backup, or only looks whether that would work.",
            discussion: """
                Every table of the restored copy is read and its digest compared with that of the snapshot, \
                and the copy is checked as "admin check" does.
                """
        )

        @Argument(help: "A directory that \"tambourd backup\" has made.")
        var backup: String

        @Flag(
            help:
                "Restores into a directory that is removed again; the data directory stays as it is."
        )
        var verify = false

        @Option(help: "With --verify: where that directory is made. By default $TMPDIR, else /tmp.")
        var scratch: String?

        @OptionGroup var data: DataOption

        func run() throws {
            umask(0o077)
            let backup = TambourServer.Backup(backup)
            try told {
                guard verify else {
                    return try backup.restore(to: data.directory) { print($0) }
                }
                let environment = ProcessInfo.processInfo.environment
                try backup.verify(in: scratch ?? environment["TMPDIR"] ?? "/tmp") { print($0) }
            }
        }
    }
}

/// Runs `body`. If `body` throws an error, throws a `Failure` with the description of the error.
private func told(_ body: () throws -> Void) throws {
    do {
        try body()
    } catch {
        throw Failure(String(describing: error))
    }
}
