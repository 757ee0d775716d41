import Foundation
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

@Suite("Pages of chats")
struct ChatPageTests {
    /// The seeds of the plays. `TAMBOUR_SEED=17` plays only seed 17.
    private static var seeds: [UInt64] {
        let seed = ProcessInfo.processInfo.environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
        return seed.map { [$0] } ?? Array(1...12)
    }

    private static func cursor(_ marker: Int64) -> ChatCursor {
        ChatCursor(insideMillisecond: marker) ?? ChatCursor(before: marker)
    }

    @Test(
        "bring every chat once, however many share a millisecond, and none above the budget",
        arguments: SQLEngine.available,
        seeds
    )
    func pages(engine: SQLEngine, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let most = Int.random(in: 1...3, using: &random)
        let store = try TestStore(engine, limits: ["maxChatsPage": most])
        let users = try store.users(25)
        var times: [Int64] = (1...24).map { _ in Int64.random(in: 1...4, using: &random) * 100 }
        times.sort()
        for (index, time) in times.enumerated() {
            let text = String(repeating: "x", count: Int.random(in: 1...3_000, using: &random))
            try store.send(Text(text), from: users[index + 1], to: users[0], at: time)
        }
        let budget = Int.random(in: 500...12_000, using: &random)
        let limit = Int.random(in: 1...9, using: &random)
        let moves = Bool.random(using: &random)

        var seen: [ChatID] = []
        var moved: Set<ChatID> = []
        var cursor = ChatCursor.newest
        for round in 0..<60 {
            let page = try store.read { snapshot in
                try snapshot.chatsPage(for: users[0], from: cursor, limit: limit, budget: budget)
            }
            let size = page.chats.reduce(0) { $0 + $1.wireSizeEstimate }
            #expect(page.chats.count == 1 || size <= budget)
            #expect(page.chats.count <= limit + most)
            seen += page.chats.map(\.id)
            if page.next == 0 { break }
            try #require(round < 59 && !page.chats.isEmpty)
            cursor = Self.cursor(page.next)
            #expect(cursor.marker == page.next)
            if moves {
                let partner = users[Int.random(in: 1..<25, using: &random)]
                try store.send("news", from: partner, to: users[0], at: 1_000 + Int64(round))
                moved.insert(ChatID.dialog(users[0], partner))
            }
        }
        let all = Set(users.dropFirst().map { ChatID.dialog(users[0], $0) })
        #expect(Set(seen).union(moved) == all, "TAMBOUR_SEED=\(seed)")
        if !moves { #expect(seen.count == all.count, "TAMBOUR_SEED=\(seed)") }
    }

    @Test("a marker that no page ended with is harmless", arguments: SQLEngine.available)
    func oddMarkers(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        try store.send("x", from: users[0], to: users[1], at: 500)
        let markers: [Int64] = [
            .min, .min + 1, -1, 0, 1, 499, 500, 501, 1 << 61, 1 << 62, (1 << 62) + 1,
            1 << 62 | 500 << 20, 1 << 62 | 500 << 20 | 1, 1 << 62 | 500 << 20 | 0xFFFFF, .max - 1,
            .max,
        ]
        for marker in markers {
            let page = try store.read { snapshot in
                try snapshot.chatsPage(for: users[0], from: Self.cursor(marker), limit: 5)
            }
            let isAfter = marker > 500 && marker != 1 << 62 && marker != (1 << 62) + 1
            let isEmptyTie = marker == 1 << 62 | 500 << 20
            #expect(page.chats.count == (isAfter && !isEmptyTie ? 1 : 0), "\(marker)")
            #expect(page.next == 0)
        }
    }
}
