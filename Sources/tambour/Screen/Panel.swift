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
    }

    /// What an item stands for.
    enum Target: Hashable, Sendable {
        case chat(ChatID)
        case message(MessageID, in: ChatID)
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
    }

    let kind: Kind
    let title: String
    /// Nil where there is nothing to look for: letters are keys then.
    var query: LineEditor?
    var items: [Item] = []
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

    mutating func move(by step: Int) {
        selected = min(max(0, selected + step), max(0, items.count - 1))
    }

    /// Picks the items that fit the query, the best first.
    mutating func filter() {
        let text = query?.text ?? ""
        guard !text.trimmed.isEmpty else {
            items = all
            return move(by: 0)
        }
        let ranked = FuzzyMatch.rank(text, all.map { FoldedText($0.title) })
        items = ranked.map { found in
            var item = all[found.index]
            item.hits = found.match.ranges
            return item
        }
        move(by: 0)
    }
}
