/// What one step means for the database: to be carried out in one transaction, from top to bottom.
package struct HistoryEffects: Equatable, Sendable {
    /// The stored contents of the chat count as older than any that still come: a restored server may have
    /// forgotten an edit.
    package internal(set) var distrustsContents = false
    /// Stored messages in this stretch go, but for those in `store` and `refresh`.
    package internal(set) var cleared: PositionInterval?
    /// Stored messages that go.
    package internal(set) var removed: [Position] = []
    /// To be stored; where there is a row already, the newer content stays.
    package internal(set) var store: [Position] = []
    /// To be brought up to date where there is a row, and not to be stored where there is none: such a
    /// message is gone.
    package internal(set) var refresh: [Position] = []

    /// Of the chunks of the chat.
    package internal(set) var chunks = RowChanges<PositionInterval>()
    /// Of the tombs of the chat.
    package internal(set) var tombs = RowChanges<Position>()
    /// The new generation of the chat, nil when it stays.
    package internal(set) var generation: Int64?

    package init() {}
}

/// Rows to be deleted, and after that rows to be inserted.
package struct RowChanges<Row: Hashable & Sendable>: Equatable, Sendable {
    package private(set) var removed: [Row] = []
    package private(set) var added: [Row] = []

    package init() {}

    /// What makes the old rows the new ones; neither holds a row twice.
    init(from old: [Row], to new: [Row]) {
        if old == new { return }
        for change in new.difference(from: old) {
            switch change {
            case .remove(_, let row, _): removed.append(row)
            case .insert(_, let row, _): added.append(row)
            }
        }
    }

    package var isEmpty: Bool { removed.isEmpty && added.isEmpty }
}
