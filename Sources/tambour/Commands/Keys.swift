import ArgumentParser
import Foundation

struct Keys: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the actions of the screen that have keys, with their keys.",
        discussion: """
            The file preferences.json (see FILES in `tambour --help`) can give an action other keys, separated by spaces; an empty \
            text gives it none. The names of the actions are in the first column:

              {"keys": {"next-unread": "Ctrl-n F5", "suspend": ""}}

            The screen reads the file when it starts. The sign-in form has fixed keys. Exit code 1: the file has mistakes, which are \
            reported on standard error.

            EXAMPLES
              tambour keys
              tambour keys --json > preferences.json
            """
    )

    @OptionGroup var account: AccountOptions

    @Option(
        help: ArgumentHelp("Another file of preferences.", valueName: "file"),
        completion: .file(extensions: ["json"])
    )
    var preferences: String?

    @Flag(
        help: "Prints JSON in the format of preferences.json (docs/schema/preferences.json)."
    )
    var json = false

    func run() throws {
        let file = try account.preferences(from: preferences)
        if json {
            var value = file.value
            let names = KeyAction.allCases.map { ($0.rawValue, file.keys.names(of: $0)) }
            value.keys = Dictionary(uniqueKeysWithValues: names)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try say(String(decoding: try encoder.encode(value), as: UTF8.self))
        } else {
            for action in KeyAction.allCases {
                try say("\(action.rawValue)\t\(file.keys.names(of: action))\t\(action.summary)")
            }
        }
        for mistake in file.mistakes { remark(printable("\(file.path ?? ""): \(mistake)")) }
        if !file.mistakes.isEmpty { throw ExitCode(1) }
    }
}
