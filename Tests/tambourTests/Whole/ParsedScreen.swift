import TambourProtocol

@testable import TerminalKit
@testable import tambour

/// The parts of a drawn screen that must look the same on all devices of an account. They are read
/// from the cells of the screen.
///
/// The following parts may differ from device to device, so the plays do not compare them:
///
/// 1. Presence. A connection follows only some users, and only from its login on.
/// 2. Typing. The server does not store this notification, and a device that is offline misses it.
/// 3. Groups that the account has lost. A device keeps its copy until the user deletes the copy
///    there (section 4 of `docs/client-sync.md`). A fresh device has no copy.
/// 4. Waiting actions and refused actions. Only the device that made an action knows it. The plays
///    discard refused actions before they compare.
/// 5. The open chat, the scroll position, the selection, the cursor, and the rule above unread
///    messages. Each screen has its own. Before they compare, the plays open the same chat on all
///    devices, at its newest message, after the chat was read.
/// 6. Highlighted words. They belong to the search of one screen.
/// 7. The status line. It shows the traffic of one device.
/// 8. An unfinished edit of a message. It stays on its device. The plays end it before they
///    compare.
struct ParsedScreen {
    /// A chat in the list of chats.
    struct Chat: Equatable {
        let title: String
        /// The number of unread messages, and the marks beside it.
        let marks: String
        let isPinned: Bool
        let isOpen: Bool
        let preview: String

        /// Whether the account has lost the chat.
        var isGone: Bool { preview == "no longer a member" }

        var words: String { "\(isPinned ? "^" : "")\(title) [\(marks)] \(preview)" }
    }

    /// The chats in the list, from the top.
    let chats: [Chat]
    /// The lines of the open chat: title, pinned message, messages, and input line.
    let pane: [String]
    private let styles: [[Style]]

    init(_ surface: Surface) {
        let columns = ScreenView.listColumns(of: surface.size.columns)
        var chats: [Chat] = []
        for row in stride(from: 0, to: surface.size.rows - 2, by: 2) {
            let first = Self.text(surface, row, 0..<columns - 1)
            let second = Self.text(surface, row + 1, 0..<columns - 1)
            guard !first.allSatisfy(\.isWhitespace) else { break }
            chats.append(Self.chat(first, second))
        }
        self.chats = chats
        let rows = 0..<surface.size.rows - 1
        let cells = columns..<surface.size.columns
        pane = rows.map { row in
            let text = Self.text(surface, row, cells)
            return row == 0 ? Self.title(text) : text
        }
        styles = rows.map { row in
            row == 0 ? [] : cells.map { surface[$0, row].style }
        }
    }

    private static func text(_ surface: Surface, _ row: Int, _ columns: Range<Int>) -> String {
        let cells = columns.lazy.map { surface[$0, row] }.filter { $0.width > 0 }.map(\.text)
        var text = String(cells)
        while text.last == " " { text.removeLast() }
        return text
    }

    private static func chat(_ first: String, _ second: String) -> Chat {
        var rest = first.dropFirst()
        let isPinned = rest.first == "^"
        if isPinned { rest = rest.dropFirst() }
        if rest.first == "●" { rest = rest.dropFirst() }
        // The marks are separated from the title by at least one blank. A title does not end with
        // blanks.
        let words = rest.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
        let isMark =
            words.count > 1 && (words.last ?? "").allSatisfy { "0123456789()m!@".contains($0) }
        let isApart = rest.hasSuffix("  \(words.last ?? "")")
        let marks = isMark && isApart ? words.last ?? "" : ""
        let title = (marks.isEmpty ? words : words.dropLast()).joined(separator: " ")
        return Chat(
            title: title,
            marks: marks,
            isPinned: isPinned,
            isOpen: first.first == "▌",
            preview: second.trimmed
        )
    }

    /// Returns the title without the words for presence and typing.
    private static func title(_ text: String) -> String {
        var words = text.split(separator: "  ", omittingEmptySubsequences: true).map(String.init)
        words.removeAll { $0.trimmed == "online" || $0.hasSuffix("typing…") }
        return words.joined(separator: "  ")
    }

    // MARK: - Comparing

    /// Returns the first difference, in a few lines; nil if the screens show the same.
    func difference(to other: ParsedScreen) -> String? {
        let (one, two) = (chats.filter { !$0.isGone }, other.chats.filter { !$0.isGone })
        let lists = Self.difference("the list", one.map(\.words), two.map(\.words))
        if let lists { return lists }
        return paneDifference(to: other)
    }

    private func paneDifference(to other: ParsedScreen) -> String? {
        let (own, theirs) = (compared, other.compared)
        let lines = Self.difference("the open chat", own.map(\.text), theirs.map(\.text))
        if let lines { return lines }
        let match = Theme.dark[.match]
        for (line, (one, two)) in zip(own, zip(own, theirs).map { ($0.styles, $1.styles) }) {
            let isOther = zip(one, two).contains { one, two in
                one != two && ![one, two].contains { $0.background == match.background }
            }
            if isOther { return "the look of the line “\(line.text)” of the open chat" }
        }
        return nil
    }

    /// The lines to compare. It omits the rule above new messages. It also omits blank lines,
    /// because there is one fewer of them above the messages if the screen shows the rule.
    private var compared: [(text: String, styles: [Style])] {
        zip(pane, styles).map { (text: $0, styles: $1) }
            .filter { !$0.text.isEmpty && !$0.text.hasPrefix("─── new ──") }
    }

    private static func difference(
        _ what: String,
        _ one: [String],
        _ two: [String]
    ) -> String? {
        guard one != two else { return nil }
        let count = max(one.count, two.count)
        func line(_ lines: [String], _ index: Int) -> String {
            lines.indices.contains(index) ? lines[index] : "(no line)"
        }
        let places = (0..<count).filter { line(one, $0) != line(two, $0) }
        let most = 12
        let shown = places.prefix(most).map { place in
            "  line \(place): “\(line(one, place))”\n      and: “\(line(two, place))”"
        }
        let rest = places.count > most ? ["  and \(places.count - most) lines more"] : []
        return (["\(what) differs:"] + shown + rest).joined(separator: "\n")
    }
}
