import TambourProtocol
import TambourTesting
import Testing

@Suite("MSG_SEND (64)")
struct MsgSendTests {
    @Test("the first message makes the dialog and tells the other side of both, in that order")
    func firstMessage() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let reply = try alice.send("hello", to: dialog, cid: 1)

            #expect(reply.chatID == dialog)
            #expect(reply.message.text == "hello")
            #expect(reply.message.sender == alice.userID)
            #expect(reply.message.cid == 1)
            #expect(reply.message.time == reply.message.id.timeMs)
            #expect(reply.prevMessageID == nil)
            #expect(reply.unread == 0)
            #expect(reply.mark == reply.message.time)
            #expect(reply.chat?.id == dialog)
            for other in [bob, tablet] {
                let news = try other.news()
                #expect(news.map(\.opcode) == [.notifChat, .notifMessage])
                let chat = try #require(news.first).decode(as: NotifChat.self).chat
                #expect(chat.id == dialog)
                #expect(chat.type == .dialog)
                #expect(chat.owner == alice.userID)
                #expect(chat.participants[alice.userID] == reply.message.time)
                #expect(chat.participants[bob.userID] == 0)
                let push = try #require(news.last).decode(as: NotifMessage.self)
                #expect(push.message.id == reply.message.id)
                #expect(push.chatID == dialog)
            }
            try alice.expectSilence()
        }
    }

    @Test("a retry of the message that made the dialog gets the dialog again, a later one does not")
    func firstMessageAgain() throws {
        try withPair { _, alice, bob, dialog in
            let first = try alice.send("hello", to: dialog, cid: 1)
            try bob.send("hi", to: dialog, cid: 1)
            let second = try alice.send("there", to: dialog, cid: 2)
            #expect(second.chat == nil)

            let again = try alice.send("hello", to: dialog, cid: 1)
            #expect(again.message.id == first.message.id)
            #expect(again.chat?.id == dialog)
            #expect(try alice.send("there", to: dialog, cid: 2).chat == nil)
        }
    }

    @Test("a dialog can be named by its other side")
    func byUser() throws {
        try withPair { _, alice, bob, dialog in
            let reply = try alice.call(
                MsgSendRequest(userID: bob.userID, message: NewMessage(cid: 1, text: "hello"))
            )
            #expect(reply.chatID == dialog)
            #expect(try bob.texts(dialog) == ["hello"])
        }
    }

    @Test("each message names the one before it, also when that one is removed")
    func previous() throws {
        try withPair { _, alice, bob, dialog in
            let first = try alice.send("1", to: dialog, cid: 1)
            let second = try bob.send("2", to: dialog, cid: 1)
            #expect(second.prevMessageID == first.message.id)
            try bob.delete([second.message.id], in: dialog)
            _ = try alice.takePushes()
            let third = try bob.send("3", to: dialog, cid: 2)
            #expect(third.prevMessageID == second.message.id)
            let push = try #require(try alice.only(.notifMessage, as: NotifMessage.self).first)
            // For a client without capabilities, the field is inside the message.
            #expect(push.prevMessageID == nil)
            #expect(push.message.prevMessageID == second.message.id)
        }
    }

    @Test("the key of a message is sender, device, chat and cid: each alone makes another message")
    func keyOfCID() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let first = try alice.send("first", to: dialog, cid: 7).message.id

            #expect(try alice.send("again", to: dialog, cid: 7).message.id == first)
            let others = [
                try bob.send("sender", to: dialog, cid: 7).message.id,
                try tablet.send("device", to: dialog, cid: 7).message.id,
                try alice.send("chat", to: alice.dialog(with: carol), cid: 7).message.id,
                try alice.send("cid", to: dialog, cid: -7).message.id,
            ]
            #expect(Set(others + [first]).count == 5)
            #expect(try bob.texts(dialog) == ["first", "sender", "device", "cid"])
        }
    }

    @Test("a new login of the same device keeps its keys")
    func sameDevice() throws {
        try withPair { server, alice, _, dialog in
            let first = try alice.send("first", to: dialog, cid: 7)
            let again = try server.signIn(phoneOf: alice, device: "phone")
            #expect(try again.send("again", to: dialog, cid: 7).message.id == first.message.id)
        }
    }

    @Test("the same cid twice in one batch is one message")
    func sameCIDPipelined() throws {
        try withPair { _, alice, bob, dialog in
            try alice.send("warm", to: dialog, cid: 1)
            _ = try bob.takePushes()
            let request = MsgSendRequest(
                chatID: dialog,
                message: NewMessage(cid: 2, text: "once")
            )
            let numbers = try (0..<10).map { _ in try alice.send(request) }
            let ids = try numbers.map {
                try alice.reply(to: $0, as: MsgSendReply.self).message.id
            }
            #expect(Set(ids).count == 1)
            #expect(try bob.only(.notifMessage, as: NotifMessage.self).count == 1)
        }
    }

    @Test(
        "a retry of what its sender deletes in the same batch has its id alone",
        arguments: [true, false]
    )
    func deletedPipelined(forMe: Bool) throws {
        try withPair { _, alice, _, dialog in
            let sent = try alice.send("here", to: dialog, cid: 1).message
            #expect(sent.text == "here")
            let retry = MsgSendRequest(
                chatID: dialog,
                message: NewMessage(cid: 1, text: "here")
            )
            let delete = MsgDeleteRequest(chatID: dialog, messageIDs: [sent.id], forMe: forMe)
            try alice.send(delete)
            let number = try alice.send(retry)
            let again = try alice.reply(to: number, as: MsgSendReply.self).message
            #expect(again.id == sent.id)
            #expect(again.status == .removed)
            #expect(again.text == "")
        }
    }

    @Test("saved messages are chat 0, seen by nobody else")
    func saved() throws {
        try withPair { server, alice, bob, _ in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            let reply = try alice.send("note", to: ChatID(0), cid: 1)
            #expect(reply.chatID == ChatID(0))
            #expect(reply.unread == 0)
            #expect(try tablet.news().map(\.opcode) == [.notifChat, .notifMessage])
            #expect(try tablet.texts(ChatID(0)) == ["note"])
            try bob.expectSilence()
            #expect(try bob.texts(ChatID(0)).isEmpty)
        }
    }

    @Test("a group is made once by its cid, and everybody invited hears of it")
    func group() throws {
        try withPair { server, alice, bob, _ in
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("Three", with: [bob, carol], cid: 9)
            #expect(group.rawValue < 0)
            #expect(group.rawValue > -(1 << 53))
            #expect(try alice.createGroup("Again", with: [bob], cid: 9) == group)
            for member in [bob, carol] {
                let news = try member.news()
                #expect(news.map(\.opcode) == [.notifChat, .notifMessage])
                let chat = try #require(news.first).decode(as: NotifChat.self).chat
                #expect(chat.type == .chat)
                #expect(chat.title == "Three")
                #expect(chat.owner == alice.userID)
                #expect(chat.participantsCount == 3)
                #expect(chat.newMessages == nil)
                let event = try #require(news.last).decode(as: NotifMessage.self).message
                let attach = try #require(event.attaches.value(limits: .standard).first)
                #expect(attach.type == .control)
                #expect(attach.event == "new")
                #expect(attach.userIDs == [bob.userID, carol.userID])
            }
        }
    }

    @Test("the cid that made a group is free for a message in it")
    func creationCID() throws {
        try withPair { _, alice, bob, _ in
            let group = try alice.createGroup("Two", with: [bob], cid: 9)
            let message = try alice.send("text", to: group, cid: 9)
            #expect(message.message.text == "text")
            #expect(try alice.send("again", to: group, cid: 9).message.id == message.message.id)
            #expect(try alice.createGroup("Again", with: [bob], cid: 9) == group)
        }
    }

    @Test("a group that is too big, has no title or names a stranger is refused")
    func badGroups() throws {
        try withPair(limits: ["maxGroupMembers": 2]) { server, alice, bob, _ in
            let carol = try server.signUp("Carol")
            func code(
                title: Text? = "T",
                _ users: [UserID],
                event: Text = "new",
                chatType: Text? = "CHAT"
            ) throws -> RequestError.Code {
                let control = NewAttach(
                    type: .control,
                    title: title,
                    event: event,
                    chatType: chatType,
                    userIDs: users
                )
                return try alice.code(
                    of: MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))
                )
            }
            #expect(try code([bob.userID, carol.userID]) == .protoPayload)
            #expect(try code(title: nil, [bob.userID]) == .protoPayload)
            #expect(try code(title: "", [bob.userID]) == .protoPayload)
            #expect(try code([UserID(999)]) == .userNotFound)
            #expect(try code([bob.userID], event: "add") == .protoPayload)
            #expect(try code([bob.userID], chatType: "DIALOG") == .errorMessageInvalid)
            try bob.expectSilence()
        }
    }

    @Test("a reply carries what it answers, until that is removed")
    func replyLink() throws {
        try withPair { _, alice, bob, dialog in
            let first = try alice.send("question", to: dialog, cid: 1).message
            _ = try bob.takePushes()
            let answer = try bob.call(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(
                        cid: 1,
                        text: "answer",
                        link: NewLink(type: .reply, messageID: first.id)
                    )
                )
            )
            let link = try #require(answer.message.link).value(limits: .standard)
            #expect(link.type == .reply)
            #expect(link.messageID == first.id)
            #expect(link.message.text == "question")
            let push = try #require(try alice.only(.notifMessage, as: NotifMessage.self).first)
            #expect(push.message.link == answer.message.link)

            try alice.delete([first.id], in: dialog)
            let page = try #require(try bob.history(dialog).messages)
            #expect(page.map(\.text) == ["answer"])
            #expect(page.first?.link == nil)
        }
    }

    @Test("a forward is a snapshot that outlives its source and does not tell of the dialog")
    func forward() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let source = try alice.send("secret plan", to: dialog, cid: 1).message
            let there = bob.dialog(with: carol)
            let sent = try bob.call(
                MsgSendRequest(
                    chatID: there,
                    message: NewMessage(
                        cid: -1,
                        link: NewLink(type: .forward, messageID: source.id, chatID: dialog)
                    )
                )
            )
            try alice.delete([source.id], in: dialog)
            let page = try #require(try carol.history(there).messages)
            #expect(page.first?.id == sent.message.id)
            let link = try #require(page.first?.link).value(limits: .standard)
            #expect(link.type == .forward)
            #expect(link.message.text == "secret plan")
            #expect(link.message.sender == alice.userID)
            #expect(link.chatID == ChatID(0))
        }
    }

    @Test("a link to nothing, or to what the caller cannot see, is refused")
    func badLinks() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let ours = try alice.send("ours", to: dialog, cid: 1).message.id
            let theirs = try bob.send("theirs", to: bob.dialog(with: carol), cid: 1).message.id
            func code(_ link: NewLink) throws -> RequestError.Code {
                try alice.code(
                    of: MsgSendRequest(
                        chatID: dialog,
                        message: NewMessage(cid: 2, text: "x", link: link)
                    )
                )
            }
            #expect(try code(NewLink(type: .reply, messageID: MessageID(1))) == .notFound)
            #expect(try code(NewLink(type: .reply, messageID: theirs)) == .notFound)
            #expect(try code(NewLink(type: .forward, messageID: theirs)) == .notFound)
            let there = bob.dialog(with: carol)
            #expect(
                try code(NewLink(type: .forward, messageID: theirs, chatID: there)) == .notFound
            )
            #expect(
                try code(NewLink(type: .reply, messageID: ours, chatID: ChatID(0))) == .notFound
            )
            #expect(try code(NewLink(type: .other("ODD"), messageID: ours)) == .protoPayload)
            #expect(try alice.texts(dialog) == ["ours"])
        }
    }

    @Test("unknown, foreign and blocked chats look alike")
    func notFound() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let mallory = try server.signUp("Mallory")
            let group = try bob.createGroup("Theirs", with: [carol], cid: 1)
            try server.block(mallory.userID)
            let unknown = [
                ChatID(-1), group, .dialog(alice.userID, UserID(999)),
                alice.dialog(with: mallory), ChatID(.min), ChatID(.max),
            ]
            for chat in unknown {
                let refusal = try alice.refusal(
                    of: MsgSendRequest(chatID: chat, message: NewMessage(cid: 1, text: "x"))
                )
                #expect(refusal == .chatNotFound, "\(chat)")
            }
            let stranger = MsgSendRequest(
                userID: UserID(999),
                message: NewMessage(cid: 1, text: "x")
            )
            #expect(try alice.code(of: stranger) == .chatNotFound)
            try bob.expectSilence()
        }
    }

    @Test("a retry gets the first result even when the other side is blocked by now")
    func retryAfterBlock() throws {
        try withPair { server, alice, bob, dialog in
            let first = try alice.send("stored", to: dialog, cid: 1)
            try server.block(bob.userID)
            #expect(try alice.send("stored", to: dialog, cid: 1).message.id == first.message.id)
            let another = MsgSendRequest(
                chatID: dialog,
                message: NewMessage(cid: 2, text: "too late")
            )
            #expect(try alice.code(of: another) == .chatNotFound)
        }
    }

    @Test("what has neither text nor anything else, or waits as a group, is no message")
    func invalid() throws {
        try withPair { _, alice, bob, dialog in
            func code(_ message: NewMessage) throws -> RequestError.Code {
                try alice.code(of: MsgSendRequest(chatID: dialog, message: message))
            }
            #expect(try code(NewMessage(cid: 1)) == .errorMessageInvalid)
            #expect(try code(NewMessage(cid: 1, text: "")) == .errorMessageInvalid)
            let photo = NewAttach(type: .photo)
            #expect(try code(NewMessage(cid: 1, attaches: [photo])) == .errorMessageInvalid)
            let control = NewAttach(type: .control, title: "T", event: "new")
            #expect(try code(NewMessage(cid: 1, attaches: [control])) == .errorMessageInvalid)
            let group = NewMessage(
                cid: 1,
                attaches: [NewAttach(type: .control, title: "T", event: "new")],
                delayedAttributes: DelayedAttributes(timeToFire: 9_999_999_999_999)
            )
            #expect(try alice.code(of: MsgSendRequest(message: group)) == .errorMessageInvalid)
            let stranger = NewAttach(type: .contact, contactID: UserID(999))
            #expect(try code(NewMessage(cid: 1, attaches: [stranger])) == .userNotFound)
            let nowhere: [(Double, Double)] = [(91, 0), (0, -181), (.nan, 0), (.infinity, 0)]
            for (latitude, longitude) in nowhere {
                let place = NewAttach(type: .location, latitude: latitude, longitude: longitude)
                #expect(try code(NewMessage(cid: 1, attaches: [place])) == .protoPayload)
            }
            #expect(
                try code(NewMessage(cid: 1, attaches: [NewAttach(type: .share)])) == .protoPayload
            )
            try bob.expectSilence()
        }
    }

    @Test("contacts, places and links arrive with what clients need of them")
    func attaches() throws {
        try withPair { _, alice, bob, dialog in
            try alice.call(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(
                        cid: 1,
                        attaches: [
                            NewAttach(type: .contact, contactID: bob.userID),
                            NewAttach(type: .contact, vcfBody: "BEGIN:VCARD"),
                            NewAttach(type: .location, latitude: 55.5, longitude: -37.5, zoom: 12),
                            NewAttach(type: .share, url: "https://a@example.org:8080/x?y"),
                        ]
                    )
                )
            )
            let message = try #require(try bob.history(dialog).messages?.first)
            let attaches = try message.attaches.value(limits: .standard)
            #expect(attaches.map(\.type) == [.contact, .contact, .location, .share])
            #expect(attaches[0].contactID == bob.userID)
            #expect(attaches[0].name == "Bob")
            #expect(attaches[1].vcfBody == "BEGIN:VCARD")
            #expect(attaches[2].longitude == -37.5)
            #expect(attaches[3].host == "example.org:8080")
        }
    }

    @Test("formatting is clipped to the text, never refused")
    func elements() throws {
        try withPair { _, alice, bob, dialog in
            let reply = try alice.call(
                MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(
                        cid: 1,
                        text: "a😀b",
                        elements: [
                            Element(type: "STRONG", from: 0, length: 3),
                            Element(type: "CODE", from: 1, length: .max),
                            Element(type: "LINK", from: -5, length: nil),
                            Element(type: "EMPTY", from: 4, length: 1),
                            Element(type: "LOST", from: .max, length: .max),
                            Element(type: "BACK", from: 0, length: .min),
                        ]
                    )
                )
            )
            let elements = try #require(reply.message.elements).value(limits: .standard)
            #expect(elements.map(\.type) == ["STRONG", "CODE", "LINK"])
            #expect(elements.map(\.from) == [0, 1, 0])
            #expect(elements.map(\.length) == [3, 3, 4])
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect(push.message.elements == reply.message.elements)
        }
    }

    @Test("the length of a text counts UTF-16 units")
    func textLimit() throws {
        try withPair(limits: ["maxTextUnits": 10]) { _, alice, _, dialog in
            #expect(try alice.send("😀😀😀😀😀", to: dialog, cid: 1).message.text == "😀😀😀😀😀")
            let refusal = try alice.refusal(
                of: MsgSendRequest(
                    chatID: dialog,
                    message: NewMessage(cid: 2, text: "😀😀😀😀😀a")
                )
            )
            #expect(refusal.message == "/message/text: 11 UTF-16 units, limit 10")
        }
    }
}
