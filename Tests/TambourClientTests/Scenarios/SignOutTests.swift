import TambourProtocol
import Testing

@testable import TambourClient

/// Ends an account on this device while much work is in progress.
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

    @Test("who signs in again while the greeting is on its way is logged in when it is answered")
    func signedInDuringGreeting() throws {
        try withScriptedServer { server in
            try server.signOut()
            server.isSlow = true
            server.reconnect()
            try server.signIn()
            #expect(server.isAsked(.sessionInit) && !server.isAsked(.login))
            try server.answer(.sessionInit, SessionInitReply(callsSeed: 1))
            #expect(try server.asked(LoginRequest.self).map(\.token) == ["token"])
        }
    }

    @Test("who signs in with another token while one is tried is logged in with the other")
    func otherToken() throws {
        try withScriptedServer { server in
            server.isSlow = true
            server.reconnect()
            #expect(try server.asked(LoginRequest.self).map(\.token) == ["token"])
            try server.signIn(token: "other")
            #expect(!server.isAsked(.login))
            server.passTime()
            #expect(try server.asked(LoginRequest.self).map(\.token) == ["other"])
            // Signing in again with the same token changes nothing.
            try server.signIn(token: "other")
            #expect(try server.asked(LoginRequest.self).map(\.token) == ["other"])
        }
    }

    @Test("ends the session of the connected process, and nothing late comes into the store")
    func byAnotherProcess() throws {
        try withScriptedServer { server in
            _ = try server.wish(Self.queueMessage)
            #expect(server.isAsked(.msgSend))
            let other = try LocalStore(path: server.store.path)
            try other.write { try $0.signOut() }
            other.close()
            // The core learns of the sign-out through a user's request, which fails.
            #expect(throws: ClientError.signedOut) {
                try server.wish { core, tx in
                    guard try tx.userID() != nil else { throw ClientError.signedOut }
                }
            }
            #expect(server.isAsked(.logout))
            let sent = MsgSendReply(chatID: Self.chat, message: Self.message)
            try server.answer(.msgSend, sent)
            #expect(try Self.isEmpty(server.store))
            // A push to the old session must not reach the account that signs in now.
            _ = try server.wish { _, tx in try tx.set(.user, 9) }
            server.push(.notifMessage, NotifMessage(chatID: Self.chat, message: Self.message))
            _ = try server.wish { _, tx in try tx.set(.user, nil) }
            #expect(try Self.isEmpty(server.store))
            try server.answer(.logout, LogoutReply())
            server.passTime()
            #expect(server.logins == 1)
            #expect(try Self.isEmpty(server.store))
        }
    }

    @Test("that fails changes nothing, and who waits for an answer is told")
    func fullDisk() throws {
        try withScriptedServer { server in
            var answers: [Result<SessionsInfoReply, ClientError>] = []
            server.ask(SessionsInfoRequest()) { answers.append($0) }
            #expect(answers.isEmpty)
            #expect(throws: ClientError.self) { try server.withFullDisk { try server.signOut() } }
            #expect(answers.count == 1)
            server.withFullDisk { server.ask(SessionsInfoRequest()) { answers.append($0) } }
            server.reconnect()
            #expect(answers.count == 2)
            #expect(server.logins == 2)
            // The user is still signed in, so signing out must work.
            try server.signOut()
            #expect(server.isAsked(.logout))
        }
    }

    @Test("lets who asks for a code meanwhile wait for the next connection")
    func codeMeanwhile() throws {
        try withScriptedServer { server in
            try server.signOut()
            var answers: [Result<AuthRequestReply, ClientError>] = []
            server.ask(AuthRequestRequest(phone: "+79990000001", type: "START_AUTH")) {
                answers.append($0)
            }
            try server.answer(.logout, LogoutReply())
            server.passTime()
            #expect(answers.isEmpty)
            #expect(server.isAsked(.authRequest))
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
