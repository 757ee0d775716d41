import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// The server pushes only changes of presence, so a client must ask who is already online.
@Suite("Presence at the client")
struct PresenceTests {
    @Test("a dialog that begins while connected shows whether its partner is online")
    func newDialog() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let carol = try world.server.signUp("Carol")
            let client = try await world.onlineClient(of: alice)
            // The client does not know Bob, but it knows Carol before her dialog begins.
            try bob.send("hi", to: chat, cid: 1)
            let profile = try carol.call(ContactInfoRequest(contactIDs: [carol.userID]))
            let phone = try #require(profile.contacts.first?.phone)
            _ = try await client.find(phone: "+\(phone)")
            try await client.send("hello", to: alice.dialog(with: carol))
            try await client.until("both online") { client in
                let chats = try client.chats()
                return chats.count == 2 && chats.allSatisfy(\.isOnline)
            }
            for other in [bob, carol] { try other.call(PingRequest()) }
        }
    }

    @Test("who stayed online is online after a restart and a new connection")
    func restart() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hi", to: chat, cid: 1)
            var client = try await world.onlineClient(of: alice)
            try await client.until("Bob online") { try $0.chats().first?.isOnline == true }
            await client.stop()
            client = try world.open("tambour")
            #expect(try client.chats().first?.isOnline == false)
            try await client.startAndSync()
            #expect(try client.chats().first?.isOnline == true)
            try bob.call(PingRequest())
        }
    }
}
