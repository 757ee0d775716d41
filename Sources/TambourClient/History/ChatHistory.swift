import TambourProtocol

/// The intervals of a chat's history that are stored completely.
///
/// The messages themselves are in a database; this value contains positions only. It computes the
/// effects of a reply or a push on the stored rows (`HistoryEffects`). In one transaction, the
/// caller applies these effects and writes the changed rows of this value.
///
/// It consists of two kinds of knowledge, which only grow within a generation:
///
/// - *chunks*: intervals in which all visible messages are stored, and no other messages;
/// - *tombs* (tombstones): messages outside of all chunks that are known to be deleted. A page that
///   was read before the deletion may still contain them.
///
/// It relies on one law: where no new message can appear, messages can only disappear. Therefore no
/// row is ever added to a chunk. A stored row that is missing from evidence about its position is
/// deleted permanently. Evidence may arrive in any order. Any event that breaks the law (a restored
/// server, joining again, evicted rows) starts a new `generation`. Replies to requests of an
/// earlier generation are ignored.
///
/// The rules are in docs/client-sync.md, section 6.
package struct ChatHistory: Equatable, Sendable {
    /// Sorted. At least one position lies between two chunks.
    package private(set) var chunks: [PositionInterval] = []
    /// Sorted. No tomb is in a chunk.
    package private(set) var tombs: [Position] = []
    /// Counts how often knowledge was discarded. Replies to requests of an earlier generation are
    /// ignored.
    package private(set) var generation: Int64 = 0

    package init() {}

    /// - Parameters: the rows that the caller stored as `HistoryEffects` required, in any order.
    package init(
        chunks: some Sequence<PositionInterval>,
        tombs: some Sequence<Position>,
        generation: Int64
    ) {
        for chunk in chunks { cover(chunk) }
        self.tombs = Set(tombs).filter { !covers($0) }.sorted()
        self.generation = generation
    }

    // MARK: - Applying evidence

    /// Applies the evidence of a reply or a push.
    package mutating func apply(_ evidence: Evidence) -> HistoryEffects {
        guard isCurrent(evidence.generation) else { return HistoryEffects() }
        return change { history, effects in
            effects.cleared = evidence.interval
            for position in evidence.found { history.admit(position, to: &effects) }
            history.cover(evidence.interval)
        }
    }

    /// Applies the deletion of messages, from NOTIF_MSG_DELETE or the reply to MSG_DELETE.
    package mutating func delete(_ positions: [Position]) -> HistoryEffects {
        change { history, effects in history.delete(positions, &effects) }
    }

    /// Adds a message whose predecessor is unknown: a search result, a message that another message
    /// answers, or a message from a notification.
    ///
    /// - Parameter asked: the generation at the time of the request; nil for a push.
    package mutating func island(_ position: Position, asked: Int64? = nil) -> HistoryEffects {
        guard isCurrent(asked) else { return HistoryEffects() }
        return change { history, effects in history.admit(position, to: &effects) }
    }

    /// Applies changes of messages' content: NOTIF_MESSAGE with the status EDITED.
    ///
    /// Ignores a change of a message that is not stored, unless a page in flight may contain the
    /// old version. In that case the message is stored now.
    /// - Parameter isReading: whether pages of the chat are in flight (`HistoryReader.isReading`).
    package mutating func edit(_ positions: [Position], isReading: Bool) -> HistoryEffects {
        change { history, effects in history.edit(positions, isReading, &effects) }
    }

    /// Applies a reply to CHAT_CHANGES.
    ///
    /// - Parameters:
    ///   - asked: the generation at the time of the request.
    ///   - isReading: as in `edit`.
    /// - Returns: nil for a stale reply, which is ignored. In that case the caller must not advance
    ///   the cursor.
    package mutating func apply(
        _ changes: MessageChanges,
        asked: Int64,
        isReading: Bool
    ) -> HistoryEffects? {
        guard isCurrent(asked) else { return nil }
        if changes.isResync { return resync() }
        return change { history, effects in
            if let floor = changes.clearedThrough,
                let interval = PositionInterval(through: floor)
            {
                effects.cleared = interval
                history.cover(interval)
            }
            history.delete(changes.removed, &effects)
            // Messages in the cleared interval are removed, even if the reply also lists them as
            // changed.
            let left = changes.changed.filter { effects.cleared?.contains($0) != true }
            history.edit(left, isReading, &effects)
        }
    }

    // MARK: - Discarding

    /// Discards all chunks and tombs. The stored messages stay visible, but the client assumes gaps
    /// between all of these messages.
    package mutating func resync() -> HistoryEffects {
        change { history, effects in
            effects.distrustsContents = true
            history.chunks = []
            history.beginGeneration()
        }
    }

    /// Deletes everything: the user is no longer in the chat, or joined it again.
    package mutating func removed() -> HistoryEffects {
        change { history, effects in
            effects.cleared = PositionInterval(through: .max)
            history.chunks = []
            history.beginGeneration()
        }
    }

    /// Deletes all rows before a row, to free space. Only the oldest part of a history is evicted,
    /// never a part in the middle.
    package mutating func evict(below row: Position) -> HistoryEffects {
        let floor = Position.first(at: row.timeMs)
        guard let end = floor.previous else { return HistoryEffects() }
        return change { history, effects in
            effects.cleared = PositionInterval(through: end)
            history.chunks = history.chunks.compactMap { $0.clipped(from: floor) }
            // A page that was read before a deletion could restore a deleted row in the evicted
            // part. Therefore ignore the replies to earlier requests.
            history.beginGeneration()
        }
    }

    /// Drops the tombs. Call this only when no request of the chat is in flight: replies to earlier
    /// requests are ignored from then on.
    package mutating func settle() -> HistoryEffects {
        guard !tombs.isEmpty else { return HistoryEffects() }
        return change { history, _ in history.beginGeneration() }
    }

    // MARK: - Lookup

    package func chunk(containing position: Position) -> PositionInterval? {
        let index = chunks.partition { $0.upper >= position }
        guard index < chunks.count, chunks[index].contains(position) else { return nil }
        return chunks[index]
    }

    package func covers(_ position: Position) -> Bool { chunk(containing: position) != nil }

    /// Returns whether a message that is not stored is known to be deleted.
    func isGone(_ position: Position) -> Bool { covers(position) || isTomb(position) }

    /// The newest chunk below the position.
    package func chunk(below position: Position) -> PositionInterval? {
        let index = chunks.partition { $0.upper >= position }
        return index > 0 ? chunks[index - 1] : nil
    }

    /// The oldest chunk above the position.
    package func chunk(above position: Position) -> PositionInterval? {
        let index = chunks.partition { $0.lower > position }
        return index < chunks.count ? chunks[index] : nil
    }

    // MARK: - Steps

    private func isCurrent(_ asked: Int64?) -> Bool {
        guard let asked else { return true }
        return asked >= generation
    }

    /// Adds a message from a reply or a push. A message inside a chunk is either stored already or
    /// permanently deleted.
    private func admit(_ position: Position, to effects: inout HistoryEffects) {
        if covers(position) {
            effects.refresh.append(position)
        } else if !isTomb(position) {
            effects.store.append(position)
        }
    }

    private func edit(
        _ positions: [Position],
        _ isReading: Bool,
        _ effects: inout HistoryEffects
    ) {
        for position in positions {
            // A page in flight may contain the version before this change. The push of a message
            // after all chunks may also contain that version.
            if isReading || isBehindAll(position) {
                admit(position, to: &effects)
            } else {
                effects.refresh.append(position)
            }
        }
    }

    private func isBehindAll(_ position: Position) -> Bool {
        chunks.last.map { $0.upper < position } ?? false
    }

    private mutating func delete(_ positions: [Position], _ effects: inout HistoryEffects) {
        effects.removed = positions
        for position in positions where !covers(position) {
            let index = tombs.partition { $0 >= position }
            if index == tombs.count || tombs[index] != position {
                tombs.insert(position, at: index)
            }
        }
    }

    private func isTomb(_ position: Position) -> Bool {
        let index = tombs.partition { $0 >= position }
        return index < tombs.count && tombs[index] == position
    }

    /// Adds an interval, and merges adjacent chunks.
    private mutating func cover(_ interval: PositionInterval) {
        let start = chunks.partition { !$0.isApart(below: interval) }
        let end = chunks.partition { interval.isApart(below: $0) }
        let merged = chunks[start..<end].reduce(interval) { $0.union($1) }
        chunks.replaceSubrange(start..<end, with: [merged])
        tombs.removeAll(where: interval.contains)
    }

    private mutating func beginGeneration() {
        generation += 1
        tombs = []
    }

    private mutating func change(
        _ body: (inout ChatHistory, inout HistoryEffects) -> Void
    ) -> HistoryEffects {
        let before = self
        var effects = HistoryEffects()
        body(&self, &effects)
        effects.chunks = RowChanges(from: before.chunks, to: chunks)
        effects.tombs = RowChanges(from: before.tombs, to: tombs)
        effects.generation = generation == before.generation ? nil : generation
        return effects
    }
}

extension Array {
    /// Returns the index of the first element that satisfies the predicate. All later elements must
    /// satisfy it too.
    fileprivate func partition(where isBehind: (Element) -> Bool) -> Int {
        var range = startIndex..<endIndex
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if isBehind(self[middle]) {
                range = range.lowerBound..<middle
            } else {
                range = middle + 1..<range.upperBound
            }
        }
        return range.lowerBound
    }
}
