import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("A store that was restored")
struct RestoreTests {
    @Test("answers marks from before with everything, and says so")
    func marks() throws {
        let clock = ManualClock()
        let server = try TestServer(environment: clock.environment)
        defer { TestServer.removeDirectory(server.dataDirectory) }
        let alice = try server.signUp("Alice")
        let bob = try server.signUp("Bob")
        let dialog = alice.dialog(with: bob)
        try alice.send("kept", to: dialog, cid: 1)
        clock.advance(ms: 1000)
        let carol = try server.signUp("Carol")
        try alice.send("kept too", to: alice.dialog(with: carol), cid: 1)
        clock.advance(ms: 1000)
        let before = try server.reconnect(alice).login.time
        let place = "\(server.dataDirectory)-backup"
        let backup = Backup(place, environment: clock.environment)
        defer { TestServer.removeDirectory(place) }
        clock.advance(ms: 1000)
        try backup.take(from: server.dataDirectory) { _ in }
        // Opening the backup as a store would change its file, which would no longer match its
        // digest.
        #expect(throws: DataDirectory.Failure.self) { try DataDirectory(place) }
        clock.advance(ms: 1000)
        try alice.send("lost", to: dialog, cid: 2)
        _ = try alice.createGroup("Lost", with: [bob], cid: 3)
        clock.advance(ms: 1000)
        try alice.send("note", to: ChatID(0), cid: 4)
        let after = try server.reconnect(alice).login.time
        server.stop()

        clock.advance(ms: 1000)
        let directory = "\(server.dataDirectory)-restored"
        defer { TestServer.removeDirectory(directory) }
        try backup.restore(to: directory) { _ in }
        clock.advance(ms: 1000)
        let restored = try TestServer(
            environment: clock.environment,
            dataDirectory: directory
        )
        defer { restored.stop() }
        func login(since mark: Int64, _ capabilities: [String]) throws -> LoginReply {
            let client = try restored.connect(device: "phone", capabilities: capabilities)
            client.token = alice.token
            return try restored.login(client, since: mark)
        }
        // The server answers both marks alike: even a client whose mark is from before the backup
        // may hold pushes that the restored store lacks.
        for mark in [before, after] {
            let told = try login(since: mark, ["resync"])
            #expect(told.resync == [.chats, .contacts, .drafts])
            #expect(told.chats.map(\.lastMessage?.text) == ["kept too", "kept"])
            #expect(Set(told.contacts.map(\.id)) == [bob.userID, carol.userID])
        }
        // A client drops contacts that the reply lacks, so the first page of chats comes with the
        // contacts of all pages.
        let short = try restored.connect(device: "phone", capabilities: ["resync"])
        let page = try short.call(
            LoginRequest(
                token: alice.token,
                chatsSync: after,
                contactsSync: after,
                draftsSync: after,
                chatsCount: 1
            )
        )
        #expect(page.chats.map(\.lastMessage?.text) == ["kept too"])
        #expect((page.chatMarker ?? 0) > 0)
        #expect(Set(page.contacts.map(\.id)) == [bob.userID, carol.userID])
        let told = try login(since: after, ["resync"])
        // No commit of the restored store is this late, so the mark can only come from before the
        // restore.
        let ahead = try login(since: told.time + 3_600_000, ["resync"])
        #expect(ahead.resync == told.resync)
        let classic = try login(since: after, [])
        #expect(classic.resync == nil)
        #expect(classic.chats.map(\.id) == told.chats.map(\.id))
        let delta = try login(since: told.time, ["resync"])
        #expect(delta.resync == nil)
        #expect(delta.chats.isEmpty)
    }
}
