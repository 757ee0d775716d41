import TambourProtocol
import TambourTesting
import Testing

/// Runs `body` with Alice's group, its member Bob, and Carol, who is not a member. No pushes are
/// pending.
private func withGroup(
    limits overrides: [String: Int] = [:],
    _ body: (TestServer, WireClient, WireClient, WireClient, ChatID) throws -> Void
) throws {
    try withPair(limits: overrides) { server, alice, bob, _ in
        let carol = try server.signUp("Carol")
        let group = try alice.createGroup("Picnic", with: [bob], cid: 1)
        _ = try (alice.takePushes(), bob.takePushes(), carol.takePushes())
        try body(server, alice, bob, carol, group)
    }
}

extension WireClient {
    @discardableResult
    fileprivate func add(
        _ others: WireClient...,
        to group: ChatID,
        showHistory: Bool = true
    ) throws -> Chat {
        try call(
            ChatMembersUpdateRequest(
                chatID: group,
                userIDs: others.map(\.userID),
                operation: .add,
                showHistory: showHistory
            )
        ).chat
    }

    @discardableResult
    fileprivate func remove(
        _ others: WireClient...,
        from group: ChatID,
        cleanMsgPeriod: Int64 = 0
    ) throws -> Chat {
        try call(removal(others.map(\.userID), from: group, cleanMsgPeriod: cleanMsgPeriod)).chat
    }

    fileprivate func removal(
        _ users: [UserID],
        from group: ChatID,
        cleanMsgPeriod: Int64 = 0
    ) -> ChatMembersUpdateRequest {
        ChatMembersUpdateRequest(
            chatID: group,
            userIDs: users,
            operation: .remove,
            cleanMsgPeriod: cleanMsgPeriod
        )
    }

    fileprivate func appointment(
        _ user: UserID,
        _ permissions: Int64?,
        in group: ChatID
    ) -> ChatMembersUpdateRequest {
        ChatMembersUpdateRequest(
            chatID: group,
            userIDs: [user],
            operation: permissions == nil ? .remove : .add,
            type: .admin,
            permissions: permissions
        )
    }

    /// Returns the only new message with its event, and the chats of all NOTIF_CHAT pushes.
    fileprivate func event() throws -> (event: Attach?, message: Message?, chats: [Chat]) {
        let news = try news()
        let chats = try news.filter { $0.opcode == .notifChat }
            .map { try $0.decode(as: NotifChat.self).chat }
        let messages = try news.filter { $0.opcode == .notifMessage }
            .map { try $0.decode(as: NotifMessage.self).message }
        #expect(messages.count <= 1)
        let attaches = try messages.first?.attaches.value(limits: .standard) ?? []
        return (attaches.first, messages.first, chats)
    }
}

@Suite("CHAT_MEMBERS_UPDATE (77)")
struct ChatMembersUpdateTests {
    @Test("who is added hears of the chat, and everybody of the event")
    func added() throws {
        try withGroup { server, alice, bob, carol, group in
            let chat = try alice.add(carol, to: group)
            #expect(chat.participantsCount == 3)
            for other in [bob, carol] {
                let (event, message, chats) = try other.event()
                #expect(event?.event == "add")
                #expect(event?.userID == alice.userID)
                #expect(event?.userIDs == [carol.userID])
                #expect(message?.sender == alice.userID)
                #expect(message?.cid == nil)
                #expect(chats.map(\.id) == [group])
                #expect(chats.first?.participantsCount == 3)
                #expect(chats.first?.status == .active)
            }
            try alice.expectSilence()
            #expect(try carol.chat(group)?.newMessages == 1)
            try carol.send("hello", to: group, cid: 1)
            #expect(try bob.only(.notifMessage, as: NotifMessage.self).count == 1)
        }
    }

    @Test("with history one sees what was said, as read; without it nothing of it")
    func history() throws {
        try withGroup { server, alice, bob, carol, group in
            let dave = try server.signUp("Dave")
            let old = try bob.send("old", to: group, cid: 1).message
            try alice.call(ChatUpdateRequest(chatID: group, pinMessageID: old.id, notifyPin: false))
            try alice.add(carol, to: group)
            try alice.add(dave, to: group, showHistory: false)

            #expect(try carol.texts(group) == ["", "old", "", ""])
            #expect(try carol.chat(group)?.newMessages == 2)
            #expect(try carol.chat(group)?.pinnedMessage?.id == old.id)

            #expect(try dave.texts(group) == [""])
            let chat = try #require(try dave.chat(group))
            #expect(chat.newMessages == 1)
            #expect(chat.pinnedMessage == nil)
            let asked = try dave.call(MsgGetRequest(chatID: group, messageIDs: [old.id]))
            #expect(asked.messages.isEmpty)
            let everything = try dave.history(group, from: 0, backward: 0, forward: 50)
            #expect(everything.messages?.count == 1)
            #expect(try dave.delete([old.id], in: group, forMe: true).failedMessageIDs == [old.id])
            let reply = MsgSendRequest(
                chatID: group,
                message: NewMessage(
                    cid: 1,
                    text: "what?",
                    link: NewLink(type: .reply, messageID: old.id)
                )
            )
            #expect(try dave.code(of: reply) == .notFound)

            let event = try #require(chat.lastMessage?.id)
            let mark = try dave.call(
                ChatMarkRequest(type: .setAsUnread, chatID: group, messageID: old.id)
            )
            #expect(mark.unread == 1)
            try dave.delete([event], in: group, forMe: true)
            let empty = try #require(try dave.chat(group))
            #expect(empty.lastMessage == nil)
            #expect(empty.newMessages == 0)
        }
    }

    @Test("who is there already is passed over; a list with a stranger adds nobody")
    func passedOver() throws {
        try withGroup { server, alice, bob, carol, group in
            try alice.add(bob, to: group)
            try bob.expectSilence()
            func request(_ ids: [UserID]) -> ChatMembersUpdateRequest {
                ChatMembersUpdateRequest(chatID: group, userIDs: ids, operation: .add)
            }
            #expect(try alice.code(of: request([carol.userID, UserID(999)])) == .userNotFound)
            #expect(try alice.code(of: request([])) == .protoPayload)
            #expect(try carol.code(of: request([carol.userID])) == .chatNotFound)
            #expect(try alice.chat(group)?.participantsCount == 2)
            try carol.expectSilence()
            let twice = try alice.call(request([carol.userID, carol.userID]))
            #expect(twice.chat.participantsCount == 3)
        }
    }

    @Test("no more than the limit")
    func tooMany() throws {
        try withGroup(limits: ["maxGroupMembers": 3]) { server, alice, bob, carol, group in
            let dave = try server.signUp("Dave")
            let request = ChatMembersUpdateRequest(
                chatID: group,
                userIDs: [carol.userID, dave.userID],
                operation: .add
            )
            #expect(try alice.code(of: request) == .protoPayload)
            #expect(try alice.add(carol, to: group).participantsCount == 3)
        }
    }

    @Test("who is removed hears that, and nothing of the chat from then on", arguments: [0, 5])
    func removed(strangers: Int) throws {
        // Test a small group and a big group. Five more strangers make the group larger than
        // `fanOutMembers`.
        try withGroup(limits: ["fanOutMembers": 3]) { server, alice, bob, carol, group in
            for index in 0..<strangers { try alice.add(server.signUp("S\(index)"), to: group) }
            try alice.add(carol, to: group)
            let tablet = try server.signIn(phoneOf: carol, device: "tablet")
            let mark = try server.reconnect(carol).login.time
            _ = try (bob.takePushes(), carol.takePushes(), tablet.takePushes())

            let chat = try alice.remove(carol, from: group)
            #expect(chat.participantsCount == 2 + Int64(strangers))

            let (event, _, chats) = try bob.event()
            #expect(event?.event == "remove")
            #expect(event?.userIDs == [carol.userID])
            #expect(chats.first?.participantsCount == 2 + Int64(strangers))
            for device in [carol, tablet] {
                let gone = try device.only(.notifChat, as: NotifChat.self).map(\.chat)
                #expect(gone.map(\.id) == [group])
                #expect(gone.first?.status == .removed)
            }
            try bob.send("she is gone", to: group, cid: 1)
            try carol.expectSilence()
            let history = ChatHistoryRequest(chatID: group, backward: 10)
            #expect(try carol.code(of: history) == .chatNotFound)
            #expect(try carol.chat(group) == nil)
            let send = MsgSendRequest(chatID: group, message: NewMessage(cid: 9, text: "me?"))
            #expect(try carol.code(of: send) == .chatNotFound)

            let delta = try server.reconnect(carol, since: mark).login
            let stone = try #require(delta.chats.first { $0.id == group })
            #expect(stone.status == .removed)
            #expect(stone.lastMessage == nil)
            #expect(stone.title == nil)
            let full = try server.reconnect(carol).login
            #expect(!full.chats.contains { $0.id == group })
            #expect(try !carol.call(ChatsListRequest()).chats.contains { $0.id == group })
            let nothing = try server.reconnect(carol, since: delta.time + 1_000).login
            #expect(!nothing.chats.contains { $0.id == group })

            try alice.add(carol, to: group, showHistory: false)
            let back = try server.reconnect(carol, since: mark).login
            let again = try #require(back.chats.first { $0.id == group })
            #expect(again.status == .active)
            #expect(again.newMessages == 1)
            #expect(try carol.texts(group).count == 1)
        }
    }

    @Test(
        "what happens to messages of before is told to those alone who see them",
        arguments: [2, 100]
    )
    func before(fanOutMembers: Int) throws {
        try withServer(limits: ["fanOutMembers": fanOutMembers]) { server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("G", with: [bob], cid: 1)
            let old = try alice.send("old", to: group, cid: 2).message.id
            let poll = NewMessage(cid: 3, attaches: [.poll()])
            let asked = try alice.call(MsgSendRequest(chatID: group, message: poll)).message
            try alice.add(carol, to: group, showHistory: false)
            let new = try alice.send("new", to: group, cid: 4).message.id
            _ = try (bob.takePushes(), carol.takePushes())

            func edit(_ id: MessageID, _ text: Text) throws {
                try alice.call(MsgEditRequest(chatID: group, messageID: id, text: text))
                let fire = NewReaction(id: "🔥")
                try alice.call(MsgReactionRequest(chatID: group, messageID: id, reaction: fire))
            }
            try edit(old, "older")
            let vote = SendVoteRequest(
                chatID: group,
                messageID: asked.id,
                pollID: try #require(asked.attaches.stored?.first?.pollID),
                answersIDs: [1]
            )
            try alice.call(vote)
            #expect(
                try bob.news().map(\.opcode) == [
                    .notifMessage, .notifMsgReactionsChanged, .notifMessage,
                ]
            )
            #expect(try carol.news().isEmpty)
            try edit(new, "newer")
            for client in [bob, carol] {
                let news = try client.news().map(\.opcode)
                #expect(news == [.notifMessage, .notifMsgReactionsChanged])
            }
        }
    }

    @Test("with -1 the messages go too, but not what happened")
    func cleaned() throws {
        try withGroup { server, alice, bob, carol, group in
            try alice.add(carol, to: group)
            let said = try (1...3).map { try carol.send("\($0)", to: group, cid: $0).message.id }
            try carol.call(ChatUpdateRequest(chatID: group, theme: "Carol's"))
            _ = try bob.takePushes()
            #expect(
                try alice.code(of: alice.removal([carol.userID], from: group, cleanMsgPeriod: 7))
                    == .protoPayload
            )
            try alice.remove(carol, from: group, cleanMsgPeriod: -1)
            let pushes = try bob.takePushes().filter { $0.opcode == .notifMsgDelete }
            #expect(try pushes.map { try $0.decode(as: NotifMsgDelete.self).messageIDs } == [said])
            #expect(try bob.texts(group).allSatisfy(\.isEmpty))
            // The four events: the group was created, Carol was added, the title changed, Carol was
            // removed.
            #expect(try bob.texts(group).count == 4)
        }
    }

    @Test("rights are given and taken, never more than one has")
    func administrators() throws {
        try withGroup { server, alice, bob, carol, group in
            try alice.add(carol, to: group)
            _ = try (alice.takePushes(), bob.takePushes(), carol.takePushes())
            try alice.call(alice.appointment(bob.userID, 6, in: group))
            for device in [bob, carol] {
                let chats = try device.only(.notifChat, as: NotifChat.self).map(\.chat)
                #expect(chats.map(\.admins) == [[alice.userID, bob.userID]])
            }
            let rights = try #require(try carol.chat(group)?.adminParticipants)
            #expect(rights.pairs.map(\.0) == [alice.userID, bob.userID])

            #expect(try bob.code(of: bob.appointment(carol.userID, 8, in: group)) == .notAllowed)
            #expect(try bob.code(of: bob.appointment(alice.userID, nil, in: group)) == .notAllowed)
            #expect(try bob.code(of: bob.removal([alice.userID], from: group)) == .notAllowed)
            #expect(try bob.code(of: bob.removal([bob.userID], from: group)) == .notAllowed)
            #expect(try bob.code(of: bob.appointment(UserID(999), 2, in: group)) == .userNotFound)
            for bits: Int64? in [0, 2_048, -1] {
                let request = bob.appointment(carol.userID, bits, in: group)
                #expect(try bob.code(of: request) == .protoPayload)
            }
            try bob.call(bob.appointment(carol.userID, 2, in: group))
            _ = try (alice.takePushes(), carol.takePushes())
            try bob.call(bob.appointment(carol.userID, 2, in: group))
            try alice.expectSilence()
            try alice.call(alice.appointment(bob.userID, nil, in: group))
            #expect(try carol.chat(group)?.admins == [alice.userID, carol.userID])
            #expect(try bob.code(of: bob.appointment(carol.userID, nil, in: group)) == .notAllowed)
            // A member who leaves loses all rights.
            try alice.remove(carol, from: group)
            try alice.add(carol, to: group)
            #expect(try carol.chat(group)?.admins == [alice.userID])
        }
    }

    @Test("lists that are not kept are refused")
    func lists() throws {
        try withGroup { server, alice, _, carol, group in
            for type: MemberType in [.blocked, .commentsBlacklist] {
                let request = ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [carol.userID],
                    operation: .add,
                    type: type
                )
                let code = try alice.code(of: request)
                #expect(code == .notAllowed)
            }
        }
    }

    @Test("a group that grows big stays so, and a login from before brings it")
    func growing() throws {
        try withGroup(limits: ["fanOutMembers": 2]) { server, alice, bob, carol, group in
            let mark = try server.reconnect(bob).login.time
            #expect(try bob.chat(group)?.participants.count == 2)
            try alice.add(carol, to: group)
            #expect(try bob.chat(group)?.participants.count == 1)
            let delta = try server.reconnect(bob, since: mark).login
            #expect(delta.chats.first { $0.id == group }?.participantsCount == 3)
            try alice.remove(carol, from: group)
            #expect(try bob.chat(group)?.participants.count == 1)
            try alice.send("two again", to: group, cid: 7)
            #expect(try bob.chat(group)?.lastMessage?.text == "two again")
        }
    }
}

@Suite("CHAT_LEAVE (58)")
struct ChatLeaveTests {
    @Test("who leaves is gone on every device, and the others hear of it")
    func left() throws {
        try withGroup { server, alice, bob, carol, group in
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            let mark = try server.reconnect(bob).login.time
            _ = try tablet.takePushes()
            try bob.call(ChatLeaveRequest(chatID: group))
            try bob.expectSilence()
            let gone = try tablet.only(.notifChat, as: NotifChat.self).map(\.chat)
            #expect(gone.map(\.status) == [.removed])
            let (event, message, chats) = try alice.event()
            #expect(event?.event == "leave")
            #expect(event?.userID == bob.userID)
            #expect(message?.sender == bob.userID)
            #expect(chats.map(\.participantsCount) == [1])
            #expect(try bob.code(of: ChatLeaveRequest(chatID: group)) == .chatNotFound)
            let delta = try server.reconnect(bob, since: mark).login
            #expect(delta.chats.map(\.status) == [.removed])
            try carol.expectSilence()
        }
    }

    @Test("not the owner, not from a dialog, not from what is not there")
    func refused() throws {
        try withGroup { _, alice, bob, carol, group in
            #expect(try alice.code(of: ChatLeaveRequest(chatID: group)) == .notAllowed)
            #expect(try carol.code(of: ChatLeaveRequest(chatID: group)) == .chatNotFound)
            let dialog = alice.dialog(with: bob)
            try alice.send("hi", to: dialog, cid: 3)
            #expect(try alice.code(of: ChatLeaveRequest(chatID: dialog)) == .notAllowed)
            _ = try alice.call(ChatUpdateRequest(chatID: group, changeOwnerID: bob.userID))
            try alice.call(ChatLeaveRequest(chatID: group))
            #expect(try bob.chat(group)?.owner == bob.userID)
        }
    }
}

@Suite("CHAT_MEMBERS (59)")
struct ChatMembersTests {
    @Test("everybody comes once, page by page")
    func pages() throws {
        try withGroup { server, alice, bob, carol, group in
            try alice.add(carol, to: group)
            var found: [UserID] = []
            var marker: Int64? = 0
            while let next = marker {
                let page = try carol.call(
                    ChatMembersRequest(chatID: group, type: .member, marker: next, count: 2)
                )
                #expect(page.members.count <= 2)
                found += page.members.map(\.contact.id)
                marker = page.marker
            }
            #expect(found == [alice, bob, carol].map(\.userID).sorted())
            let all = try bob.call(ChatMembersRequest(chatID: group))
            #expect(all.marker == nil)
            #expect(all.members.map(\.permissions) == [2_047, nil, nil])
            #expect(all.members.compactMap(\.contact.phone).count == 1)
            #expect(all.members.allSatisfy { $0.readMark != nil })
            let dialog = alice.dialog(with: bob)
            try alice.send("hi", to: dialog, cid: 4)
            #expect(try bob.call(ChatMembersRequest(chatID: dialog)).members.count == 2)
        }
    }

    @Test("only administrators, only those of a name, nobody who does not belong there")
    func some() throws {
        try withGroup(limits: ["maxMembersPage": 1]) { server, alice, bob, carol, group in
            try alice.call(alice.appointment(bob.userID, 2, in: group))
            try alice.add(carol, to: group)
            func names(_ type: MemberType? = nil, _ query: Text? = nil) throws -> [UserID] {
                let request = ChatMembersRequest(chatID: group, type: type, query: query)
                return try alice.call(request).members.map(\.contact.id)
            }
            #expect(try names(.admin) == [alice.userID])
            #expect(try names(nil, "CA") == [carol.userID])
            #expect(try names(.admin, "bo") == [bob.userID])
            #expect(try names(nil, "x").isEmpty)
            #expect(try names(.joinRequest).isEmpty)
            let dave = try server.signUp("Dave")
            #expect(try dave.code(of: ChatMembersRequest(chatID: group)) == .chatNotFound)
        }
    }
}

@Suite("CHAT_UPDATE (55)")
struct ChatUpdateTests {
    @Test("title and description change for everybody, and only the title is an event")
    func words() throws {
        try withGroup { server, alice, bob, _, group in
            let mark = try server.reconnect(bob).login.time
            let chat = try alice.call(
                ChatUpdateRequest(chatID: group, theme: "Barbecue", description: "On Sunday")
            ).chat
            #expect(chat.title == "Barbecue")
            #expect(chat.description == "On Sunday")
            let (event, _, chats) = try bob.event()
            #expect(event?.event == "title")
            #expect(event?.title == "Barbecue")
            #expect(chats.map(\.title) == ["Barbecue"])
            #expect(chats.map(\.description) == ["On Sunday"])
            try alice.call(ChatUpdateRequest(chatID: group, theme: "Barbecue"))
            try bob.expectSilence()
            try alice.call(ChatUpdateRequest(chatID: group, description: ""))
            #expect(try bob.only(.notifChat, as: NotifChat.self).map(\.chat.description) == [nil])
            let delta = try server.reconnect(bob, since: mark).login.chats
            #expect(delta.map(\.title) == ["Barbecue"])
            #expect(delta.map(\.description) == [nil])
        }
    }

    @Test("options change one by one; unknown ones and what is not served are refused")
    func options() throws {
        try withGroup { _, alice, bob, _, group in
            func set(_ name: Text, _ isSet: Bool) -> ChatUpdateRequest {
                ChatUpdateRequest(chatID: group, options: NameMap([(name, isSet)]))
            }
            try alice.call(set("ALL_CAN_PIN_MESSAGE", true))
            try alice.call(set("ONLY_ADMIN_CAN_ADD_MEMBER", true))
            let chat = try alice.call(set("ONLY_ADMIN_CAN_ADD_MEMBER", false)).chat
            #expect(chat.options == NameMap([("ALL_CAN_PIN_MESSAGE", true)]))
            #expect(try bob.chat(group)?.options == chat.options)
            #expect(try alice.code(of: set("NONSENSE", true)) == .protoPayload)
            var request = ChatUpdateRequest(chatID: group)
            request.photoToken = "x"
            #expect(try alice.code(of: request) == .protoPayload)
            #expect(
                try alice.code(of: ChatUpdateRequest(chatID: group, theme: "")) == .protoPayload
            )
        }
    }

    @Test("a message is pinned, with or without a word, and taken down")
    func pin() throws {
        try withGroup { _, alice, bob, _, group in
            let message = try bob.send("read this", to: group, cid: 1).message
            _ = try alice.takePushes()
            try alice.call(ChatUpdateRequest(chatID: group, pinMessageID: message.id))
            #expect(try bob.event().event?.event == "pin")
            #expect(try bob.chat(group)?.pinnedMessage?.text == "read this")
            try alice.call(
                ChatUpdateRequest(chatID: group, pinMessageID: MessageID(0), notifyPin: false)
            )
            #expect(try bob.event().event == nil)
            #expect(try bob.chat(group)?.pinnedMessage == nil)
            let nothing = ChatUpdateRequest(chatID: group, pinMessageID: MessageID(5))
            #expect(try alice.code(of: nothing) == .notFound)
            try alice.call(ChatUpdateRequest(chatID: group, pinMessageID: message.id))
            try bob.delete([message.id], in: group)
            #expect(try alice.chat(group)?.pinnedMessage == nil)
            // In a dialog, both users may pin.
            let dialog = alice.dialog(with: bob)
            let said = try alice.send("hi", to: dialog, cid: 5).message
            try bob.call(ChatUpdateRequest(chatID: dialog, pinMessageID: said.id))
            #expect(try alice.chat(dialog)?.pinnedMessage?.id == said.id)
        }
    }

    @Test("a group is given away; all of a request is done or nothing")
    func owner() throws {
        try withGroup { _, alice, bob, carol, group in
            let stranger = ChatUpdateRequest(chatID: group, changeOwnerID: carol.userID)
            #expect(try alice.code(of: stranger) == .userNotFound)
            let mixed = ChatUpdateRequest(chatID: group, theme: "Mine", description: "!")
            #expect(try bob.code(of: mixed) == .notAllowed)
            #expect(try alice.chat(group)?.title == "Picnic")
            try alice.call(ChatUpdateRequest(chatID: group, changeOwnerID: bob.userID))
            let chat = try #require(try alice.chat(group))
            #expect(chat.owner == bob.userID)
            #expect(chat.admins == [bob.userID, alice.userID])
            #expect(
                try alice.code(of: ChatUpdateRequest(chatID: group, changeOwnerID: alice.userID))
                    == .notAllowed
            )
            #expect(
                try alice.code(of: ChatUpdateRequest(chatID: ChatID(-5), theme: "x"))
                    == .chatNotFound
            )
        }
    }

    @Test("what happened is nobody's to edit or delete")
    func events() throws {
        try withGroup { _, alice, _, _, group in
            try alice.call(ChatUpdateRequest(chatID: group, theme: "Barbecue"))
            let event = try #require(try alice.history(group).messages?.last?.id)
            let edit = MsgEditRequest(chatID: group, messageID: event, text: "no")
            #expect(try alice.code(of: edit) == .notAllowed)
            #expect(try alice.delete([event], in: group).failedMessageIDs == [event])
        }
    }
}

@Suite("CHAT_CLEAR (54)")
struct ChatClearTests {
    @Test("for oneself: nothing is left, on no device and in no login, and others keep it")
    func forOneself() throws {
        try withGroup { server, alice, bob, _, group in
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            let said = try (1...4).map { try alice.send("\($0)", to: group, cid: $0 + 10).message }
            let mark = try server.reconnect(bob).login.time
            _ = try (bob.takePushes(), tablet.takePushes())
            let part = try bob.call(
                ChatClearRequest(chatID: group, lastEventTime: said[1].time)
            ).chat
            #expect(part.newMessages == 2)
            #expect(try bob.texts(group) == ["3", "4"])
            #expect(try tablet.only(.notifChat, as: NotifChat.self).map(\.chat.newMessages) == [2])
            try bob.call(ChatClearRequest(chatID: group, lastEventTime: said[0].time))
            let all = try bob.call(ChatClearRequest(chatID: group, lastEventTime: .max)).chat
            #expect(all.newMessages == 0)
            #expect(all.lastMessage == nil)
            #expect(try bob.texts(group).isEmpty)
            #expect(try alice.texts(group).count == 5)
            let delta = try server.reconnect(bob, since: mark).login.chats
            #expect(delta.first { $0.id == group }?.lastMessage == nil)
            try alice.send("5", to: group, cid: 99)
            #expect(try bob.chat(group)?.newMessages == 1)
            #expect(try bob.texts(group) == ["5"])
        }
    }

    @Test("for everybody: by who may, and everybody hears of it")
    func forAll() throws {
        try withGroup { _, alice, bob, _, group in
            let said = try (1...2).map { try bob.send("\($0)", to: group, cid: $0).message }
            _ = try alice.takePushes()
            #expect(try bob.code(of: ChatClearRequest(chatID: group, forAll: true)) == .notAllowed)
            try alice.call(
                ChatClearRequest(chatID: group, lastEventTime: said[0].time, forAll: true)
            )
            #expect(try bob.texts(group) == ["2"])
            let pushes = try bob.only(.notifMsgDelete, as: NotifMsgDelete.self)
            #expect(pushes.map(\.messageIDs.count) == [2])
            let dialog = alice.dialog(with: bob)
            try alice.send("hi", to: dialog, cid: 9)
            #expect(try bob.code(of: ChatClearRequest(chatID: dialog, forAll: true)) == .notAllowed)
            try bob.call(ChatClearRequest(chatID: dialog))
            #expect(try bob.texts(dialog).isEmpty)
            #expect(try alice.texts(dialog) == ["hi"])
        }
    }
}

@Suite("CHAT_DELETE (52)")
struct ChatDeleteTests {
    @Test("a group ends for everybody, also for who is away")
    func forAll() throws {
        try withGroup { server, alice, bob, _, group in
            let invited = try alice.call(ChatUpdateRequest(chatID: group, revokePrivateLink: true))
            let link = try #require(invited.chat.link)
            let mark = try server.reconnect(bob).login.time
            _ = try bob.takePushes()
            #expect(try bob.code(of: ChatDeleteRequest(chatID: group, forAll: true)) == .notAllowed)
            try alice.call(ChatDeleteRequest(chatID: group, forAll: true))
            let pushes = try bob.only(.notifChat, as: NotifChat.self)
            #expect(pushes.map(\.chat.status) == [.removed])
            for (device, since) in [(alice, Int64(1)), (bob, mark)] {
                #expect(try device.chat(group) == nil)
                let delta = try server.reconnect(device, since: since).login.chats
                #expect(delta.filter { $0.id == group }.map(\.status) == [.removed])
            }
            #expect(try bob.code(of: ChatJoinRequest(link: link)) == .notFound)
            #expect(
                try alice.code(of: ChatDeleteRequest(chatID: group, forAll: true)) == .chatNotFound
            )
        }
    }

    @Test("without forAll it is leaving")
    func leaving() throws {
        try withGroup { _, alice, bob, _, group in
            #expect(try alice.code(of: ChatDeleteRequest(chatID: group)) == .notAllowed)
            try bob.call(ChatDeleteRequest(chatID: group))
            #expect(try alice.event().event?.event == "leave")
            #expect(try bob.chat(group) == nil)
        }
    }
}

@Suite("CHAT_JOIN (57), LINK_INFO (89) and CHAT_CHECK_LINK (56)")
struct ChatJoinTests {
    @Test("an invitation leads in, once, until it is replaced")
    func joining() throws {
        try withGroup(limits: ["maxGroupMembers": 3]) { server, alice, bob, carol, group in
            let dave = try server.signUp("Dave")
            func invite(_ client: WireClient) throws -> Text {
                let request = ChatUpdateRequest(chatID: group, revokePrivateLink: true)
                return try #require(try client.call(request).chat.link)
            }
            let old = try invite(alice)
            let link = try invite(alice)
            #expect(old != link)
            #expect(try bob.chat(group)?.link == nil)
            #expect(try alice.chat(group)?.link == link)
            let refused = ChatUpdateRequest(chatID: group, revokePrivateLink: true)
            #expect(try bob.code(of: refused) == .notAllowed)
            _ = try bob.takePushes()

            for link in [old, "join/", "nonsense"] {
                #expect(try carol.code(of: ChatJoinRequest(link: link)) == .notFound)
                #expect(try carol.code(of: ChatCheckLinkRequest(link: link)) == .notFound)
                #expect(try carol.call(LinkInfoRequest(link: link)).chat == nil)
            }
            let whole = Text("https://example.org/\(link)")
            _ = try carol.call(ChatCheckLinkRequest(link: whole))
            let look = try #require(try carol.call(LinkInfoRequest(link: whole)).chat)
            #expect(look.id == group)
            #expect(look.title == "Picnic")
            #expect(look.participantsCount == 2)
            #expect(look.participants.isEmpty)
            #expect(look.lastMessage == nil)
            #expect(try carol.chat(group) == nil)

            let joined = try carol.call(ChatJoinRequest(link: whole)).chat
            #expect(joined.participantsCount == 3)
            #expect(joined.newMessages == 0)
            #expect(try bob.event().event?.event == "joinByLink")
            #expect(try carol.call(ChatJoinRequest(link: link)).chat.id == group)
            try bob.expectSilence()
            #expect(try carol.call(LinkInfoRequest(link: link)).chat?.lastMessage != nil)
            #expect(try dave.code(of: ChatJoinRequest(link: link)) == .notAllowed)
        }
    }
}
