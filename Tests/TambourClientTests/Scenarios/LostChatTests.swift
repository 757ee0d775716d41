import GRDB
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Groups that the account has lost access to.
@Suite("Chats that are lost")
struct LostChatTests {
    /// The ways to lose a group.
    enum Loss: CaseIterable {
        case removed
        case deleted
        case leftElsewhere
    }

    private func lose(
        _ group: ChatID,
        by loss: Loss,
        _ owner: WireClient,
        _ member: WireClient
    ) throws {
        switch loss {
        case .removed:
            try owner.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [member.userID],
                    operation: .remove
                )
            )
        case .deleted: try owner.call(ChatDeleteRequest(chatID: group, forAll: true))
        case .leftElsewhere: try member.call(ChatLeaveRequest(chatID: group))
        }
    }

    @Test(
        "it is said so, what was read stays, and nothing is sent there",
        arguments: Loss.allCases,
        [true, false]
    )
    func lost(by loss: Loss, isOnline: Bool) async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let group = try bob.createGroup("Friends", with: [alice], cid: 1)
            try bob.send("hello", to: group, cid: 2)
            var client = try await world.onlineClient(of: alice)
            client.look(at: group, rowsOnScreen: 10)
            try await client.saveDraft("half a sen", in: group)
            try await client.waitUntilIdle()
            let held = try client.texts(of: group)
            #expect(held.last == "hello")
            if isOnline {
                try lose(group, by: loss, bob, alice)
                try await client.waitUntilIdle()
            } else {
                await client.stop()
                try lose(group, by: loss, bob, alice)
                client = try world.open("tambour")
                try await client.startAndSync()
                try await client.waitUntilIdle()
            }
            try await checkLost(group, client, held)
            // Opening a lost group must not cause a request that the server would refuse.
            let before = await client.historyRequests()
            client.look(at: group, rowsOnScreen: 100)
            try await client.waitUntilIdle()
            #expect(await client.historyRequests() == before)

            try await client.leave(group)
            #expect(try client.chat(group) == nil)
            #expect(try client.history(of: group).rows.isEmpty)
            #expect(try client.queueLength() == 0)
        }
    }

    private func checkLost(_ group: ChatID, _ client: Client, _ held: [String]) async throws {
        let line = try #require(try client.chat(group))
        #expect(line.isGone)
        #expect(line.unread == 0)
        #expect(try client.texts(of: group) == held)
        // The server has deleted the draft, but the user can still copy and change the local one.
        #expect(try client.draft(in: group).text == "half a sen")
        try await client.saveDraft("half a sentence", in: group)
        try await client.waitUntilIdle()
        #expect(try client.draft(in: group).text == "half a sentence")
        await #expect(throws: ClientError.self) { try await client.send("still here?", to: group) }
        #expect(try client.queueLength() == 0)
    }

    @Test("a chat that is missing from a list read anew is lost too, and stays so")
    func listedAnew() throws {
        try withScriptedServer { server in
            let group = ChatID(-4096)
            func described(_ number: Int64) -> Chat {
                var chat = ScriptedServer.described(last: ScriptedServer.message(number))
                chat.id = group
                chat.type = .chat
                return chat
            }
            func isGone() -> Bool? {
                try? server.store.read { try Reader($0).chat(group)?.isGone }
            }
            server.login.chats = [described(1)]
            server.reconnect()
            #expect(isGone() == false)
            server.login.chats = []
            server.login.resync = [.chats]
            for _ in 1...2 {
                server.reconnect()
                #expect(isGone() == true)
            }
            // The account is in the group again.
            server.login.chats = [described(2)]
            server.reconnect()
            #expect(isGone() == false)
        }
    }

    @Test("whoever is let in again sees what they may see, and can write")
    func letInAgain() async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let group = try bob.createGroup("Friends", with: [alice], cid: 1)
            try bob.send("hello", to: group, cid: 2)
            let client = try await world.onlineClient(of: alice)
            client.look(at: group, rowsOnScreen: 10)
            try await client.waitUntilIdle()
            try lose(group, by: .removed, bob, alice)
            try await client.waitUntilIdle()
            #expect(try client.chat(group)?.isGone == true)
            try await client.saveDraft("half a sen", in: group)
            try bob.send("unheard", to: group, cid: 3)
            try bob.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [alice.userID],
                    operation: .add,
                    showHistory: false
                )
            )
            try await client.waitUntilIdle()
            #expect(try client.chat(group)?.isGone == false)
            // The draft is empty, as on every other device.
            #expect(try client.draft(in: group) == .empty)
            try await client.send("back", to: group)
            client.look(at: group, rowsOnScreen: 10)
            try await client.waitUntilIdle()
            let rows = try client.history(of: group).rows
            #expect(rows.last?.text == "back")
            #expect(!rows.contains { ["hello", "unheard"].contains($0.text) })
        }
    }

    @Test("who leaves here sees it go at once")
    func leaving() async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let group = try bob.createGroup("Friends", with: [alice], cid: 1)
            let client = try await world.onlineClient(of: alice)
            try await client.leave(group)
            #expect(try client.chat(group) == nil)
            try await client.waitUntilIdle()
            #expect(try client.chat(group) == nil)
        }
    }

    @Test("nothing is said of a draft and a mark that come too late, and the draft is kept")
    func lateDraft() throws {
        try withScriptedServer { server in
            let group = ChatID(-4096)
            var described = ScriptedServer.described(last: ScriptedServer.message(1))
            (described.id, described.type) = (group, .chat)
            server.login.chats = [described]
            server.reconnect()
            _ = try server.wish { core, tx in
                try core.queue(SaveDraftTask(chat: group.rawValue, text: "half a sen"), tx)
                let read = ScriptedServer.message(1).id.rawValue
                try core.queue(
                    MarkTask(chat: group.rawValue, message: read, isUnread: false),
                    tx
                )
            }
            described.status = .removed
            server.push(.notifChat, NotifChat(chat: described))
            try server.refuse(.draftSave, with: .chatNotFound)
            try server.refuse(.chatMark, with: .chatNotFound)
            try server.answer(.chatInfo, ChatInfoReply(chats: []))
            #expect(server.refusals.isEmpty)
            let drafts = try server.store.read {
                try String.fetchAll($0, sql: "SELECT text FROM draft")
            }
            #expect(drafts == ["half a sen"])

            // The server has deleted the draft. The device shows this when the account joins again.
            (described.status, described.joinTime) = (.active, 2_000_000)
            server.login.chats = [described]
            server.reconnect()
            #expect(
                try server.store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM draft") }
                    == 0
            )
        }
    }

    /// - Parameter unread: The account's unread count in the push; nil if all members get the same
    ///   push.
    @Test(
        "what comes of a group between leaving it and the answer does not bring it back",
        arguments: [nil, 1] as [Int64?]
    )
    func leavingDuringNews(unread: Int64?) throws {
        try withScriptedServer { server in
            let group = ChatID(-4096)
            func line() throws -> ChatSummary? {
                try server.store.read { try Reader($0).chat(group) }
            }
            var described = ScriptedServer.described(last: ScriptedServer.message(1))
            (described.id, described.type) = (group, .chat)
            server.login.chats = [described]
            server.reconnect()
            #expect(try line() != nil)
            _ = try server.wish { core, tx in
                try core.queue(LeaveChatTask(chat: group.rawValue), tx)
            }
            described.newMessages = unread
            server.push(.notifChat, NotifChat(chat: described))
            if unread == nil { #expect(try line() == nil) }
            try server.answer(.chatLeave, ChatLeaveReply())
            try server.answer(.chatInfo, ChatInfoReply(chats: []))
            #expect(try line() == nil)
            #expect(
                try server.store.read { try Row.fetchAll($0, sql: "SELECT 1 FROM chat") }.isEmpty
            )
        }
    }

    @Test(
        "who was blocked is told why nothing is sent, and keeps the dialog",
        arguments: [true, false]
    )
    func blocked(isByOther: Bool) async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hello", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            let (who, whom) = isByOther ? (bob, alice) : (alice, bob)
            try who.call(ContactUpdateRequest(contactID: whom.userID, action: .block))
            let sent = try await client.send("anybody there?", to: chat)
            try await client.until("the refusal") { try $0.failure(of: sent) != nil }
            #expect(try client.failure(of: sent)?.isEmpty == false)
            #expect(try client.chat(chat)?.isGone == false)
            #expect(try client.texts(of: chat).contains("hello"))
            #expect(try client.texts(of: chat).last == "anybody there?")
        }
    }
}
