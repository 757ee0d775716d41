import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Messages from the draft to the last edit.
@Suite("What a client writes")
struct WritingTests {
    @Test("an edit keeps formatting and names outside of what it changes")
    func editing() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let elements = [
                Element(type: "STRONG", from: 0, length: 4),
                Element(type: "EMPHASIZED", from: 5, length: 5),
                Element(type: "USER_MENTION", from: 11, length: 4, entityID: bob.userID),
            ]
            try alice.call(
                MsgSendRequest(
                    chatID: chat,
                    message: NewMessage(cid: 1, text: "bold plain @Bob", elements: elements)
                )
            )
            let client = try await world.onlineClient(of: alice)
            client.look(at: chat, rowsOnScreen: 10)
            try await client.until("it") { try $0.texts(of: chat) == ["bold plain @Bob"] }
            let message = try #require(try client.history(of: chat).rows.first?.message)
            try await client.edit(message, in: chat, text: "bold and not plain @Bob")
            try await client.until("done") { try $0.queueLength() == 0 }
            func shown() throws -> [MessageSpan] {
                try client.history(of: chat).rows.first?.spans.sorted {
                    $0.range.lowerBound < $1.range.lowerBound
                } ?? []
            }
            #expect(try shown().map(\.style) == [.strong, .emphasized, .mention(bob.userID)])
            #expect(try shown().map(\.range) == [0..<4, 13..<18, 19..<23])
            await client.stop()

            // Edit the message twice before the client can send the first edit, and check the local
            // view.
            let offline = try world.open("tambour")
            try await offline.edit(message, in: chat, text: "bold and not so plain @Bob")
            try await offline.edit(message, in: chat, text: "and not so plain @Bob")
            let row = try #require(try offline.history(of: chat).rows.first)
            #expect(row.spans.map(\.style) == [.emphasized, .mention(bob.userID)])
            #expect(row.spans.map(\.range) == [11..<16, 17..<21])

            // New formatting replaces the old formatting, but not the mention.
            let strong = MessageSpan(.strong, 0..<3)
            try await offline.edit(message, in: chat, text: "and not @Bob", formatted: [strong])
            let edited = try #require(try offline.history(of: chat).rows.first)
            #expect(Set(edited.spans) == [strong, MessageSpan(.mention(bob.userID), 8..<12)])
        }
    }

    @Test("a refused message does not hide what is newer in the list")
    func preview() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("before", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            try await client.until("before") { try $0.chat(chat)?.preview?.text == "before" }
            try await client.send("answers nothing", to: chat, replyingTo: MessageID(77 << 16))
            try await client.until("the refusal") { try $0.chat(chat)?.failedCount == 1 }
            #expect(try client.chat(chat)?.preview?.text == "answers nothing")
            try bob.send("after", to: chat, cid: 2)
            try await client.until("after") { try $0.texts(of: chat).contains("after") }
            #expect(try client.chat(chat)?.preview?.text == "after")
            #expect(try client.chat(chat)?.preview?.state == .received)
            #expect(try client.chat(chat)?.failedCount == 1)
        }
    }

    @Test("a message that waits is changed in its place, whatever of it the server has")
    func queued() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            try await client.send("hello", to: chat)
            try await client.until("sent") { try $0.queueLength() == 0 }
            let first = try #require(try client.history(of: chat).rows.first)
            await client.stop()

            let offline = try world.open("tambour")
            try await offline.send("one", to: chat)
            try await offline.send("two", to: chat)
            let row = try #require(try offline.history(of: chat).rows.first { $0.text == "one" })
            let mention = MessageSpan(.mention(bob.userID), 0..<4)
            try await offline.edit(row.id, in: chat, text: "@Bob one", formatted: [mention])
            #expect(try offline.texts(of: chat) == ["hello", "@Bob one", "two"])
            #expect(try offline.history(of: chat).rows.first { $0.id == row.id }?.spans.count == 1)
            // Simulate a lost answer: the server already has the message, and replies with its own
            // copy.
            guard case .own(let cid) = first.id else { throw ClientError.signedOut }
            try await offline.wish { core, tx in
                var task = SendTask(chat: chat.rawValue, cid: cid, text: "hello again")
                task.hadOtherText = true
                try core.queue(task, tx)
            }
            try await offline.startAndSync()
            try await offline.until("all is done") { try $0.queueLength() == 0 }
            #expect(try offline.texts(of: chat) == ["hello again", "@Bob one", "two"])
            #expect(try offline.history(of: chat).rows.map(\.isEdited) == [true, false, false])
            let page = try bob.call(ChatHistoryRequest(chatID: chat, backward: 10))
            let messages = try #require(page.messages)
            #expect(messages.map { "\($0.text)" } == ["hello again", "@Bob one", "two"])
            #expect(messages[1].elements?.stored?.first?.entityID == bob.userID)

            // Use the id that the message had while it waited.
            try await offline.edit(row.id, in: chat, text: "@Bob one!")
            try await offline.until("done") { try $0.queueLength() == 0 }
            #expect(try offline.texts(of: chat) == ["hello again", "@Bob one!", "two"])
        }
    }

    @Test("a draft is thrown away only while it is the one that is meant")
    func drafts() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let sent = try bob.send("hi", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            #expect(try client.draft(in: chat) == .empty)
            try await client.saveDraft("an ans", in: chat)
            let answer = Client.Draft(text: "an ans", replyTo: sent.message.id)
            try await client.saveDraft("an ans", in: chat, replyingTo: sent.message.id)
            #expect(try client.draft(in: chat) == answer)
            try await client.until("saved") { try $0.queueLength() == 0 }
            try alice.call(DraftSaveRequest(chatID: chat, draft: NewDraft(text: "newer")))
            try await client.until("newer") { try $0.draft(in: chat).text == "newer" }
            try await client.discardDraft(answer, in: chat)
            #expect(try client.draft(in: chat) == Client.Draft(text: "newer"))
            try await client.discardDraft(Client.Draft(text: "newer"), in: chat)
            #expect(try client.draft(in: chat) == .empty)
        }
    }

    @Test("a draft that the server may hold under an unknown time is thrown away all the same")
    func unansweredDraft() throws {
        try withScriptedServer { server in
            let chat = ChatID.dialog(ScriptedServer.me, ScriptedServer.partner)
            func save(_ text: String) throws {
                _ = try server.wish { core, tx in
                    try core.queue(SaveDraftTask(chat: chat.rawValue, text: text), tx)
                }
            }
            try save("h")
            try server.answer(.draftSave, DraftSaveReply(time: 50))
            try save("he")
            #expect(server.isAsked(.draftSave))
            server.loseConnection()
            // This draft replaces the draft whose answer was lost.
            try save("hey")
            _ = try server.wish { core, tx in
                try core.discardDraft(Client.Draft(text: "hey"), in: chat, tx)
            }
            let draft = Draft(text: "he", time: 60, saveTime: 60)
            server.login.drafts = Drafts(chats: ChatDrafts(saved: IDMap([(chat, draft)])))
            server.passTime()
            #expect(try server.asked(DraftDiscardRequest.self).map(\.time) == [60])
        }
    }

    @Test("a message and the end of its draft are stored together")
    func sentDraft() async throws {
        try await withWorld { world in
            let (alice, _, chat) = try world.aliceAndBob()
            let online = try await world.onlineClient(of: alice)
            await online.stop()
            let client = try world.open("tambour")
            try await client.saveDraft("hello", in: chat)
            let before = try await client.call { $0.subjects.transactions }
            try await client.send("hello", to: chat, insteadOf: Client.Draft(text: "hello"))
            #expect(try await client.call { $0.subjects.transactions } == before + 1)
            #expect(try client.draft(in: chat) == .empty)
            #expect(try client.history(of: chat).rows.map(\.text) == ["hello"])
            try await client.saveDraft("other", in: chat)
            try await client.send("again", to: chat, insteadOf: Client.Draft(text: "hello"))
            #expect(try client.draft(in: chat).text == "other")
        }
    }

    @Test("the one stretch in which two texts differ moves what is around it")
    func change() {
        let whole = Element(type: "STRONG", from: 0, length: 9)
        func moved(_ old: String, _ new: String, _ element: Element) -> Range<Int64>? {
            TextChange(from: old, to: new).moved([element]).first.map {
                $0.from..<$0.from + ($0.length ?? 0)
            }
        }
        #expect(moved("bold word", "bold words", whole) == 0..<9)
        #expect(moved("bold word", "bold, word", whole) == 0..<10)
        #expect(moved("bold word", "a bold word", whole) == 2..<11)
        #expect(moved("bold word", "other", whole) == nil)
        #expect(moved("bold word", "", whole) == nil)
        let name = Element(type: "USER_MENTION", from: 0, length: 4, entityID: UserID(7))
        #expect(moved("@Bob", "@Bobby", name) == 0..<4)
        #expect(moved("@Bob", "@Rob", name) == nil)
        let word = Element(type: "STRONG", from: 2, length: 1)
        #expect(moved("👍a", "👎a", word) == 2..<3)
    }
}
