import ArgumentParser
import TambourClient
import TambourProtocol

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
        version: productVersion,
        subcommands: [
            Open.self, LogIn.self, LogOut.self, Chats.self, Send.self, History.self, Search.self,
            Tail.self, Invite.self,
            Export.self, People.self, Sessions.self, Queue.self, Entities.self,
            Keys.self,
        ],
        defaultSubcommand: Open.self
    )

    /// Rewrites group ids before parsing. They are negative, and ArgumentParser would treat them as
    /// options.
    static func main() async {
        do {
            // Swift would silently replace invalid UTF-8.
            for index in 0..<Int(CommandLine.argc) {
                guard let argument = CommandLine.unsafeArgv[index] else { break }
                guard String(validatingCString: argument) != nil else {
                    throw Failure("an argument is no UTF-8")
                }
            }
            let arguments = CommandLine.arguments.dropFirst().map { ChatName.marked($0) }
            try requireCommands(arguments)
            var command = try parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let error as ClientError {
            // The description may contain text from the server.
            exit(withError: Failure(error.description))
        } catch {
            exit(withError: error)
        }
    }

    /// Rejects unknown command names. The default command would report them as unexpected
    /// arguments.
    private static func requireCommands(_ arguments: [String]) throws {
        var command: any ParsableCommand.Type = Tambour.self
        var path = "tambour"
        for argument in arguments {
            let known = command.configuration.subcommands
            guard !known.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return }
            guard let next = known.first(where: { $0._commandName == argument }) else {
                let near = known.map { $0._commandName }.filter { isNear($0, argument) }
                let hint = near.isEmpty ? "" : " Did you mean “\(near.joined(separator: "”, “"))”?"
                throw ValidationError(
                    printable(
                        "There is no command “\(path) \(argument)”.\(hint) `\(path) --help` lists the commands."
                    )
                )
            }
            command = next
            path += " \(argument)"
        }
    }

    /// Returns whether one name is a prefix of the other, or they differ by one letter or one swap.
    private static func isNear(_ name: String, _ typed: String) -> Bool {
        if name.hasPrefix(typed) || typed.hasPrefix(name) { return true }
        let same = zip(name, typed).prefix { $0 == $1 }.count
        let (left, right) = (Array(name.dropFirst(same)), Array(typed.dropFirst(same)))
        let isSwapped =
            left.dropFirst(2) == right.dropFirst(2)
            && left.prefix(2).elementsEqual(right.prefix(2).reversed())
        return isSwapped || left.dropFirst() == right[...] || left[...] == right.dropFirst()
            || left.dropFirst() == right.dropFirst()
    }
}
