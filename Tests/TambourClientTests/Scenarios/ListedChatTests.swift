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

    private static func shown(_ server: ScriptedServer) throws -> [String] {
        try server.store.read { db in
            try Reader(db).history(of: chat, .newest, count: 100).rows.map(\.text)
        }
    }

    private static func unread(_ server: ScriptedServer) throws -> Int? {
        try server.store.read { db in
            try Reader(db).chats(includingHidden: true).first { $0.id == chat }?.unread
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
        try withScriptedServer { server in
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
        try withScriptedServer { server in
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

    @Test("a page that has a message before its push does not keep it from being counted")
    func pageFirst() throws {
        try withScriptedServer { server in
            let (older, first, second) = (Self.message(0), Self.message(1), Self.message(2))
            server.login.chats = [Self.described(last: first, before: older)]
            server.reconnect()
            #expect(try Self.unread(server) == 1)
            _ = try server.wish { core, tx in
                try core.look(
                    at: Self.chat,
                    position: nil,
                    isGoingBack: true,
                    rowsOnScreen: 10,
                    visible: [],
                    tx
                )
            }
            try server.answer(.chatHistory, ChatHistoryReply(messages: [older, first, second]))
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: second, prevMessageID: first.id)
            )
            #expect(try Self.unread(server) == 2)
        }
    }

    @Test("an answer to an own message does not take away what was said and pushed since")
    func answerLast() throws {
        try withScriptedServer { server in
            let first = Self.message(1)
            server.login.chats = [Self.described(last: first)]
            server.reconnect()
            _ = try server.wish { core, tx in
                let task = SendTask(chat: Self.chat.rawValue, cid: 5, text: "message 2")
                return try core.queue(task, tx)
            }
            var (own, third) = (Self.message(2), Self.message(3))
            (own.sender, own.cid) = (ScriptedServer.me, 5)
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: third, prevMessageID: own.id)
            )
            let reply = MsgSendReply(
                chatID: Self.chat,
                message: own,
                unread: 0,
                mark: own.time,
                prevMessageID: first.id
            )
            try server.answer(.msgSend, reply)
            third.prevMessageID = nil
            // It is not known how many, so it is asked.
            try server.answer(
                .chatInfo,
                ChatInfoReply(chats: [Self.described(last: third, before: own)])
            )
            #expect(try Self.unread(server) == 1)
            #expect(try Self.shown(server) == ["message 1", "message 2", "message 3"])
        }
    }

    @Test("a message that comes before it, and is deleted, does not come back with an older answer")
    func deletedMeanwhile() throws {
        try withScriptedServer { server in
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
