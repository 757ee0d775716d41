import ArgumentParser
import TambourClient
import TambourProtocol

@main
struct Tambour: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tambour",
        abstract: "A messenger for the terminal and for scripts.",
        discussion: """
            Without a command, `tambour` opens the full-screen client.

            Every command works offline. An action that cannot be sent yet is stored in the account's file, and the next `tambour` \
            that connects sends it. Several `tambour` may run at once; one of them is connected, and the others use its connection.

            With --json, a list is printed as one JSON object for each line. Ids are strings. The folder docs/schema of the sources \
            describes the fields.

            EXIT CODES
              0   done
              1   refused, failed, or nothing was found
              2   waits for the server, or not everything has arrived yet
              64  wrong usage

            EXAMPLES
              tambour login chat.example.org +79990000001
              tambour send +79990000002 "Hello, this is Alice"
              tambour history Bob -n 20
              make test 2>&1 | tambour send Bob --lines
              tambour tail --others --for-me --exec ./answer.sh

            ENVIRONMENT
              TAMBOUR_HOME     one folder for all files, as --home
              XDG_DATA_HOME    the base folder of the accounts, if not ~/.local/share
              XDG_CONFIG_HOME  the base folder of the preferences, if not ~/.config
              HOME             the home folder
              XDG_RUNTIME_DIR  the folder of the text while the editor is open
              VISUAL, EDITOR   the editor that Alt-e opens on the screen
              BROWSER          the program that opens links
              SSL_CERT_FILE, SSL_CERT_DIR
                               the authorities of the system, for servers with TLS
              NO_COLOR         any text switches colours off
              TERM, COLORTERM  what the terminal can show; TERM=dumb: no colours
              COLUMNS          the width of the help
              LANG, LC_ALL, TZ the language of the server's errors, and the time zone

            FILES
              ~/.local/share/tambour/NAME.db
                               an account: its messages, and what waits to be sent
              ~/.config/tambour/preferences.json
                               theme, alerts and keys of the screen; a file beside the
                               accounts is used as long as this one does not exist
            """,
        version: productVersion,
        subcommands: [Open.self, LogIn.self, LogOut.self, ServerCommand.self, Invite.self],
        groupedSubcommands: [
            CommandGroup(
                name: "Message",
                subcommands: [
                    Send.self, History.self, Tail.self, Search.self, Export.self, Mark.self,
                    Edit.self, Delete.self, React.self,
                ]
            ),
            CommandGroup(
                name: "List",
                subcommands: [
                    Chats.self, Groups.self, People.self, Sessions.self, Queue.self,
                    Entities.self, Keys.self,
                ]
            ),
        ],
        defaultSubcommand: Open.self
    )

    /// Rewrites the ids of groups before parsing. Such ids are negative, and ArgumentParser would
    /// treat them as options.
    static func main() async {
        do {
            // Swift would silently replace invalid UTF-8.
            for index in 0..<Int(CommandLine.argc) {
                guard let argument = CommandLine.unsafeArgv[index] else { break }
                guard String(validatingCString: argument) != nil else {
                    throw Failure("An argument is not UTF-8")
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
            exit(withError: Failure(error.words))
        } catch {
            exit(withError: error)
        }
    }

    /// Rejects unknown command names. Otherwise the default command would report them as unexpected
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

    /// Returns whether two names are similar. Either one is a prefix of the other, or they differ
    /// by one letter or by the order of two adjacent letters.
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
