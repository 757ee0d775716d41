import TambourProtocol
import TambourTesting
import Testing

@Suite("MSG_GET (71)")
struct MsgGetTests {
    @Test("removed, hidden, unknown and foreign messages are left out")
    func visible() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let ids = try (1...4).map { try alice.send("\($0)", to: dialog, cid: $0).message.id }
            let foreign = try carol.send("5", to: carol.dialog(with: bob), cid: 1).message.id
            try alice.delete([ids[0]], in: dialog)
            try bob.delete([ids[1]], in: dialog, forMe: true)
            let reply = try bob.call(
                MsgGetRequest(
                    chatID: dialog,
                    messageIDs: ids.reversed() + [foreign, MessageID(1), ids[3]]
                )
            )
            #expect(reply.chatID == dialog)
            #expect(reply.messages.map(\.id) == [ids[2], ids[3]])
            #expect(reply.messages.map(\.text) == ["3", "4"])
        }
    }

    @Test("a reply that would be too long is cut")
    func cut() throws {
        try withPair(limits: ["maxReplyBytes": 1_000]) { _, alice, bob, dialog in
            let text = String(repeating: "x", count: 200)
            let ids = try (1...4).map { try alice.send(text, to: dialog, cid: $0).message.id }
            let reply = try bob.call(MsgGetRequest(chatID: dialog, messageIDs: ids))
            #expect(reply.messages.map(\.id) == [ids[0], ids[1]])
        }
    }

    @Test("a chat of others is not found")
    func foreign() throws {
        try withPair { server, alice, _, dialog in
            try alice.send("1", to: dialog, cid: 1)
            let carol = try server.signUp("Carol")
            for chat in [dialog, ChatID(-5)] {
                let request = MsgGetRequest(chatID: chat, messageIDs: [MessageID(1)])
                #expect(try carol.code(of: request) == .chatNotFound)
            }
        }
    }
}
