import TambourProtocol
import TambourSQL
import TambourStore
import Testing

/// Tests what a send costs the store, in counts that do not depend on the machine.
/// `docs/performance.md` lists these counts.
@Suite("What a send costs")
struct SendCostTests {
    /// Returns the number of statements and of new rows for one batch of `sends` messages in eight
    /// dialogs. Like the handler, each send first searches for an earlier message with the same
    /// client id.
    private func cost(
        sends: Int,
        history: Int
    ) throws -> (statements: Int, messages: Int64, members: Int64) {
        let store = try TestStore(.sqlite)
        let users = try store.batch { tx in
            try (1...16).map { try tx.createAccount(phone: $0, firstName: "A", lastName: nil) }
        }
        func write(_ count: Int) throws {
            try store.batch { tx in
                for index in 0..<count {
                    let (a, b) = (users[index % 8], users[index % 8 + 8])
                    guard try tx.isListed(b) else { throw Failure() }
                    let chat = try tx.chat(of: a, and: b)
                    if let chat {
                        let cid = Int64(1_000_000 + index)
                        _ = try tx.sent(cid: cid, from: a, on: store.device, in: chat)
                    }
                    try store.send("hello", from: a, to: b, in: tx)
                }
            }
        }
        try write(8)
        for _ in 0..<history { try write(8) }
        let connection = try #require(store.writer.connection.sql as? SQLiteConnection)
        let before = (
            connection.statementCount, try rows(store, "message"), try rows(store, "member")
        )
        try write(sends)
        return (
            connection.statementCount - before.0, try rows(store, "message") - before.1,
            try rows(store, "member") - before.2
        )
    }

    private func rows(_ store: TestStore, _ table: String) throws -> Int64 {
        let statement = try store.reader.sql.prepare("SELECT count(*) FROM \(table)")
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : -1
    }

    private struct Failure: Error {}

    @Test("one statement of its own; rows of members and of the clock once a batch")
    func statements() throws {
        let small = try cost(sends: 64, history: 1)
        let large = try cost(sends: 128, history: 1)
        #expect(small.messages == 64 && large.messages == 128)
        #expect(small.members == 0)
        // Each send runs one insert and no other statement. The writer already knows from memory
        // that the client id is new, and who the members of the chat are.
        #expect(large.statements - small.statements == 64)
        // Each batch also runs one statement for each of the 16 members, and two for the clock.
        // BEGIN and COMMIT do not count as statements.
        #expect(small.statements - 64 == 16 + 2)
    }

    @Test("the same after a long history")
    func flat() throws {
        #expect(try cost(sends: 64, history: 200) == cost(sends: 64, history: 1))
    }
}
