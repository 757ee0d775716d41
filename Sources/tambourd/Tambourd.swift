import ArgumentParser
import TambourMessenger
import TambourProtocol

@main
struct Tambourd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambourd",
        abstract: "A messenger you run yourself: TamTam binary protocol over TCP.",
        version: "\(productVersion), store schema \(Messenger.storeSchema)",
        subcommands: [Serve.self, Admin.self, Backup.self, Restore.self]
    )
}
