@testable import TambourClient

/// Returns the position of a message in a millisecond.
func at(_ timeMs: Int64) -> Position { Position(timeMs << 16 | 7) }

/// Returns the positions of messages in some milliseconds, one in each.
func at(_ timesMs: [Int64]) -> [Position] { timesMs.map { at($0) } }

/// Returns the last position of a millisecond, where a chunk that covers it ends.
func end(_ timeMs: Int64) -> Position { .last(at: timeMs) }

/// Returns an interval of whole milliseconds.
func stretch(_ range: ClosedRange<Int64>) -> PositionInterval? {
    PositionInterval(from: .first(at: range.lowerBound), through: .last(at: range.upperBound))
}

/// Returns an interval from the beginning of the axis.
func stretch(_ range: PartialRangeThrough<Int64>) -> PositionInterval? {
    PositionInterval(through: .last(at: range.upperBound))
}

extension ChatHistory {
    /// Creates a history that holds some intervals.
    init(holding stretches: PositionInterval?...) {
        self.init(chunks: stretches.compactMap { $0 }, tombs: [], generation: 0)
    }
}

/// A history that expressions inside `#expect` can change.
@dynamicMemberLookup
final class HeldHistory {
    var value = ChatHistory()

    subscript<Value>(dynamicMember path: KeyPath<ChatHistory, Value>) -> Value {
        value[keyPath: path]
    }

    /// - Throws: An error when there is no evidence.
    func apply(_ evidence: Evidence?) throws -> HistoryEffects {
        guard let evidence else { throw Violation("no evidence") }
        return value.apply(evidence)
    }

    func apply(_ changes: MessageChanges, asked: Int64, isReading: Bool) -> HistoryEffects? {
        value.apply(changes, asked: asked, isReading: isReading)
    }

    func island(_ position: Position, asked: Int64? = nil) -> HistoryEffects {
        value.island(position, asked: asked)
    }

    func edit(_ positions: [Position], isReading: Bool) -> HistoryEffects {
        value.edit(positions, isReading: isReading)
    }

    func delete(_ positions: [Position]) -> HistoryEffects { value.delete(positions) }
    func evict(below row: Position) -> HistoryEffects { value.evict(below: row) }
    func resync() -> HistoryEffects { value.resync() }
    func removed() -> HistoryEffects { value.removed() }
    func settle() -> HistoryEffects { value.settle() }
}

/// A reader that expressions inside `#expect` can change.
final class AskingReader {
    private var value = HistoryReader(pageSize: 50)
    var end = ChatEnd(newest: at(100), safeTimeMs: 90)

    var isReading: Bool { value.isReading }

    func request(for viewport: HistoryViewport, in history: ChatHistory) -> HistoryRequest? {
        value.request(for: viewport, in: history, end: end)
    }

    func request(
        toFillGapsBetween rows: [Position],
        in history: ChatHistory
    ) -> HistoryRequest? {
        value.request(toFillGapsBetween: rows, in: history, end: end)
    }

    func answered(_ request: HistoryRequest, found: [Position], more: Bool) -> Evidence? {
        value.answered(request, found: found, more: more)
    }

    func ended(_ request: HistoryRequest) { value.ended(request) }
    func disconnected() { value.disconnected() }
}
