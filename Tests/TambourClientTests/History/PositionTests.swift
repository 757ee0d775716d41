import Testing

@testable import TambourClient

/// Requests use times, but evidence uses ids, so the conversion must be exact.
@Suite("Positions and times turn into each other")
struct PositionTests {
    @Test("a position tells its millisecond, and a millisecond its ends")
    func milliseconds() {
        let id = Position(1_700_000_000_123 << 16 | 0xBEEF)
        #expect(id.timeMs == 1_700_000_000_123)
        #expect(Position.first(at: id.timeMs) <= id)
        #expect(id <= .last(at: id.timeMs))
        #expect(Position.last(at: id.timeMs).next == .first(at: id.timeMs + 1))
        #expect(Position.first(at: id.timeMs).previous == .last(at: id.timeMs - 1))
    }

    @Test(
        "times beyond the axis are its ends",
        arguments: [Int64.max, Int64.max >> 16, (Int64.max >> 16) + 1]
    )
    func large(time: Int64) {
        #expect(Position.last(at: time) == .max)
        #expect(Position.max.next == nil)
    }

    @Test("times before the axis are its beginning", arguments: [Int64.min, Int64.min >> 16])
    func small(time: Int64) {
        #expect(Position.first(at: time) == .min)
        #expect(Position.min.previous == nil)
    }

    @Test("an interval holds whole milliseconds, as no two messages of a chat share one")
    func whole() throws {
        let interval = try #require(PositionInterval(from: at(3), through: at(5)))
        #expect(interval.lower == .first(at: 3))
        #expect(interval.upper == .last(at: 5))
        #expect(PositionInterval(from: at(5), through: at(3)) == nil)
    }

    @Test("what lies behind a message begins with the next millisecond")
    func behind() {
        #expect(PositionInterval(after: at(3), through: at(5)) == stretch(4...5))
        #expect(PositionInterval(after: nil, through: at(5)) == stretch(...5))
        #expect(PositionInterval(after: at(5), through: at(5)) == nil)
        #expect(PositionInterval(after: .max, through: .max) == nil)
    }
}
