/// The effects of a history step on the database. Apply them in one transaction, from top to
/// bottom.
package struct HistoryEffects: Equatable, Sendable {
    /// Whether content that arrives from now on replaces the stored content, even with an older
    /// version: a restored server may have lost an edit.
    package internal(set) var distrustsContents = false
    /// The interval in which stored messages are deleted, except those in `store` and `refresh`.
    package internal(set) var cleared: PositionInterval?
    /// Stored messages to delete.
    package internal(set) var removed: [Position] = []
    /// Messages to store. If a row exists, the newer content wins.
    package internal(set) var store: [Position] = []
    /// Messages to update if a row exists. A message without a row has been deleted and must not
    /// be stored again.
    package internal(set) var refresh: [Position] = []

    /// Changes to the chunks of the chat.
    package internal(set) var chunks = RowChanges<PositionInterval>()
    /// Changes to the tombs of the chat.
    package internal(set) var tombs = RowChanges<Position>()
    /// The new generation of the chat; nil when it does not change.
    package internal(set) var generation: Int64?

    package init() {}
}

/// Rows to delete, and then rows to insert.
package struct RowChanges<Row: Hashable & Sendable>: Equatable, Sendable {
    package private(set) var removed: [Row] = []
    package private(set) var added: [Row] = []

    package init() {}

    /// Computes the difference between old and new rows. Neither list contains a row twice.
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
