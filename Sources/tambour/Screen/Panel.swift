import TambourClient
import TambourProtocol
import TerminalKit

/// A list drawn over the screen, with actions on the selected item.
struct Panel {
    enum Kind: Equatable {
        case goTo
        case forward(MessageID, from: ChatID)
        /// A search in one chat, or in all chats if the chat is nil.
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
        /// The thread of a message. `from` is the row on which the user opened the thread. This is
        /// the row of the message, or the row of an unsent reply to it.
        case thread(of: MessageID, from: HistoryRow.ID, in: ChatID)

        var isSearch: Bool {
            if case .search = self { true } else { false }
        }

        /// Whether items can disappear while the panel is open, without an action of the user.
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
        /// A message in a thread. The message id is nil until the server assigns one.
        case entry(HistoryRow.ID, MessageID?, in: ChatID)
        case person(UserID)
        case member(UserID, Client.Member.Role)
        case device(Int64?, isCurrent: Bool)
        case waiting(OutgoingID, isRefused: Bool)
        case scheduled(ScheduledMessage.ID)
        /// A folder, or all chats if the id is nil.
        case folder(ChatFolder.ID?)
        case emoji(String)
        case link(String)
        /// A group or channel that the user can join. The text is its link.
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
        /// The ranges of clusters in the title that match the query.
        var hits: [Range<Int>] = []
        var isError = false
        /// The indentation of the item in columns, if the panel has room for it.
        var indent = 0
    }

    var kind: Kind
    let title: String
    /// The search field; nil if the panel has none. Letters are then keys of the panel.
    var query: LineEditor?
    var items: [Item] = []
    /// The index of the selected item; negative if the selected item has disappeared.
    var selected = 0
    /// A text about the state of the list, for example `asking the server`.
    var remark = ""
    /// Whether the panel still waits for its first contents.
    private(set) var isLoading = false
    /// The keys of this panel and their meanings, shown in its lower border.
    let keys: String

    /// All items, including those that the query hides. Used by panels that filter their own items.
    var all: [Item] = []

    var selectedItem: Item? { items.indices.contains(selected) ? items[selected] : nil }

    /// Whether the panel uses the maximum size.
    var isLarge: Bool {
        switch kind {
        case .goTo, .forward, .reactions: false
        default: true
        }
    }

    /// Marks the panel as waiting. `remark` tells the user what it waits for.
    mutating func load(_ remark: String) {
        self.remark = remark
        isLoading = true
    }

    /// Sets all items and the remark, and ends the waiting.
    mutating func fill(_ items: [Item], remark: String) {
        all = items
        self.remark = remark
        isLoading = false
        if query == nil { show(items) } else { filter() }
    }

    /// Replaces the items. The selected item stays selected, even if its index changes.
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
            // The selected item has disappeared. The next key must not act on another item.
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

    /// Shows only the items that match the query, best match first.
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
