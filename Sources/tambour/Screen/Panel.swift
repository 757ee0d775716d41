import TambourClient
import TambourProtocol

/// A list over the screen, with something to do to what is chosen in it.
struct Panel {
    enum Kind: Equatable {
        case goTo
        case forward(MessageID, from: ChatID)
        /// Nil looks everywhere.
        case search(ChatID?)
        case mentions
        case links
        case contacts
        case blocked
        case members(ChatID)
        case profile
        case sessions
        case queue
        case reactions(MessageID, in: ChatID)
        /// The thread of a message, opened on a row: the message itself, or what waits to answer it.
        case thread(of: MessageID, from: HistoryRow.ID, in: ChatID)

        var isSearch: Bool {
            if case .search = self { true } else { false }
        }

        var isThread: Bool {
            if case .thread = self { true } else { false }
        }
    }

    /// What an item stands for.
    enum Target: Hashable, Sendable {
        case chat(ChatID)
        case message(MessageID, in: ChatID)
        /// A message of a thread; it has no id until the server has it.
        case entry(HistoryRow.ID, MessageID?, in: ChatID)
        case person(UserID)
        case member(UserID, Client.Member.Role)
        case device(isCurrent: Bool)
        case waiting(OutgoingID, isRefused: Bool)
        case emoji(String)
        case link(String)
        case none
    }

    struct Item: Hashable, Sendable {
        var title: String
        /// A second line, as the text of a message that was found.
        var detail: String?
        /// At the right end of the first line.
        var right = ""
        var target: Target
        /// The clusters of the title that the query hit.
        var hits: [Range<Int>] = []
        var isError = false
        /// How many columns it stands to the right of others, where there is room.
        var indent = 0
    }

    var kind: Kind
    let title: String
    /// Nil where there is nothing to look for: letters are keys then.
    var query: LineEditor?
    var items: [Item] = []
    /// Negative when what was chosen is gone.
    var selected = 0
    /// Where the items stand, as `asking the server`.
    var remark = ""
    /// The keys there are besides Enter and Esc.
    let keys: String

    /// All there is before the query picks some; for panels that look in what they hold.
    var all: [Item] = []

    var selectedItem: Item? { items.indices.contains(selected) ? items[selected] : nil }

    /// Whether it takes all of the screen that a panel may take.
    var isLarge: Bool {
        switch kind {
        case .goTo, .forward, .reactions: false
        default: true
        }
    }

    /// Shows other items; what was chosen is chosen still, wherever it stands now.
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
        } else if kind == .queue || kind.isThread {
            // It is done, or deleted. The next key is not meant for another one.
            selected = -1
        } else {
            move(by: 0)
        }
    }

    /// Drops an item that somebody has done away with; the next one is chosen.
    mutating func remove(_ target: Target) {
        all.removeAll { $0.target == target }
        items.removeAll { $0.target == target }
        move(by: 0)
    }

    mutating func move(by step: Int) {
        selected = min(max(0, selected + step), max(0, items.count - 1))
    }

    /// Picks the items that fit the query, the best first.
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
    /// Whether it stands for the same thing, whatever became of that.
    func isSame(as other: Self) -> Bool {
        switch (self, other) {
        case (.waiting(let one, _), .waiting(let two, _)): one == two
        case (.member(let one, _), .member(let two, _)): one == two
        case (.entry(let one, let sent, _), .entry(let two, let other, _)):
            one == two || sent != nil && sent == other
        default: self == other
        }
    }
}
