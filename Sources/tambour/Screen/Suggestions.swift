import TambourClient
import TambourProtocol
import TerminalKit

/// Completions of the word before the cursor.
struct Suggestions: Equatable {
    struct Entry: Equatable {
        /// The text that replaces the word.
        let text: String
        /// The notation of the arguments of a command.
        var arguments = ""
        /// The explanation beside the text.
        let note: String
    }

    /// The word to complete; its range counts clusters of the line.
    let token: LineEditor.Token
    let entries: [Entry]
    var selected = 0

    /// The maximum number of entries shown at once.
    static let shown = 6

    /// - Parameter names: The names of people who can be mentioned.
    /// - Returns: nil without a completion.
    init?(for input: LineEditor, names: [String]) {
        let completed = input.tokenBeforeCursor.flatMap { token in
            Self.entries(for: token, names).map { (token, $0) }
        }
        if let completed {
            (token, entries) = completed
        } else if let usage = ScreenCommand.usage(for: input.text) {
            token = LineEditor.Token(text: "", range: 0..<0, isFirst: false)
            entries = [Entry(text: "/\(usage.name) \(usage.arguments)", note: usage.summary)]
        } else {
            return nil
        }
        guard !entries.isEmpty else { return nil }
    }

    /// - Returns: nil for words that cannot be completed.
    private static func entries(for token: LineEditor.Token, _ names: [String]) -> [Entry]? {
        let rest = String(token.text.dropFirst())
        switch token.text.first {
        case "/" where token.isFirst:
            return ScreenCommand.all.filter { $0.name.hasPrefix(rest) }
                .map {
                    Entry(text: "/\($0.name) ", arguments: $0.arguments, note: $0.summary)
                }
        case "@":
            let word = FoldedText(rest)
            return names.filter { FoldedText($0).hasPrefix(word) }
                .map { Entry(text: "@\($0) ", note: "") }
        case ":" where rest.count >= 2:
            return Emoji.names(beginningWith: rest)
                .map { Entry(text: $0.emoji, note: ":\($0.name):") }
        default: return nil
        }
    }

    /// Whether the entries are only for reading.
    var isHint: Bool { token.range.isEmpty }

    mutating func move(by step: Int) {
        selected = min(max(0, selected + step), entries.count - 1)
    }
}

extension FoldedText {
    /// Returns whether the text begins with another text, ignoring case and accents.
    func hasPrefix(_ other: FoldedText) -> Bool { scalars.starts(with: other.scalars) }
}
