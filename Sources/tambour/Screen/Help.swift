import TambourProtocol
import TerminalKit

/// The text that F1 shows: keys, then commands.
enum Help {
    static func lines(_ keys: KeyBindings) -> [String] {
        var lines: [String] = []
        for section in sections {
            lines.append(section.title)
            for entry in section.entries {
                switch entry {
                case .fixed(let key, let summary): lines.append(line(key, summary))
                case .line(let key, let summary):
                    if !keys.take(key, from: .line) { lines.append(line(key, summary)) }
                case .actions(let actions, let summary):
                    let names = actions.map(keys.names).map { $0.isEmpty ? "no key" : $0 }
                    lines.append(line(names.joined(separator: " "), summary))
                }
            }
            lines.append("")
        }
        return lines + [states, "", "Commands"] + commands
    }

    private enum Entry {
        case fixed(String, String)
        /// A key of the input line. It is not shown if the user has bound the key to an action.
        case line(String, String)
        case actions([KeyAction], String)

        static func action(_ action: KeyAction) -> Entry { .actions([action], action.summary) }
    }

    private static let sections: [(title: String, entries: [Entry])] = [
        (
            "Writing",
            [
                .fixed("Enter", "send"),
                .line("Alt-Enter", "new line; pasted line breaks never send"),
                .action(.editor),
                .fixed("Tab", "take the suggestion: /command, @name, :emoji:"),
                .fixed("//text", "a message that begins with a slash"),
                .fixed("**bold**", "_italic_ __underlined__ ~~struck~~ `code` > quote # title"),
                .fixed("[text](URL)", "a link; \\ before a mark shows the mark itself"),
                .line("Ctrl-_", "undo; the other keys are those of readline"),
            ]
        ),
        (
            "Going places",
            [
                .action(.goToChat), .action(.nextUnread),
                .actions([.chatAbove, .chatBelow], "the chat above, below"),
                .actions([.scrollUp, .scrollDown], "scroll"),
                .action(.newest), .action(.firstUnread),
                .actions([.back, .forward], "back and forward between places"),
                .action(.searchChat), .action(.search), .action(.mentions),
            ]
        ),
        (
            "Chats",
            [
                .actions([.mute, .pin], "mute, pin the open chat"),
                .action(.contacts), .action(.queue), .action(.folders),
            ]
        ),
        (
            "A message: Esc selects one, Esc returns to the line",
            [
                .actions([.above, .below], "the message above, below"),
                .actions([.reply, .edit, .forwardMessage], "reply, edit, forward"),
                .actions([.delete, .deleteForMe], "delete for all, for me"),
                .actions([.react, .unreact], "react, remove the reaction"),
                .action(.quoted), .action(.thread), .action(.comments), .action(.vote),
                .action(.copy), .action(.openLink),
                .actions([.olderHit, .newerHit], "older, newer match of the search"),
                .action(.unreadFromHere), .action(.pinMessage), .action(.retry),
            ]
        ),
        ("Everywhere", [.action(.help), .action(.redraw), .action(.suspend), .action(.leave)]),
    ]

    private static let states = "States of a message:  … waiting   ✓ sent   ✓✓ read   ✗ refused"

    private static func line(_ keys: String, _ summary: String) -> String {
        let padding = String(repeating: " ", count: max(1, 16 - Width.of(keys)))
        return "  \(keys)\(padding)\(summary)"
    }

    private static let commands = ScreenCommand.all.map { command in
        let usage = "/\(command.name) \(command.arguments)"
        let padding = String(repeating: " ", count: max(1, 30 - usage.count))
        return "  \(usage)\(padding)\(command.summary)"
    }
}
