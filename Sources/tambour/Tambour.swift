import ArgumentParser
import TambourClient

@main
struct Tambour: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambour",
        abstract: "A messenger in the terminal, and for scripts.",
        discussion: """
            Everything works offline: what cannot be sent yet waits in the account's file, and whichever `tambour` \
            is connected next sends it. Exit codes: 0 done, 1 refused or failed, 2 still waiting to be sent or not \
            all here, 64 wrong usage.
            """,
        subcommands: [
            Open.self, LogIn.self, LogOut.self, Chats.self, Send.self, History.self, Search.self,
            Tail.self,
            Export.self, People.self, Sessions.self, Queue.self, Objects.self,
            Keys.self,
        ],
        defaultSubcommand: Open.self
    )

    /// Groups have negative numbers for ids, and ArgumentParser takes what begins with a minus for an option.
    static func main() async {
        do {
            // Swift would take what is no UTF-8 for something else.
            for index in 0..<Int(CommandLine.argc) {
                guard let argument = CommandLine.unsafeArgv[index] else { break }
                guard String(validatingCString: argument) != nil else {
                    throw Failure("an argument is no UTF-8")
                }
            }
            let arguments = CommandLine.arguments.dropFirst().map { ChatName.marked($0) }
            var command = try parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as ClientError {
            // It may hold the server's words.
            exit(withError: Failure(error.description))
        } catch {
            exit(withError: error)
        }
    }
}
