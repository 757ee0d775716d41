import TambourProtocol
import Testing

@testable import TambourClient

/// The end of an account on this device, while much is under way.
@Suite("Signing out")
struct SignOutTests {
    private static let chat = ChatID.dialog(ScriptedServer.me, ScriptedServer.partner)

    private static let message = Message(
        id: MessageID(timeMs: 2_000_000, counter: 0),
        time: 2_000_000,
        type: "USER",
        text: "hello",
        sender: ScriptedServer.partner
    )

    private static func isEmpty(_ store: LocalStore) throws -> Bool {
        try store.write { tx in
            try ["chat", "message", "person", "task", "history_chunk"].allSatisfy {
                try tx.int("SELECT count(*) FROM \($0)") == 0
            } && tx.userID() == nil
        }
    }

    private static func queueMessage(_ core: ClientCore, _ tx: StoreTransaction) throws {
        try core.queue(
            SendTask(chat: chat.rawValue, cid: core.nextClientID(), text: "mine"),
            tx
        )
    }

    @Test("ends the session of the connected process, and nothing late comes into the store")
    func byAnotherProcess() throws {
        try withScriptedServer { server in
            _ = try server.wish(Self.queueMessage)
            #expect(server.isAsked(.msgSend))
            let other = try LocalStore(path: server.store.path)
            try other.write { try $0.signOut() }
            other.close()
            // The first that is heard of it is what somebody wants, which fails.
            #expect(throws: ClientError.signedOut) {
                try server.wish { core, tx in
                    guard try tx.userID() != nil else { throw ClientError.signedOut }
                }
            }
            #expect(server.isAsked(.logout))
            let sent = MsgSendReply(chatID: Self.chat, message: Self.message)
            try server.answer(.msgSend, sent)
            server.push(.notifMessage, NotifMessage(chatID: Self.chat, message: Self.message))
            #expect(try Self.isEmpty(server.store))
            try server.answer(.logout, LogoutReply())
            server.reconnect()
            #expect(!server.isAsked(.login))
            #expect(try Self.isEmpty(server.store))
        }
    }

    @Test("leaves nothing to the answers that are under way")
    func here() throws {
        try withScriptedServer { server in
            server.push(.notifMessage, NotifMessage(chatID: Self.chat, message: Self.message))
            #expect(server.isAsked(.contactInfo))
            try server.signOut()
            #expect(server.isAsked(.logout))
            let partner = User(id: ScriptedServer.partner)
            try server.answer(.contactInfo, ContactInfoReply(contacts: [partner]))
            #expect(try Self.isEmpty(server.store))
        }
    }
}
