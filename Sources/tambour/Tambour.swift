import ArgumentParser

@main
struct Tambour: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambour",
        abstract: "A messenger in the terminal, and for scripts.",
        discussion: """
            Everything works offline: what cannot be sent yet waits in the account's file, and whichever `tambour` \
            is connected next sends it. Exit codes: 0 done, 1 refused or failed, 2 still waiting, 64 wrong usage.
            """,
        subcommands: [
            Open.self, LogIn.self, LogOut.self, Chats.self, Send.self, History.self, Search.self,
            Tail.self,
            Export.self, People.self, Sessions.self, Queue.self, Objects.self,
        ],
        defaultSubcommand: Open.self
    )

    /// Groups have negative numbers for ids, and ArgumentParser takes what begins with a minus for an option.
    static func main() async {
        await main(CommandLine.arguments.dropFirst().map { ChatName.marked($0) })
    }
}
