import ArgumentParser
import Foundation

struct Keys: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the keys of the screen that can be chosen.",
        discussion: """
            Others are chosen in preferences.json, in the folder of the accounts' files, by the names that stand first: \
            {"keys": {"next-unread": "Ctrl-n F5", "suspend": ""}}. Several stand with spaces between, an empty text leaves none. \
            What cannot be so is told, with exit code 1. The screen reads the file when it starts; signing in has keys of its own.
            """
    )

    @OptionGroup var account: AccountOptions

    @Option(help: "Another file of preferences, as of another machine.")
    var preferences: String?

    @Flag(
        help: "Prints JSON that a file of preferences can hold (docs/schema/preferences.json)."
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
