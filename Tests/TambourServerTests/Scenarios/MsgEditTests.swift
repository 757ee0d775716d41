import TambourProtocol
import TambourTesting
import Testing

@Suite("MSG_EDIT (67)")
struct MsgEditTests {
    private func place(_ latitude: Double) -> NewAttach {
        NewAttach(type: .location, latitude: latitude, longitude: 0)
    }

    @Test("the others hear of it by a message with status EDITED, the editing session does not")
    func edit() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let sent = try alice.send("helo", to: dialog, cid: 1).message
            _ = try (bob.takePushes(), tablet.takePushes())

            let reply = try alice.call(
                MsgEditRequest(chatID: dialog, messageID: sent.id, text: "hello")
            )

            #expect(reply.chatID == dialog)
            #expect(reply.message.id == sent.id)
            #expect(reply.message.time == sent.time)
            #expect(reply.message.text == "hello")
            #expect(reply.message.status == .edited)
            #expect(try #require(reply.message.updateTime) >= sent.time)
            for other in [bob, tablet] {
                let pushes = try other.only(.notifMessage, as: NotifMessage.self)
                #expect(pushes.map(\.message.status) == [.edited])
                #expect(pushes.map(\.message.text) == ["hello"])
            }
            try alice.expectSilence()
            #expect(try bob.texts(dialog) == ["hello"])
            #expect(try bob.chat(dialog)?.newMessages == 1)
        }
    }

    @Test("an absent text keeps the old one, an empty one clears it")
    func text() throws {
        try withPair { _, alice, _, dialog in
            let sent = try alice.call(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(cid: 1, text: "here", attaches: [place(1)])
                )
            ).message
            let kept = try alice.call(
                MsgEditRequest(chatID: dialog, messageID: sent.id, attaches: [place(2)])
            ).message
            #expect(kept.text == "here")
            #expect(try kept.attaches.value(limits: .standard).first?.latitude == 2)
            let cleared = try alice.call(
                MsgEditRequest(chatID: dialog, messageID: sent.id, text: "")
            ).message
            #expect(cleared.text == "")
            #expect(try cleared.attaches.value(limits: .standard).count == 1)
        }
    }

    @Test("an empty list of attachments keeps them, by either name; a full one replaces them")
    func attaches() throws {
        try withPair { _, alice, _, dialog in
            let sent = try alice.call(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(cid: 1, text: "here", attaches: [place(1), place(2)])
                )
            ).message
            func latitudes(_ request: MsgEditRequest) throws -> [Double?] {
                try alice.call(request).message.attaches.value(limits: .standard)
                    .map(\.latitude)
            }
            func request(_ attachments: [NewAttach]?, _ attaches: [NewAttach]?) -> MsgEditRequest {
                MsgEditRequest(
                    chatID: dialog,
                    messageID: sent.id,
                    text: "there",
                    attachments: attachments,
                    attaches: attaches
                )
            }
            #expect(try latitudes(request([], nil)) == [1, 2])
            #expect(try latitudes(request(nil, [])) == [1, 2])
            #expect(try latitudes(request([place(3)], [])) == [3])
            #expect(try latitudes(request([], [place(4)])) == [4])
        }
    }

    @Test("only the sender edits, and never what made a group")
    func rights() throws {
        try withPair { server, alice, bob, dialog in
            let sent = try alice.send("mine", to: dialog, cid: 1).message.id
            let request = MsgEditRequest(chatID: dialog, messageID: sent, text: "yours")
            #expect(try bob.code(of: request) == .notAllowed)
            let carol = try server.signUp("Carol")
            #expect(try carol.code(of: request) == .chatNotFound)

            let group = try alice.createGroup("Two", with: [bob], cid: 2)
            let event = try #require(try alice.history(group).messages?.first?.id)
            #expect(
                try alice.code(of: MsgEditRequest(chatID: group, messageID: event, text: "x"))
                    == .notAllowed
            )
            #expect(
                try alice.code(of: MsgEditRequest(chatID: group, messageID: sent, text: "x"))
                    == .notFound
            )
        }
    }

    @Test("what is removed, hidden or would be left empty is refused")
    func refusals() throws {
        try withPair { _, alice, bob, dialog in
            let removed = try alice.send("1", to: dialog, cid: 1).message.id
            let hidden = try alice.send("2", to: dialog, cid: 2).message.id
            let kept = try alice.send("3", to: dialog, cid: 3).message.id
            try alice.delete([removed], in: dialog)
            try alice.delete([hidden], in: dialog, forMe: true)
            _ = try bob.takePushes()
            func code(_ id: MessageID, _ text: Text?, _ attach: NewAttach? = nil) throws
                -> RequestError.Code
            {
                try alice.code(
                    of: MsgEditRequest(
                        chatID: dialog,
                        messageID: id,
                        text: text,
                        attaches: attach.map { [$0] }
                    )
                )
            }
            #expect(try code(removed, "x") == .notFound)
            #expect(try code(hidden, "x") == .notFound)
            #expect(try code(kept, "") == .errorMessageInvalid)
            #expect(try code(kept, "x", NewAttach(type: .photo)) == .errorMessageInvalid)
            let stranger = NewAttach(type: .contact, contactID: UserID(999))
            #expect(try code(kept, "x", stranger) == .userNotFound)
            try bob.expectSilence()
            #expect(try alice.texts(dialog) == ["3"])
        }
    }

    @Test("an edited message in a reply is seen as it is now")
    func inReply() throws {
        try withPair { _, alice, bob, dialog in
            let first = try alice.send("old", to: dialog, cid: 1).message.id
            try bob.call(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(
                        cid: 1,
                        text: "answer",
                        link: NewLink(type: .reply, messageID: first)
                    )
                )
            )
            try alice.call(MsgEditRequest(chatID: dialog, messageID: first, text: "new"))
            let answer = try #require(try bob.history(dialog).messages?.last)
            #expect(try answer.link?.value(limits: .standard).message.text == "new")
        }
    }
}
