import TambourProtocol
import Testing

@testable import TambourStore

@Suite("Client ids that are certainly new")
struct RecentClientIDsTests {
    private static let kept = 8

    private struct Pair: Hashable {
        let cid: Int64
        let sender: UserID
    }

    /// The ways in which clients number their messages. Each function returns the id for an index.
    private static let orders: [String: @Sendable (Int) -> Int64] = [
        "rising": { Int64($0) },
        "falling": { -Int64($0) },
        "all the same": { _ in 5 },
        "scattered": { Int64($0 * 7919 % 1009) },
        "the ends of the range": { $0 % 2 == 0 ? .max - Int64($0 % 5) : .min + Int64($0 % 5) },
        "one far ahead of the others": { $0 == 3 ? .max : Int64($0) },
    ]

    @Test(
        "nothing that was stored ever counts as new, nor after a restart",
        arguments: orders.keys.sorted()
    )
    func sound(order: String) throws {
        let cid = try #require(Self.orders[order])
        var stored: Set<Pair> = []
        var recent = RecentClientIDs(newest: [], kept: Self.kept)
        for index in 0..<1000 {
            let pair = Pair(cid: cid(index), sender: UserID(Int64(index % 3)))
            stored.insert(pair)
            recent.insert(pair.cid, of: pair.sender)
            if index % 100 == 99 {
                let newest = stored.filter { $0.cid < RecentClientIDs.ceiling }
                    .sorted { $0.cid > $1.cid }.prefix(Self.kept)
                recent = RecentClientIDs(
                    newest: newest.map { ($0.cid, $0.sender) },
                    kept: Self.kept
                )
            }
            for old in stored { try #require(!recent.isCertainlyNew(old.cid, of: old.sender)) }
        }
    }

    @Test("who takes ids at random does not take the room of those who take the clock")
    func random() {
        var recent = RecentClientIDs(newest: [], kept: Self.kept)
        for index in 0..<Int64(100) { recent.insert(.max - index, of: UserID(1)) }
        #expect(recent.isCertainlyNew(1_790_000_000_000, of: UserID(2)))
    }

    @Test("who counts up, or takes the clock, is spared the look")
    func useful() {
        var recent = RecentClientIDs(newest: [], kept: Self.kept)
        for cid in 1...1000 {
            #expect(recent.isCertainlyNew(Int64(cid), of: UserID(1)))
            recent.insert(Int64(cid), of: UserID(1))
            #expect(recent.isCertainlyNew(Int64(cid), of: UserID(2)))
        }
    }
}
