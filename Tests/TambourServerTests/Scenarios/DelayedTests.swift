import Dispatch
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

extension TestServer {
    /// Sends the messages that are due by the server's clock, and waits until they are sent.
    fileprivate func sendDue() {
        let done = DispatchSemaphore(value: 0)
        server.messenger.delayed.run { done.signal() }
        done.wait()
    }

    fileprivate func chat(_ id: ChatID, of client: WireClient) throws -> Chat {
        try #require(try client.call(ChatInfoRequest(chatIDs: [id])).chats.first)
    }
}

extension WireClient {
    @discardableResult
    func schedule(
        _ text: Text,
        at time: Int64,
        in chat: ChatID? = nil,
        to user: UserID? = nil,
        cid: Int64
    ) throws -> MsgSendReply {
        let message = NewMessage(
            cid: cid,
            text: text,
            delayedAttributes: DelayedAttributes(timeToFire: time)
        )
        return try call(MsgSendRequest(chatID: chat, userID: user, message: message))
    }

    fileprivate func refusal(at time: Int64, in chat: ChatID, cid: Int64) throws
        -> RequestError.Code
    {
        let attributes = DelayedAttributes(timeToFire: time)
        let message = NewMessage(cid: cid, text: "x", delayedAttributes: attributes)
        return try code(of: MsgSendRequest(chatID: chat, message: message))
    }

    fileprivate func scheduled(in chat: ChatID) throws -> [Message] {
        let request = ChatHistoryRequest(chatID: chat, itemType: .delayed)
        return try call(request).messages ?? []
    }

    fileprivate func history(of chat: ChatID) throws -> [Text] {
        let request = ChatHistoryRequest(chatID: chat, backward: 100)
        return try (call(request).messages ?? []).map(\.text)
    }
}

/// Runs `body` with Alice on a phone and a tablet, with Bob, and with their dialog. No pushes are
/// pending.
private func withDevices(
    limits overrides: [String: Int] = [:],
    _ body: (TestServer, ManualClock, WireClient, WireClient, WireClient, ChatID) throws -> Void
) throws {
    let clock = ManualClock()
    try withPair(limits: overrides, environment: clock.environment) { server, alice, bob, dialog in
        let tablet = try server.signIn(phoneOf: alice, device: "tablet")
        try bob.send("hello", to: dialog, cid: 1)
        for client in [alice, bob, tablet] { _ = try client.takePushes() }
        try body(server, clock, alice, tablet, bob, dialog)
    }
}

@Suite("Scheduled messages (64, 66, 67, 49, 154)")
struct DelayedTests {
    @Test("wait unseen by others, then are messages as any other")
    func fired() throws {
        try withDevices { server, clock, phone, tablet, bob, dialog in
            let time = clock.now + 60_000
            let reply = try phone.schedule("dentist", at: time, in: dialog, cid: 7)
            #expect(reply.chatID == dialog)
            #expect(reply.message.delayedAttributes?.timeToFire == time)
            #expect(reply.message.time == time)
            let told = try #require(tablet.only(.notifMsgDelayed, as: NotifMsgDelayed.self).first)
            #expect(told.message == reply.message)
            #expect(try tablet.scheduled(in: dialog) == [reply.message])
            #expect(try bob.scheduled(in: dialog) == [])
            #expect(try bob.history(of: dialog) == ["hello"])
            let chat = try server.chat(dialog, of: phone)
            #expect(chat.lastDelayedUpdateTime == told.lastDelayedUpdateTime)
            #expect(chat.lastMessage?.text == "hello")
            let again = try phone.schedule("dentist", at: time, in: dialog, cid: 7)
            #expect(again.message == reply.message)
            server.sendDue()
            for client in [phone, tablet, bob] { try client.expectSilence() }

            clock.advance(ms: 60_000)
            server.sendDue()
            for client in [phone, tablet, bob] {
                let push = try client.next(.notifMessage, as: NotifMessage.self)
                #expect(push.message.text == "dentist")
                #expect(push.message.sender == phone.userID)
                #expect(push.message.delayedAttributes == nil)
                #expect(push.message.id != reply.message.id)
                #expect(push.message.time >= time)
            }
            for client in [phone, tablet] {
                let gone = try client.only(.notifMsgDelayed, as: NotifMsgDelayed.self)
                #expect(gone.map(\.messageIDs) == [[reply.message.id]])
            }
            try bob.expectSilence()
            #expect(try phone.scheduled(in: dialog) == [])
            #expect(try bob.history(of: dialog) == ["hello", "dentist"])
            let late = try phone.schedule("dentist", at: time, in: dialog, cid: 7)
            #expect(late.message.delayedAttributes == nil)
            #expect(try bob.history(of: dialog) == ["hello", "dentist"])
        }
    }

    @Test("go out by themselves, and at a start what came due while the server was away")
    func timer() throws {
        let chat = ChatID(0)
        /// Schedules two messages. The server sends one of them before the test stops the server.
        func firstLife() throws -> (directory: String, alice: WireClient) {
            let server = try TestServer()
            let alice = try server.signUp("Alice")
            try alice.schedule("soon", at: Environment.live.wallMs() + 300, in: chat, cid: 1)
            #expect(try alice.next(.notifMessage, as: NotifMessage.self).message.text == "soon")
            let later = Environment.live.wallMs() + 60_000
            try alice.schedule("later", at: later, in: chat, cid: 2)
            server.stop()
            return (server.dataDirectory, alice)
        }
        let (directory, alice) = try firstLife()
        let tomorrow = Environment(
            wallMs: { Environment.live.wallMs() + 86_400_000 },
            randomBytes: Environment.live.randomBytes
        )
        let server = try TestServer(environment: tomorrow, dataDirectory: directory)
        defer { server.stop() }
        let client = try server.reconnect(alice).client
        // The server does its start-up work before it stores this message.
        try client.send("fence", to: chat, cid: 3)
        #expect(try client.history(of: chat) == ["soon", "later", "fence"])
    }

    @Test("whose time has passed are sent at once")
    func past() throws {
        try withDevices { _, clock, phone, tablet, bob, dialog in
            let reply = try phone.schedule("late", at: clock.now - 5_000, in: dialog, cid: 7)
            #expect(reply.message.delayedAttributes == nil)
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect(push.message.id == reply.message.id && push.message.text == "late")
            #expect(try tablet.scheduled(in: dialog) == [])
        }
    }

    @Test("are bounded in time and number")
    func limits() throws {
        let limits = ["maxDelayMs": 10_000, "maxDelayedPerChat": 2, "maxDelayed": 3]
        try withDevices(limits: limits) { _, clock, phone, _, bob, dialog in
            let own = ChatID(0)
            #expect(
                try phone.refusal(at: clock.now + 3_600_000, in: dialog, cid: 1) == .protoPayload
            )
            for cid in 2...3 {
                try phone.schedule("x", at: clock.now + 5_000, in: dialog, cid: Int64(cid))
            }
            #expect(try phone.refusal(at: clock.now + 5_000, in: dialog, cid: 4) == .protoPayload)
            try phone.schedule("x", at: clock.now + 5_000, in: own, cid: 5)
            #expect(try phone.refusal(at: clock.now + 5_000, in: own, cid: 6) == .protoPayload)
            try bob.schedule("x", at: clock.now + 5_000, in: dialog, cid: 7)
            #expect(try phone.scheduled(in: dialog).map(\.cid) == [2, 3])
        }
    }

    @Test("may come before their dialog")
    func newDialog() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, dialog in
            let reply = try alice.schedule(
                "hi",
                at: clock.now + 1_000,
                to: bob.userID,
                cid: 1
            )
            #expect(reply.chatID == dialog)
            #expect(reply.chat == nil)
            #expect(try alice.scheduled(in: dialog) == [reply.message])
            #expect(try alice.call(ChatInfoRequest(chatIDs: [dialog])).chats == [])
            try bob.expectSilence()
            clock.advance(ms: 2_000)
            server.sendDue()
            #expect(try bob.next(.notifChat, as: NotifChat.self).chat.id == dialog)
            #expect(try bob.history(of: dialog) == ["hi"])
        }
    }

    @Test("that cannot be sent stay, say so, and can be tried again")
    func failed() throws {
        try withDevices { server, clock, phone, tablet, bob, dialog in
            let id = try phone.schedule("hi", at: clock.now + 1_000, in: dialog, cid: 7).message.id
            let block = ContactUpdateRequest(contactID: phone.userID, action: .block)
            try bob.call(block)
            clock.advance(ms: 2_000)
            for client in [phone, tablet, bob] { _ = try client.takePushes() }
            server.sendDue()
            for client in [phone, tablet] {
                let push = try #require(
                    client.only(.notifMsgDelayed, as: NotifMsgDelayed.self).first
                )
                #expect(push.lastFireDelayedErrorTime == push.lastDelayedUpdateTime)
                #expect(push.message?.id == id)
            }
            try bob.expectSilence()
            #expect(try server.chat(dialog, of: phone).lastFireDelayedErrorTime > 0)
            #expect(try phone.scheduled(in: dialog).map(\.id) == [id])
            server.sendDue()
            try phone.expectSilence()

            try bob.call(ContactUpdateRequest(contactID: phone.userID, action: .unblock))
            let attributes = DelayedAttributes(timeToFire: clock.now)
            let edit = MsgEditRequest(
                chatID: dialog,
                messageID: id,
                delayedAttributes: attributes
            )
            try phone.call(edit)
            server.sendDue()
            #expect(try bob.next(.notifMessage, as: NotifMessage.self).message.text == "hi")
        }
    }

    @Test("are known to a device that was away by the chat's clock")
    func delta() throws {
        try withDevices { _, clock, phone, tablet, bob, dialog in
            clock.advance(ms: 10)
            let mark = try tablet.call(LoginRequest(token: tablet.token)).time
            let bobs = try bob.call(LoginRequest(token: bob.token)).time
            clock.advance(ms: 10)
            try phone.schedule("hi", at: clock.now + 1_000, in: dialog, cid: 7)
            let changed = try tablet.call(
                LoginRequest(token: tablet.token, chatsSync: mark, contactsSync: mark)
            )
            #expect(changed.chats.map(\.id) == [dialog])
            #expect(changed.chats.first?.lastDelayedUpdateTime ?? 0 > mark)
            let unchanged = try bob.call(
                LoginRequest(token: bob.token, chatsSync: bobs, contactsSync: bobs)
            )
            #expect(unchanged.chats == [])
        }
    }

    @Test("of who leaves a group are never sent")
    func left() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, _ in
            let group = try alice.createGroup("drums", with: [bob], cid: 1)
            let planned = try bob.schedule("bye", at: clock.now + 1_000, in: group, cid: 2).message
            try bob.call(ChatLeaveRequest(chatID: group))
            let left = try server.admin(.export(user: "\(bob.userID)"))
            #expect(!left.contains { $0.contains("scheduledMessage") })
            let add = ChatMembersUpdateRequest(
                chatID: group,
                userIDs: [bob.userID],
                operation: .add
            )
            try alice.call(add)
            clock.advance(ms: 500)
            let again = try bob.schedule("bye", at: clock.now + 500, in: group, cid: 2)
            #expect(again.message.id == planned.id)
            #expect(again.message.status == .removed)
            clock.advance(ms: 2_000)
            server.sendDue()
            #expect(try bob.scheduled(in: group) == [])
            #expect(try !alice.history(of: group).contains("bye"))
        }
    }

    @Test(
        "that were deleted stay so when their request is sent again",
        arguments: ["by the same device", "by another", "edited before", "after their time"]
    )
    func deletedAndRetried(how: String) throws {
        try withDevices { server, clock, phone, tablet, bob, dialog in
            let time = clock.now + 1_000
            let first = try phone.schedule("secret", at: time, in: dialog, cid: 7).message
            if how == "edited before" {
                try tablet.call(
                    MsgEditRequest(chatID: dialog, messageID: first.id, text: "changed")
                )
            }
            let delete = MsgDeleteRequest(
                chatID: dialog,
                messageIDs: [first.id],
                itemType: .delayed
            )
            let device = how == "by the same device" ? phone : tablet
            #expect(try device.call(delete).messageIDs == [first.id])
            if how == "after their time" { clock.advance(ms: 2_000) }
            _ = try (phone.takePushes(), tablet.takePushes())

            let again = try phone.schedule("secret", at: time, in: dialog, cid: 7)

            #expect(again.chatID == dialog)
            #expect(again.message.id == first.id)
            #expect(again.message.cid == 7)
            #expect(again.message.status == .removed)
            #expect(again.message.text.isEmpty)
            #expect(again.message.delayedAttributes == nil)
            #expect(try phone.scheduled(in: dialog) == [])
            #expect(try tablet.call(delete).failedMessageIDs == [first.id])
            clock.advance(ms: 3_000)
            server.sendDue()
            for client in [phone, tablet, bob] { try client.expectSilence() }
            #expect(try bob.history(of: dialog) == ["hello"])
            // The idempotency key depends on the device, and on whether the message is scheduled.
            let other = try tablet.schedule("mine", at: clock.now + 9_000, in: dialog, cid: 7)
            #expect(other.message.status == nil)
            #expect(try phone.send("now", to: dialog, cid: 7).message.text == "now")
            #expect(try bob.history(of: dialog) == ["hello", "now"])
        }
    }

    @Test("leave their keys when they are deleted, the last as many as may wait")
    func keptKeys() throws {
        try withDevices(limits: ["maxDelayed": 2]) { _, clock, phone, _, _, dialog in
            let time = clock.now + 60_000
            let ids = try (1...3).map { (cid: Int64) in
                let id = try phone.schedule("x", at: time, in: dialog, cid: cid).message.id
                let delete = MsgDeleteRequest(
                    chatID: dialog,
                    messageIDs: [id],
                    itemType: .delayed
                )
                try phone.call(delete)
                clock.advance(ms: 10)
                return id
            }
            try phone.schedule("x", at: time, in: dialog, cid: 4)
            for cid in 2...3 {
                let again = try phone.schedule("x", at: time, in: dialog, cid: Int64(cid)).message
                #expect(again.id == ids[cid - 1])
                #expect(again.status == .removed)
            }
            let forgotten = try phone.schedule("x", at: time, in: dialog, cid: 1).message
            #expect(forgotten.status == nil)
            #expect(try phone.scheduled(in: dialog).map(\.cid) == [4, 1])
        }
    }

    @Test("can be changed and deleted, by their sender alone")
    func changed() throws {
        try withDevices { server, clock, phone, tablet, bob, dialog in
            let ids = try (1...2).map { number in
                try phone.schedule(
                    Text("text \(number)"),
                    at: clock.now + 1_000 * Int64(number),
                    in: dialog,
                    cid: Int64(number)
                ).message.id
            }
            _ = try tablet.takePushes()
            let edit = MsgEditRequest(chatID: dialog, messageID: ids[0], text: "changed")
            #expect(try bob.code(of: edit) == .notFound)
            let edited = try phone.call(edit).message
            #expect(edited.text == "changed")
            #expect(edited.delayedAttributes?.timeToFire == clock.now + 1_000)
            let pushes = try tablet.only(.notifMsgDelayed, as: NotifMsgDelayed.self)
            #expect(pushes.map(\.message) == [edited])
            let later = MsgEditRequest(
                chatID: dialog,
                messageID: ids[0],
                delayedAttributes: DelayedAttributes(timeToFire: clock.now + 5_000)
            )
            try phone.call(later)
            #expect(try phone.scheduled(in: dialog).map(\.id) == [ids[1], ids[0]])

            let delete = MsgDeleteRequest(
                chatID: dialog,
                messageIDs: [ids[1], MessageID(5)],
                itemType: .delayed
            )
            #expect(try bob.call(delete).messageIDs == [])
            let deleted = try phone.call(delete)
            #expect(deleted.messageIDs == [ids[1]])
            #expect(deleted.failedMessageIDs == [MessageID(5)])
            _ = try bob.takePushes()
            clock.advance(ms: 3_000)
            server.sendDue()
            try bob.expectSilence()
            clock.advance(ms: 3_000)
            server.sendDue()
            #expect(try bob.history(of: dialog) == ["hello", "changed"])

            let sent = try phone.send("now", to: dialog, cid: 9).message.id
            let request = MsgEditRequest(
                chatID: dialog,
                messageID: sent,
                text: "then",
                delayedAttributes: DelayedAttributes(timeToFire: clock.now + 5_000)
            )
            #expect(try phone.code(of: request) == .notFound)
        }
    }
}
