import TambourTesting
import Testing

@testable import TambourClient

/// Compares chunks with a set that contains every covered millisecond.
@Suite("Chunks are exactly the milliseconds that were covered")
struct HistoryCoverageTests {
    private enum Step {
        case cover(from: Int64, through: Int64)
        case clear(through: Int64)
        case evict(below: Int64)
        case delete(at: Int64)
        case settle
    }

    private static let axis: ClosedRange<Int64> = 1...40

    @Test("whatever is added and evicted")
    func bitmap() {
        Property(
            cases: 6_000,
            steps: { random in
                (0..<random.below(16)).map { _ in
                    let time = 1 + Int64(random.below(36))
                    switch random.below(12) {
                    case 0: return .clear(through: time)
                    case 1: return .evict(below: time)
                    case 2, 3: return .delete(at: time)
                    case 4: return .settle
                    default: return .cover(from: time, through: time + Int64(random.below(5)))
                    }
                }
            },
            check: Self.check
        ).hold()
    }

    private static func check(_ steps: [Step]) throws {
        var history = ChatHistory()
        var stored = StoredHistory()
        var covered: Set<Int64> = []
        var gone: Set<Int64> = []
        for step in steps {
            let effects: HistoryEffects?
            switch step {
            case .cover(let first, let last):
                covered.formUnion(first...last)
                effects = Evidence.emptied(fromMs: first, throughMs: last).map { history.apply($0) }
            case .clear(let last):
                covered.formUnion(0...last)
                effects = Evidence.cleared(through: .first(at: last)).map { history.apply($0) }
            case .evict(let first):
                covered = covered.filter { $0 >= first }
                gone = []
                effects = history.evict(below: .last(at: first))
            case .delete(let time):
                gone.insert(time)
                effects = history.delete([.first(at: time)])
            case .settle:
                gone = []
                effects = history.settle()
            }
            guard let effects else { throw Violation("no evidence") }
            gone.subtract(covered)
            try stored.carryOut(effects)
            for time in axis {
                let position = time % 2 == 0 ? Position.first(at: time) : .last(at: time)
                if history.covers(position) != covered.contains(time) {
                    throw Violation("millisecond \(time) of \(history)")
                }
            }
            if history.tombs != gone.sorted().map({ Position.first(at: $0) }) {
                throw Violation("tombs \(history.tombs) and not \(gone.sorted())")
            }
            if stored.history != history { throw Violation("I10: \(stored.history)") }
        }
    }
}
