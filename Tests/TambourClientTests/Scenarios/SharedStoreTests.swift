import GRDB
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Several clients on one file: one client is connected and serves the rest.
@Suite("Clients that share a file")
struct SharedStoreTests {
    /// Runs `body` with a connected client and an unconnected one on the same file.
    private func withTwo(
        _ body: (World, WireClient, _ first: Client, _ second: Client) async throws -> Void
    ) async throws {
        try await withWorld { world in
            let alice = try world.server.signUp("Alice")
            let first = try await world.onlineClient(of: alice)
            let second = try world.open("tambour")
            second.start()
            try await second.until("beside the other") { $0.state == .elsewhere }
            try await body(world, alice, first, second)
        }
    }

    @Test("fetch what is missing where any of them looks")
    func looks() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let before = try await world.onlineClient(of: alice)
            await before.stop()
            for number in 1...120 { try bob.send("b\(number)", to: chat, cid: Int64(number)) }
            let first = try world.open("tambour")
            try await first.startAndSync()
            let second = try world.open("tambour")
            second.start()
            try await second.until("beside the other") { $0.state == .elsewhere }
            #expect(try second.texts(of: chat) == ["…", "b120"])

            let expected = ["…"] + (71...120).map { "b\($0)" }
            second.look(at: chat, rowsOnScreen: 40)
            try await second.until("fetched") {
                try $0.texts(of: chat, count: 50).suffix(50) == expected.suffix(50)
            }
            // The connected client also fills a gap between rows.
            let held = try #require(try second.history(of: chat).rows.first?.message)
            second.look(
                at: chat,
                rowsOnScreen: 1,
                visible: [MessageID(held.rawValue - (1 << 40)), held]
            )
            try await second.until("all fetched") {
                try $0.texts(of: chat, count: 200) == (1...120).map { "b\($0)" }
            }
        }
    }

    @Test("get answers of the server, and its refusals")
    func answers() async throws {
        try await withTwo { world, _, _, second in
            let carol = try world.server.signUp("Carol")
            let phone = try #require(
                try carol.call(ContactInfoRequest(contactIDs: [carol.userID])).contacts[0].phone
            )
            let found = try await second.find(phone: "+\(phone)")
            #expect(found.id == carol.userID)
            #expect(try await second.sessions().count == 2)
            let error = try await #require(throws: ClientError.self) {
                _ = try await second.find(phone: "+70000000000")
            }
            guard case .refused = error else {
                Issue.record("it was no refusal: \(error)")
                return
            }
            let left = try await second.wish { _, tx in try tx.int("SELECT count(*) FROM errand") }
            #expect(left == 0)
        }
    }

    @Test("leave what a process was told to ask to the next one when it is gone")
    func takenOver() async throws {
        try await withTwo { _, _, first, second in
            await first.stop()
            // A process that has ended sent one of the errands; no process has sent the other.
            try await second.wish { core, tx in
                try tx.execute(
                    """
                    INSERT INTO errand (opcode, payload, askedAtHere, sentBy)
                    VALUES (?, x'80', ?, 'gone')
                    """,
                    [Int64(Opcode.sessionsInfo.rawValue), core.environment.wallMs()]
                )
                _ = try core.leaveErrand(.sessionsInfo, [0x80], tx)
            }
            @Sendable func count(_ column: String) async throws -> Int64? {
                try await second.wish { _, tx in
                    try tx.int("SELECT count(*) FROM errand WHERE \(column) IS NOT NULL")
                }
            }
            try await second.until("both answered") { _ in
                let (failed, answered) = (try await count("failure"), try await count("reply"))
                return failed == 1 && answered == 1
            }
        }
    }

    @Test("sign out of all of them, wherever somebody does it")
    func signOut() async throws {
        try await withTwo { _, alice, first, second in
            #expect(try alice.call(SessionsInfoRequest()).sessions.count == 2)
            try await second.signOut()
            try await first.until("signed out") { $0.state == .signedOut }
            #expect(first.signedOutReason != nil)
            let deadline = ContinuousClock.now + .seconds(120)
            while try alice.call(SessionsInfoRequest()).sessions.count > 1 {
                try #require(ContinuousClock.now < deadline, "the session lives on")
            }
            let error = await #expect(throws: ClientError.self) {
                _ = try await second.requestCode(phone: "+70000000000")
            }
            guard case .invalid = error else {
                Issue.record("it was taken for another fault: \(String(describing: error))")
                return
            }
            await #expect(throws: ClientError.self) { try await second.signIn(token: "other") }
        }
    }

    @Test("fail what was asked for when the store of the connected one has failed")
    func storeFailed() throws {
        try withScriptedServer { server in
            _ = try server.wish { core, tx in try core.leaveErrand(.sessionsInfo, [0x80], tx) }
            #expect(server.isAsked(.sessionsInfo))
            #expect(throws: ClientError.self) {
                try server.withFullDisk { _ = try server.wish { _, _ in } }
            }
            server.reconnect()
            let failed = try server.wish { _, tx in
                try tx.int("SELECT count(*) FROM errand WHERE failure IS NOT NULL")
            }
            #expect(failed == 1)
            #expect(!server.isAsked(.sessionsInfo))
        }
    }

    @Test("keep entities up to date for each other")
    func entities() async throws {
        try await withTwo { _, _, _, second in
            #expect(await !second.isEntitySyncDone())
            _ = try await second.entities()
            try await second.until("pulled") { await $0.isEntitySyncDone() }
            try await second.createEntity(.account, fields: ["name": .string("Home")])
            try await second.until("pushed") { try await $0.pendingEntityChanges() == 0 }
        }
    }
}
