import TambourProtocol
import TambourTesting
import Testing

extension WireClient {
    @discardableResult
    fileprivate func save(
        _ text: Text,
        in chat: ChatID? = nil,
        to user: UserID? = nil
    ) throws -> Int64 {
        try call(DraftSaveRequest(chatID: chat, userID: user, draft: NewDraft(text: text))).time
    }

    fileprivate func discard(
        _ chat: ChatID? = nil,
        to user: UserID? = nil,
        time: Int64? = nil
    ) throws {
        try call(DraftDiscardRequest(chatID: chat, userID: user, time: time))
    }
}

extension TestServer {
    fileprivate func drafts(of client: WireClient, since mark: Int64? = nil) throws -> Drafts? {
        try client.call(LoginRequest(token: client.token, draftsSync: mark)).drafts
    }
}

/// Runs `body` with Alice on a phone and a tablet, with Bob, and with their dialog. No pushes are
/// pending.
private func withDevices(
    limits overrides: [String: Int] = [:],
    _ body: (TestServer, WireClient, WireClient, WireClient, ChatID) throws -> Void
) throws {
    try withPair(limits: overrides) { server, alice, bob, dialog in
        let tablet = try server.signIn(phoneOf: alice, device: "tablet")
        try bob.send("hello", to: dialog, cid: 1)
        for client in [alice, bob, tablet] { _ = try client.takePushes() }
        try body(server, alice, tablet, bob, dialog)
    }
}

@Suite("DRAFT_SAVE (176)")
struct DraftSaveTests {
    @Test("reaches one's other devices, and nobody else")
    func told() throws {
        try withDevices { server, phone, tablet, bob, dialog in
            let draft = NewDraft(
                text: "see you at",
                elements: [Element(type: "STRONG", from: 0, length: 99)],
                replyTo: MessageID(5)
            )
            let reply = try phone.call(DraftSaveRequest(chatID: dialog, draft: draft))
            let pushes = try tablet.only(.notifDraft, as: NotifDraft.self)
            let push = try #require(pushes.first)
            #expect(pushes.count == 1)
            #expect(push.chatID == dialog)
            #expect(push.userID == nil)
            #expect(push.draft.text == "see you at")
            #expect(push.draft.replyTo == MessageID(5))
            #expect(try push.draft.elements?.value(limits: .standard).first?.length == 10)
            #expect(push.draft.time == reply.time)
            #expect(push.draft.saveTime == reply.time)
            try phone.expectSilence()
            try bob.expectSilence()
            let drafts = try server.drafts(of: tablet)
            #expect(drafts?.chats?.saved.pairs.map(\.0) == [dialog])
            #expect(drafts?.chats?.saved[dialog] == push.draft)
            #expect(try server.drafts(of: bob) == nil)
        }
    }

    @Test("the last one counts; the same one is no change")
    func replaced() throws {
        try withDevices { server, phone, tablet, _, dialog in
            try phone.save("one", in: dialog)
            let time = try phone.save("two", in: dialog)
            _ = try tablet.takePushes()
            #expect(try phone.save("two", in: dialog) == time)
            let flat = DraftSaveRequest(chatID: dialog, text: "two")
            #expect(try phone.call(flat).time == time)
            try tablet.expectSilence()
            let saved = try server.drafts(of: phone)?.chats?.saved
            #expect(saved?.count == 1)
            #expect(saved?[dialog]?.text == "two")
            #expect(saved?[dialog]?.time == time)
        }
    }

    @Test("nothing written is thrown away", arguments: [NewDraft(text: ""), NewDraft(), nil])
    func empty(draft: NewDraft?) throws {
        try withDevices { server, phone, tablet, _, dialog in
            try phone.call(DraftSaveRequest(chatID: dialog, draft: draft))
            try tablet.expectSilence()
            try phone.save("one", in: dialog)
            _ = try tablet.takePushes()
            try phone.call(DraftSaveRequest(chatID: dialog, draft: draft))
            #expect(
                try tablet.only(.notifDraftDiscard, as: NotifDraftDiscard.self).map(\.chatID)
                    == [dialog]
            )
            #expect(try server.drafts(of: phone) == nil)
        }
    }

    @Test("chats of others and nobody's are refused alike")
    func refused() throws {
        try withDevices { server, phone, _, bob, dialog in
            let group = try bob.createGroup("Bob's", with: [], cid: 2)
            let draft = NewDraft(text: "x")
            for chat in [group, ChatID(-1), ChatID(1 << 40)] {
                #expect(
                    try phone.code(of: DraftSaveRequest(chatID: chat, draft: draft))
                        == .chatNotFound
                )
                #expect(try phone.code(of: DraftDiscardRequest(chatID: chat)) == .chatNotFound)
            }
            let nobody = UserID(999)
            #expect(
                try phone.code(of: DraftSaveRequest(userID: nobody, draft: draft)) == .userNotFound
            )
            #expect(try phone.code(of: DraftDiscardRequest(userID: nobody)) == .userNotFound)
            #expect(try phone.code(of: DraftSaveRequest(draft: draft)) == .protoPayload)
            #expect(try phone.code(of: DraftDiscardRequest()) == .protoPayload)
        }
    }

    @Test("a dialog that has not begun is named by its user, and by its chat once it has")
    func begins() throws {
        try withDevices { server, phone, tablet, _, _ in
            let carol = try server.signUp("Carol")
            let chat = phone.dialog(with: carol)
            try phone.save("dear Carol", to: carol.userID)
            let push = try tablet.only(.notifDraft, as: NotifDraft.self).first
            #expect(push?.userID == carol.userID)
            #expect(push?.chatID == nil)
            // Save the same draft under the id that the dialog will have.
            try phone.save("dear Carol,", in: chat)
            let before = try server.drafts(of: phone)
            #expect(before?.users?.saved.pairs.map(\.0) == [carol.userID])
            #expect(before?.chats?.saved.isEmpty == true)
            let mark = try server.reconnect(phone).login.time

            try carol.send("hi", to: chat, cid: 1)
            let delta = try server.drafts(of: phone, since: mark)
            #expect(delta?.chats?.saved[chat]?.text == "dear Carol,")
            #expect(delta?.users?.discarded.pairs.map(\.0) == [carol.userID])
            let after = try server.drafts(of: phone)
            #expect(after?.chats?.saved.pairs.map(\.0) == [chat])
            #expect(after?.users?.saved.isEmpty == true)
            #expect(after?.users?.discarded.isEmpty == true)
            _ = try tablet.takePushes()
            try phone.save("dear C.", to: carol.userID)
            #expect(try tablet.only(.notifDraft, as: NotifDraft.self).map(\.chatID) == [chat])
        }
    }

    @Test("saved messages have one too")
    func saved() throws {
        try withDevices { server, phone, tablet, bob, _ in
            try phone.save("milk", in: ChatID(0))
            #expect(try tablet.only(.notifDraft, as: NotifDraft.self).map(\.chatID) == [ChatID(0)])
            #expect(try server.drafts(of: phone)?.chats?.saved[ChatID(0)]?.text == "milk")
            #expect(try server.drafts(of: bob) == nil)
        }
    }

    @Test("no more than the limit; those that are there can change")
    func tooMany() throws {
        try withDevices(limits: ["maxDrafts": 1]) { server, phone, _, _, dialog in
            try phone.save("one", in: dialog)
            let second = DraftSaveRequest(chatID: ChatID(0), draft: NewDraft(text: "two"))
            #expect(try phone.code(of: second) == .protoPayload)
            try phone.save("one!", in: dialog)
            try phone.discard(dialog)
            try phone.call(second)
        }
    }

    @Test("goes with the group one leaves, and does not come back")
    func left() throws {
        try withDevices { server, phone, _, bob, _ in
            let group = try bob.createGroup("Bob's", with: [phone], cid: 2)
            try phone.save("well", in: group)
            let mark = try server.reconnect(phone).login.time
            try phone.call(ChatLeaveRequest(chatID: group))
            #expect(try server.drafts(of: phone) == nil)
            let delta = try server.drafts(of: phone, since: mark)
            #expect(delta?.chats?.discarded.pairs.map(\.0) == [group])
            try bob.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [phone.userID],
                    operation: .add
                )
            )
            #expect(try server.drafts(of: phone) == nil)
        }
    }

    @Test("drafts that do not fit one reply come with the next logins, oldest first")
    func inParts() throws {
        try withDevices(limits: ["maxReplyBytes": 8_000]) { server, phone, _, bob, _ in
            var wanted: [ChatID: Text] = [:]
            for number in 0..<8 {
                let group = try bob.createGroup("\(number)", with: [phone], cid: Int64(10 + number))
                let text = Text(String(repeating: "x", count: 900) + "\(number)")
                try phone.save(text, in: group)
                wanted[group] = text
            }
            var found: [ChatID: Text] = [:]
            var mark: Int64?
            for _ in 0..<20 where found.count < wanted.count {
                let reply = try phone.call(LoginRequest(token: phone.token, draftsSync: mark))
                mark = reply.time
                for (id, draft) in reply.drafts?.chats?.saved.pairs ?? [] {
                    found[id] = draft.text
                }
            }
            #expect(found == wanted)
        }
    }
}

@Suite("DRAFT_DISCARD (177)")
struct DraftDiscardTests {
    @Test("throws it away once, and a delta says so")
    func discarded() throws {
        try withDevices { server, phone, tablet, bob, dialog in
            let time = try phone.save("one", in: dialog)
            let mark = try server.reconnect(phone).login.time
            _ = try tablet.takePushes()
            try phone.discard(dialog, time: time)
            let pushes = try tablet.only(.notifDraftDiscard, as: NotifDraftDiscard.self)
            #expect(pushes.map(\.chatID) == [dialog])
            try phone.expectSilence()
            try bob.expectSilence()
            #expect(try server.drafts(of: phone) == nil)
            let delta = try server.drafts(of: phone, since: mark)
            #expect(delta?.chats?.discarded[dialog] == pushes.first?.time)
            #expect(delta?.chats?.saved.isEmpty == true)
            try phone.discard(dialog, time: time)
            try tablet.expectSilence()
            try phone.discard(ChatID(0))
            try tablet.expectSilence()
        }
    }

    @Test("a newer draft stays")
    func newer() throws {
        try withDevices { server, phone, tablet, _, dialog in
            let time = try phone.save("one", in: dialog)
            _ = try tablet.takePushes()
            try phone.discard(dialog, time: time - 1)
            try tablet.expectSilence()
            #expect(try server.drafts(of: phone)?.chats?.saved[dialog]?.text == "one")
            try phone.discard(dialog, time: 0)
            #expect(try tablet.only(.notifDraftDiscard, as: NotifDraftDiscard.self).count == 1)
            #expect(try server.drafts(of: phone) == nil)
        }
    }
}
