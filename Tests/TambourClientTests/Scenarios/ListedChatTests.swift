import TambourProtocol
import Testing

@testable import TambourClient

/// What is believed of a chat whose list entry and whose messages do not come together.
@Suite("A chat and its place in the list")
struct ListedChatTests {
    private static let chat = ChatID.dialog(ScriptedServer.me, ScriptedServer.partner)

    private static func message(_ number: Int64) -> Message {
        Message(
            id: MessageID(timeMs: 2_000_000 + number, counter: 0),
            time: 2_000_000 + number,
            type: "USER",
            text: Text("message \(number)"),
            sender: ScriptedServer.partner
        )
    }

    private static func described(last: Message?, before previous: Message? = nil) -> Chat {
        Chat(
            id: chat,
            type: .dialog,
            status: .active,
            owner: ScriptedServer.me,
            participants: IDMap([(ScriptedServer.me, 1), (ScriptedServer.partner, 1)]),
            lastMessage: last,
            lastEventTime: last?.time ?? 0,
            created: 1,
            joinTime: 1,
            modified: 1,
            newMessages: 1,
            prevMessageID: previous?.id
        )
    }

    private static func withServer(_ body: (ScriptedServer) throws -> Void) throws {
        let server = try ScriptedServer()
        defer { server.close() }
        try body(server)
    }

    private static func shown(_ server: ScriptedServer) throws -> [String] {
        try server.store.read { db in
            try Reader(db).history(of: chat, .newest, count: 100).rows.map(\.text)
        }
    }

    private static func isListed(_ server: ScriptedServer) throws -> Bool {
        try server.store.read { db in
            try Reader(db).chats(includingHidden: true).contains { $0.id == chat }
        }
    }

    @Test(
        "a refusal to describe it says nothing of it: what may pass is asked again",
        arguments: [RequestError.Code.internalError, RequestError.Code.overloaded]
    )
    func refused(code: RequestError.Code) throws {
        try Self.withServer { server in
            server.login.chats = [Self.described(last: Self.message(1))]
            server.reconnect()
            #expect(try Self.isListed(server))
            server.push(
                .notifMsgDelete,
                NotifMsgDelete(chatID: Self.chat, messageIDs: [Self.message(1).id])
            )
            try server.refuse(.chatInfo, with: code)
            #expect(try Self.isListed(server))
            server.login.chats = []
            server.reconnect()
            try server.answer(.chatInfo, ChatInfoReply(chats: [Self.described(last: nil)]))
            #expect(!server.isAsked(.chatInfo))
            #expect(try Self.isListed(server))
            #expect(try Self.shown(server) == [])
        }
    }

    @Test("an answer without it takes it out of the list")
    func gone() throws {
        try Self.withServer { server in
            server.login.chats = [Self.described(last: Self.message(1))]
            server.reconnect()
            server.push(
                .notifMsgDelete,
                NotifMsgDelete(chatID: Self.chat, messageIDs: [Self.message(1).id])
            )
            try server.answer(.chatInfo, ChatInfoReply(chats: []))
            #expect(try !Self.isListed(server))
        }
    }

    @Test("a message that comes before it, and is deleted, does not come back with an older answer")
    func deletedMeanwhile() throws {
        try Self.withServer { server in
            let (first, second) = (Self.message(1), Self.message(2))
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: second, prevMessageID: first.id)
            )
            #expect(try Self.shown(server) == ["message 2"])
            server.push(
                .notifMsgDelete,
                NotifMsgDelete(chatID: Self.chat, messageIDs: [second.id])
            )
            try server.answer(
                .chatInfo,
                ChatInfoReply(chats: [Self.described(last: second, before: first)])
            )
            #expect(try Self.shown(server) == [])
            #expect(try Self.isListed(server))
        }
    }
}
