import TambourClient
import TambourProtocol
import TerminalKit

/// A list drawn over the screen, with actions on the selected item.
struct Panel {
    enum Kind: Equatable {
        case goTo
        case forward(MessageID, from: ChatID)
        /// A search in one chat; nil for all chats.
        case search(ChatID?)
        case mentions
        case links
        case contacts
        case blocked
        case members(ChatID)
        case profile
        case sessions
        case options(ChatID)
        case publicSearch
        /// The poll of a message.
        case poll(MessageID, in: ChatID)
        case queue
        case folders
        /// The scheduled messages of a chat.
        case scheduled(ChatID)
        case reactions(MessageID, in: ChatID)
        /// The thread of a message. `from` is the row on which the user opened it: that of the
        /// message, or of an unsent reply to it.
        case thread(of: MessageID, from: HistoryRow.ID, in: ChatID)

        var isSearch: Bool {
            if case .search = self { true } else { false }
        }

        /// Whether items disappear while the user looks at the list.
        var isFollowed: Bool {
            switch self {
            case .queue, .scheduled, .folders, .thread: true
            default: false
            }
        }
    }

    /// The object that an item represents.
    enum Target: Hashable, Sendable {
        case chat(ChatID)
        case message(MessageID, in: ChatID)
        /// A message in a thread. It has no id before the server assigns one.
        case entry(HistoryRow.ID, MessageID?, in: ChatID)
        case person(UserID)
        case member(UserID, Client.Member.Role)
        case device(Int64?, isCurrent: Bool)
        case waiting(OutgoingID, isRefused: Bool)
        case scheduled(ScheduledMessage.ID)
        /// A folder; nil for all chats.
        case folder(ChatFolder.ID?)
        case emoji(String)
        case link(String)
        /// A group or channel to join, by its link.
        case invitation(String)
        case option(String, isOn: Bool)
        /// An answer of a poll.
        case answer(Int64)
        case none
    }

    struct Item: Hashable, Sendable {
        var title: String
        /// A second line, for example the text of a found message.
        var detail: String?
        /// Text at the right end of the first line.
        var right = ""
        var target: Target
        /// The clusters of the title that match the query.
        var hits: [Range<Int>] = []
        var isError = false
        /// The indentation of the item in columns, if the panel has room for it.
        var indent = 0
    }

    var kind: Kind
    let title: String
    /// The search field; nil for a panel without one, in which letters are keys.
    var query: LineEditor?
    var items: [Item] = []
    /// The index of the selected item; negative when the item no longer exists.
    var selected = 0
    /// The state of the list, for example `asking the server`.
    var remark = ""
    /// Whether the first contents are still being read or requested.
    private(set) var isLoading = false
    /// The keys of this panel and their meanings, shown in its lower border.
    let keys: String

    /// All items before filtering, for panels that filter their own items.
    var all: [Item] = []

    var selectedItem: Item? { items.indices.contains(selected) ? items[selected] : nil }

    /// Whether the panel uses the maximum size.
    var isLarge: Bool {
        switch kind {
        case .goTo, .forward, .reactions: false
        default: true
        }
    }

    /// Says in `remark` what the panel waits for.
    mutating func load(_ remark: String) {
        self.remark = remark
        isLoading = true
    }

    /// Sets the contents: all items, and the state of the list.
    mutating func fill(_ items: [Item], remark: String) {
        all = items
        self.remark = remark
        isLoading = false
        if query == nil { show(items) } else { filter() }
    }

    /// Replaces the items, and keeps the same item selected at its new place.
    mutating func show(_ new: [Item]) {
        let chosen = selectedItem?.target
        items = new
        guard let chosen else {
            if selected >= 0 { move(by: 0) }
            return
        }
        if let kept = selectedItem?.target, kept.isSame(as: chosen) { return }
        if let place = items.firstIndex(where: { $0.target.isSame(as: chosen) }) {
            selected = place
        } else if kind.isFollowed {
            // The selected item is done or deleted. The next key must not act on another item.
            selected = -1
        } else {
            move(by: 0)
        }
    }

    /// Removes an item that the user has handled. The next item is then selected.
    mutating func remove(_ target: Target) {
        all.removeAll { $0.target == target }
        items.removeAll { $0.target == target }
        move(by: 0)
    }

    mutating func move(by step: Int) {
        selected = min(max(0, selected + step), max(0, items.count - 1))
    }

    /// Keeps the items that match the query, best first.
    mutating func filter() {
        let text = query?.text ?? ""
        guard !text.trimmed.isEmpty else { return show(all) }
        let ranked = FuzzyMatch.rank(text, all.map { FoldedText($0.title) })
        show(
            ranked.map { found in
                var item = all[found.index]
                item.hits = found.match.ranges
                return item
            }
        )
    }
}

extension Panel.Target {
    /// Returns whether both targets represent the same object, even if its state has changed.
    func isSame(as other: Self) -> Bool {
        switch (self, other) {
        case (.waiting(let one, _), .waiting(let two, _)): one == two
        case (.member(let one, _), .member(let two, _)): one == two
        case (.option(let one, _), .option(let two, _)): one == two
        case (.entry(let one, let sent, _), .entry(let two, let other, _)):
            one == two || sent != nil && sent == other
        default: self == other
        }
    }
}
