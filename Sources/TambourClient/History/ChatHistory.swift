import TambourProtocol

/// Which stretches of one chat's history are held completely.
///
/// The messages themselves lie in a database. This value knows positions only: it says what a reply or
/// a push means for the stored rows, and the caller carries that out and writes the changed rows of this
/// value in the same transaction (`HistoryEffects`).
///
/// Two kinds of knowledge make it up, and both only grow:
///
/// - *chunks*: of these stretches everything that is visible is stored, and nothing else;
/// - *tombs*: messages outside of all chunks that are known to be deleted. A page that was read before
///   the deletion may still bring them.
///
/// Behind it is one law: where no message can appear any more, messages only go away. So a row never
/// comes into a chunk, a row that any evidence misses goes for good, and the order in which evidence
/// arrives does not matter. Whatever breaks the law (a restored server, joining anew, rows that were
/// evicted) begins a new `generation`, and replies that were asked for before are not believed.
///
/// Source: offline-sync.md section 6.
package struct ChatHistory: Equatable, Sendable {
    /// Sorted; between two of them there is always a position that is in neither.
    package private(set) var chunks: [PositionInterval] = []
    /// Sorted; in no chunk.
    package private(set) var tombs: [Position] = []
    /// How often knowledge was thrown away; what was asked for in an earlier one is not believed.
    package private(set) var generation: Int64 = 0

    package init() {}

    /// - Parameters: what `HistoryEffects` had the caller store, in any order.
    package init(
        chunks: some Sequence<PositionInterval>,
        tombs: some Sequence<Position>,
        generation: Int64
    ) {
        for chunk in chunks { cover(chunk) }
        self.tombs = Set(tombs).filter { !covers($0) }.sorted()
        self.generation = generation
    }

    // MARK: - What happened

    /// Takes in what a reply or a push proves.
    package mutating func apply(_ evidence: Evidence) -> HistoryEffects {
        guard isCurrent(evidence.generation) else { return HistoryEffects() }
        return change { history, effects in
            effects.cleared = evidence.interval
            for position in evidence.found { history.admit(position, to: &effects) }
            history.cover(evidence.interval)
        }
    }

    /// Takes in messages that are no longer there: NOTIF_MSG_DELETE, the reply to MSG_DELETE.
    package mutating func delete(_ positions: [Position]) -> HistoryEffects {
        change { history, effects in history.delete(positions, &effects) }
    }

    /// Takes in a message of which it is not known what is before it: a search result, the target of an
    /// answer, the text of a notification.
    ///
    /// - Parameter asked: the generation in which it was asked for; nil for a push.
    package mutating func island(_ position: Position, asked: Int64? = nil) -> HistoryEffects {
        guard isCurrent(asked) else { return HistoryEffects() }
        return change { history, effects in history.admit(position, to: &effects) }
    }

    /// Takes in messages whose content has changed: NOTIF_MESSAGE with the status EDITED.
    ///
    /// A change of what is not held is nobody's business, unless something is on its way that may bring
    /// the message as it was before. Then it is stored now.
    /// - Parameter isReading: whether pages of the chat are on their way (`HistoryReader.isReading`).
    package mutating func edit(_ positions: [Position], isReading: Bool) -> HistoryEffects {
        change { history, effects in history.edit(positions, isReading, &effects) }
    }

    /// Takes in a reply of CHAT_CHANGES.
    ///
    /// - Parameters:
    ///   - asked: the generation in which it was asked for.
    ///   - isReading: as in `edit`.
    /// - Returns: nil when the reply is not believed; then the cursor stays where it is.
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
            // What is in the cleared stretch goes, whatever else the reply says of it.
            let left = changes.changed.filter { effects.cleared?.contains($0) != true }
            history.edit(left, isReading, &effects)
        }
    }

    // MARK: - What is given up

    /// Nothing that was held may be trusted any more. The messages stay on screen, without a claim.
    package mutating func resync() -> HistoryEffects {
        change { history, effects in
            effects.distrustsContents = true
            history.chunks = []
            history.beginGeneration()
        }
    }

    /// The user is no longer in the chat, or joined it anew.
    package mutating func removed() -> HistoryEffects {
        change { history, effects in
            effects.cleared = PositionInterval(through: .max)
            history.chunks = []
            history.beginGeneration()
        }
    }

    /// Forgets what is before a row, to make room; never a stretch in the middle.
    package mutating func evict(below row: Position) -> HistoryEffects {
        let floor = Position.first(at: row.timeMs)
        guard let end = floor.previous else { return HistoryEffects() }
        return change { history, effects in
            effects.cleared = PositionInterval(through: end)
            history.chunks = history.chunks.compactMap { $0.clipped(from: floor) }
            // A page that was read before a deletion could bring a row back into what is forgotten.
            history.beginGeneration()
        }
    }

    /// Drops the tombs. To be called when no request of the chat is on its way: a reply that still comes
    /// is not believed.
    package mutating func settle() -> HistoryEffects {
        guard !tombs.isEmpty else { return HistoryEffects() }
        return change { history, _ in history.beginGeneration() }
    }

    // MARK: - What is known

    package func chunk(containing position: Position) -> PositionInterval? {
        let index = chunks.partition { $0.upper >= position }
        guard index < chunks.count, chunks[index].contains(position) else { return nil }
        return chunks[index]
    }

    package func covers(_ position: Position) -> Bool { chunk(containing: position) != nil }

    /// Whether a message that is not stored is known to be deleted.
    func isGone(_ position: Position) -> Bool { covers(position) || isTomb(position) }

    /// The newest chunk that lies below the position.
    package func chunk(below position: Position) -> PositionInterval? {
        let index = chunks.partition { $0.upper >= position }
        return index > 0 ? chunks[index - 1] : nil
    }

    /// The oldest chunk that lies above the position.
    package func chunk(above position: Position) -> PositionInterval? {
        let index = chunks.partition { $0.lower > position }
        return index < chunks.count ? chunks[index] : nil
    }

    // MARK: - Steps

    private func isCurrent(_ asked: Int64?) -> Bool {
        guard let asked else { return true }
        return asked >= generation
    }

    /// A message that a reply or push shows: within a chunk it is there already or gone for good.
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
            // Pages on their way, and the push of a message behind all that is held, may be older.
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

    /// Adds a stretch; neighbours become one chunk.
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
    /// The index of the first element that satisfies a predicate which all behind it satisfy too.
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
