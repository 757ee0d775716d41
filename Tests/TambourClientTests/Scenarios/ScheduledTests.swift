import Foundation
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

extension Client {
    /// Returns the texts of the scheduled messages of a chat, the next one first.
    fileprivate func planned(_ chat: ChatID) throws -> [String] {
        try scheduled(in: chat).map(\.text)
    }
}

/// Scheduled messages between a client and the server.
@Suite("Scheduled messages of a client")
struct ScheduledTests {
    private static let hourMs: Int64 = 3_600_000

    /// Returns the time a number of hours from now, in Unix milliseconds.
    private static func inHours(_ hours: Int64) -> Int64 {
        Int64(Date().timeIntervalSince1970 * 1000) + hours * hourMs
    }

    /// Returns the scheduled messages that the server has.
    private static func onServer(_ alice: WireClient, _ chat: ChatID) throws -> [Message] {
        try alice.call(ChatHistoryRequest(chatID: chat, itemType: .delayed)).messages ?? []
    }

    @Test("a message is scheduled with its formatting and its reply, on both devices")
    func scheduled() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let hello = try bob.send("hello", to: chat, cid: 1).message.id
            let client = try await world.onlineClient(of: alice)
            try await client.until("the chat") { try $0.chat(chat) != nil }
            client.look(at: chat, rowsOnScreen: 10)
            let time = Self.inHours(2)
            let draft = Client.Draft(text: "later on")
            try await client.saveDraft("later on", in: chat)
            try await client.send(
                "later on",
                to: chat,
                atMs: time,
                replyingTo: hello,
                formatted: [MessageSpan(.strong, 0..<5)],
                insteadOf: draft
            )
            #expect(try client.draft(in: chat) == .empty)
            let waiting = try #require(try client.scheduled(in: chat).first)
            #expect(waiting.timeMs == time && waiting.replyTo == hello)
            try await client.until("scheduled") {
                try $0.scheduled(in: chat).map(\.state) == [.scheduled]
            }
            #expect(try client.texts(of: chat) == ["hello"])
            let held = try #require(try Self.onServer(alice, chat).first)
            #expect(held.delayedAttributes?.timeToFire == time)
            #expect(held.elements?.stored?.map(\.type) == ["STRONG"])
            let shown = try #require(try client.scheduled(in: chat).first)
            #expect(shown.id == .message(held.id) && shown.spans == [.init(.strong, 0..<5)])
            #expect(shown.replyTo == hello)

            // Another device schedules a message with an earlier time.
            let attributes = DelayedAttributes(timeToFire: time - 1)
            let message = NewMessage(cid: 9, text: "first", delayedAttributes: attributes)
            try alice.call(MsgSendRequest(chatID: chat, message: message))
            try await client.until("both") { try $0.planned(chat) == ["first", "later on"] }

            // A new device fetches the list when it shows the chat.
            let other = try await world.onlineClient(of: alice, device: "other")
            other.look(at: chat, rowsOnScreen: 10)
            try await other.until("both") { try $0.planned(chat) == ["first", "later on"] }
        }
    }

    @Test("text and time are changed, also by another device, and the message is sent or cancelled")
    func changed() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hello", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            try await client.until("the chat") { try $0.chat(chat) != nil }
            client.look(at: chat, rowsOnScreen: 10)
            let time = Self.inHours(2)
            try await client.send("one", to: chat, atMs: time)
            try await client.send("two", to: chat, atMs: time + 1)
            try await client.until("scheduled") {
                try $0.scheduled(in: chat).allSatisfy { $0.state == .scheduled }
            }
            let ids = try client.scheduled(in: chat).map(\.id)
            try await client.changeScheduled(ids[0], in: chat, text: "uno")
            try await client.changeScheduled(ids[0], in: chat, atMs: time + 2)
            #expect(try client.planned(chat) == ["two", "uno"])
            try await client.until("done") { try $0.queueLength() == 0 }
            #expect(try client.planned(chat) == ["two", "uno"])
            let held = try Self.onServer(alice, chat)
            #expect(held.map { "\($0.text)" } == ["two", "uno"])
            #expect(held.last?.delayedAttributes?.timeToFire == time + 2)

            let edit = MsgEditRequest(chatID: chat, messageID: held[0].id, text: "due")
            try alice.call(edit)
            try await client.until("the edit") { try $0.planned(chat) == ["due", "uno"] }

            try await client.sendScheduledNow(ids[0], in: chat)
            try await client.until("sent") {
                try $0.planned(chat) == ["due"] && $0.texts(of: chat) == ["hello", "uno"]
            }
            try await client.cancelScheduled(ids[1], in: chat)
            #expect(try client.planned(chat) == [])
            try await client.until("done") { try $0.queueLength() == 0 }
            #expect(try Self.onServer(alice, chat).isEmpty)
            let error = await #expect(throws: ClientError.self) {
                try await client.changeScheduled(ids[1], in: chat, text: "x")
            }
            #expect(error == .invalid(reason: "this message is sent, or no longer scheduled"))
        }
    }

    @Test("what is scheduled, changed and cancelled offline survives a restart")
    func offline() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hello", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            try await client.until("the chat") { try $0.chat(chat) != nil }
            client.look(at: chat, rowsOnScreen: 10)
            let time = Self.inHours(2)
            try await client.send("held", to: chat, atMs: time)
            try await client.send("unwanted", to: chat, atMs: time + 1)
            try await client.until("scheduled") {
                try $0.scheduled(in: chat).allSatisfy { $0.state == .scheduled }
            }
            await client.stop()

            let offline = try world.open("tambour")
            let ids = try offline.scheduled(in: chat).map(\.id)
            try await offline.changeScheduled(ids[0], in: chat, text: "changed")
            try await offline.cancelScheduled(ids[1], in: chat)
            try await offline.send("new", to: chat, atMs: time + 2)
            try await offline.send("dropped", to: chat, atMs: time + 3)
            let new = try offline.scheduled(in: chat).map(\.id)
            #expect(try offline.planned(chat) == ["changed", "new", "dropped"])
            try await offline.changeScheduled(new[1], in: chat, text: "newer", atMs: time - 1)
            try await offline.cancelScheduled(new[2], in: chat)
            #expect(
                try offline.waiting().map(\.kind)
                    == [.rescheduling, .deletion, .scheduling("newer")]
            )
            await offline.stop()

            let again = try world.open("tambour")
            #expect(try again.planned(chat) == ["newer", "changed"])
            try await again.startAndSync()
            try await again.until("done") { try $0.queueLength() == 0 }
            #expect(try again.planned(chat) == ["newer", "changed"])
            let held = try Self.onServer(alice, chat)
            #expect(held.map { "\($0.text)" } == ["newer", "changed"])
        }
    }

    @Test("times that have passed or are too far away are refused, and so is one too many")
    func limits() async throws {
        try await withWorld(["maxDelayedPerChat": 1]) { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hello", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            for time in [0, Self.inHours(-1), Self.inHours(24 * 400)] {
                await #expect(throws: ClientError.self) {
                    try await client.send("x", to: chat, atMs: time)
                }
            }
            #expect(try client.queueLength() == 0)
            // The client does not know that this server's limit is one message per chat.
            try await client.send("one", to: chat, atMs: Self.inHours(1))
            try await client.send("two", to: chat, atMs: Self.inHours(2))
            try await client.until("the refusal") {
                if case .refused? = try $0.scheduled(in: chat).last?.state { true } else { false }
            }
            #expect(try client.chat(chat)?.failedCount == 1)
            let (first, refused) = (
                try client.scheduled(in: chat)[0].id, try client.scheduled(in: chat)[1].id
            )
            try await client.cancelScheduled(first, in: chat)
            try await client.until("room") { try $0.queueLength() == 0 }
            try await client.changeScheduled(refused, in: chat)
            try await client.until("scheduled") {
                try $0.scheduled(in: chat).map(\.state) == [.scheduled]
            }
        }
    }

    @Test("a message that cannot be sent is told, stays, and is sent at a new time")
    func failed() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hello", to: chat, cid: 1)
            let client = try await world.onlineClient(of: alice)
            try await client.until("the chat") { try $0.chat(chat) != nil }
            client.look(at: chat, rowsOnScreen: 10)
            try await client.send("later", to: chat, atMs: Self.inHours(1))
            try await client.until("scheduled") {
                try $0.scheduled(in: chat).map(\.state) == [.scheduled]
            }
            let id = try #require(try client.scheduled(in: chat).first?.id)
            let events = client.events()
            try bob.call(ContactUpdateRequest(contactID: alice.userID, action: .block))
            try await client.sendScheduledNow(id, in: chat)
            for await case .scheduledFailed(let told) in events {
                #expect(told == chat)
                break
            }
            try await client.until("failed") {
                try $0.scheduled(in: chat).map(\.state) == [.failed]
            }
            #expect(try client.chat(chat)?.failedCount == 1)
            try bob.call(ContactUpdateRequest(contactID: alice.userID, action: .unblock))
            try await client.sendScheduledNow(id, in: chat)
            try await client.until("sent") {
                try $0.planned(chat).isEmpty && $0.texts(of: chat) == ["hello", "later"]
            }
            #expect(try client.chat(chat)?.failedCount == 0)
        }
    }

    // MARK: - Against a scripted server

    private static let chat = ScriptedServer.dialog

    /// Queues a message for `time`, on the clock of the scripted server.
    private func schedule(_ server: ScriptedServer, at time: Int64) throws -> OutgoingID {
        let task = ScheduleTask(chat: Self.chat.rawValue, cid: 5, text: "later", atMs: time)
        let id = try server.wish { try $0.queue(task, $1) }
        return try #require(id)
    }

    private func reply(at time: Int64, planned: Int64? = nil, text: Text = "later") -> MsgSendReply
    {
        MsgSendReply(
            chatID: Self.chat,
            message: Message(
                id: MessageID(timeMs: 2_000_000, counter: 0),
                time: time,
                type: "USER",
                text: text,
                sender: ScriptedServer.me,
                cid: 5,
                delayedAttributes: planned.map { DelayedAttributes(timeToFire: $0) }
            )
        )
    }

    private func list(_ server: ScriptedServer) throws -> [ScheduledMessage] {
        try server.store.read { try Reader($0).scheduled(in: Self.chat) }
    }

    @Test("a message that reaches the server after its time is sent at once, and told")
    func late() throws {
        try withScriptedServer { server in
            server.loseConnection()
            _ = try schedule(server, at: 1_100_000)
            server.passTime()
            try server.answer(.msgSend, reply(at: 1_700_000))
            #expect(server.events.contains(.sentLate(Self.chat, plannedMs: 1_100_000)))
            #expect(try list(server).isEmpty)
        }
    }

    @Test("a retry whose message was sent at its time is not told")
    func onTime() throws {
        try withScriptedServer { server in
            _ = try schedule(server, at: 1_100_000)
            server.reconnect()
            try server.answer(.msgSend, reply(at: 1_100_005))
            #expect(!server.events.contains { if case .sentLate = $0 { true } else { false } })
        }
    }

    @Test("a message cancelled after its reply was lost is not sent meanwhile, then cancelled")
    func withdrawn() throws {
        try withScriptedServer { server in
            let id = try schedule(server, at: 1_100_000)
            server.loseConnection()
            _ = try server.wish { try $0.cancel(id, $1) }
            #expect(try list(server).isEmpty)
            server.passTime()
            let again = try #require(try server.asked(MsgSendRequest.self).first)
            #expect(again.message.cid == 5)
            #expect(again.message.delayedAttributes.map { $0.timeToFire > 100_000_000 } == true)
            try server.answer(.msgSend, reply(at: 1_100_000, planned: 1_100_000))
            let deletion = try #require(try server.asked(MsgDeleteRequest.self).first)
            #expect(deletion.itemType == .delayed)
            #expect(try list(server).isEmpty)
        }
    }

    @Test("a text changed after the reply was lost replaces the one that the server has")
    func rewritten() throws {
        try withScriptedServer { server in
            let id = try schedule(server, at: 1_100_000)
            server.loseConnection()
            _ = try server.wish { core, tx in
                let held = try core.tasks.task(TaskID(id.rawValue), tx)
                let record = try #require(held)
                var task = try #require(TaskKinds.read(record) as? ScheduleTask)
                (task.text, task.hadOther) = ("newer", true)
                try core.rewrite(record, as: task, tx)
            }
            server.passTime()
            try server.answer(.msgSend, reply(at: 1_100_000, planned: 1_100_000))
            let edit = try #require(try server.asked(MsgEditRequest.self).first)
            #expect(edit.text == "newer" && edit.delayedAttributes == nil)
        }
    }

    @Test("a list that is older than a push before it is asked for again")
    func yielding() throws {
        try withScriptedServer { server in
            var chat = ScriptedServer.described(last: nil)
            chat.lastDelayedUpdateTime = 50
            server.login.chats = [chat]
            server.reconnect()
            _ = try server.wish { core, tx in
                try core.look(
                    at: Self.chat,
                    position: nil,
                    isGoingBack: true,
                    rowsOnScreen: 5,
                    visible: [],
                    tx
                )
            }
            func lists() throws -> Int {
                try server.asked(ChatHistoryRequest.self).count { $0.itemType == .delayed }
            }
            #expect(try lists() == 1)
            let message = reply(at: 9_000_000, planned: 9_000_000).message
            let push = NotifMsgDelayed(
                chatID: Self.chat,
                lastDelayedUpdateTime: 60,
                message: message
            )
            server.push(.notifMsgDelayed, push)
            try answerList(server, [])
            #expect(try list(server).map(\.text) == ["later"])
            #expect(try lists() == 1)
            try answerList(server, [message])
            #expect(try list(server).map(\.text) == ["later"])
            #expect(try lists() == 0)
        }
    }

    /// Answers requests for history with empty pages until the request for scheduled messages,
    /// which it answers with `messages`.
    private func answerList(_ server: ScriptedServer, _ messages: [Message]) throws {
        while let first = try server.asked(ChatHistoryRequest.self).first {
            let isList = first.itemType == .delayed
            try server.answer(.chatHistory, ChatHistoryReply(messages: isList ? messages : []))
            if isList { return }
        }
    }
}
