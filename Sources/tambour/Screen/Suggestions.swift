import TambourClient
import TambourProtocol
import TerminalKit

/// Completions of the word before the cursor.
struct Suggestions: Equatable {
    struct Entry: Equatable {
        /// The text that replaces the word.
        let text: String
        /// The arguments of a command, as the help describes them.
        var arguments = ""
        /// The explanation beside the text.
        let note: String
    }

    /// The word to complete. Its range is counted in clusters of the line.
    let token: LineEditor.Token
    let entries: [Entry]
    var selected = 0
    /// Whether the entries only inform the user and cannot be chosen.
    let isHint: Bool

    /// The maximum number of entries that are visible at the same time.
    static let shown = 6

    /// - Parameters:
    ///   - names: The names of people who can be mentioned.
    ///   - folders: The titles of the folders.
    /// - Returns: nil if there is nothing to complete or to explain.
    init?(for input: LineEditor, names: [String], folders: [String] = []) {
        let completed =
            Self.folder(in: input, folders)
            ?? input.tokenBeforeCursor.flatMap { token in
                Self.entries(for: token, names).map { (token, $0) }
            }
        isHint = completed == nil
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

    /// Completes the name of a folder, which may contain spaces.
    ///
    /// - Returns: nil if the line contains no name of a folder to complete.
    private static func folder(
        in input: LineEditor,
        _ folders: [String]
    ) -> (LineEditor.Token, [Entry])? {
        let commands = ["/folder ", "/folder-add ", "/folder-remove ", "/folder-delete "]
        let line = input.text
        guard let command = commands.first(where: line.hasPrefix),
            input.cursor == input.clusters.count
        else { return nil }
        let begun = String(line.dropFirst(command.count))
        let word = FoldedText(begun)
        let entries = folders.filter { $0 != begun && FoldedText($0).hasPrefix(word) }
            .map { Entry(text: $0, note: "") }
        guard !entries.isEmpty else { return nil }
        let range = input.cursor - begun.count..<input.cursor
        return (LineEditor.Token(text: begun, range: range, isFirst: false), entries)
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

    mutating func move(by step: Int) {
        selected = min(max(0, selected + step), entries.count - 1)
    }
}

extension FoldedText {
    /// Returns whether this text begins with the other text. Ignores case and accents.
    func hasPrefix(_ other: FoldedText) -> Bool { scalars.starts(with: other.scalars) }
}
