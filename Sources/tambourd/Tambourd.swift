import ArgumentParser

@main
struct Tambourd: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambourd",
        abstract: "A messenger you run yourself: TamTam binary protocol over TCP.",
        version: "0.1.0",
        subcommands: [Serve.self, Admin.self, Backup.self, Restore.self]
    )
}
