import TambourProtocol
import TambourTesting
import Testing

extension WireClient {
    @discardableResult
    fileprivate func react(
        _ emoji: Text,
        to message: MessageID,
        in chat: ChatID
    ) throws -> ReactionInfo {
        try call(reaction(emoji, to: message, in: chat)).reactionInfo
    }

    fileprivate func reaction(
        _ emoji: Text,
        to message: MessageID,
        in chat: ChatID
    ) -> MsgReactionRequest {
        MsgReactionRequest(chatID: chat, messageID: message, reaction: NewReaction(id: emoji))
    }

    @discardableResult
    fileprivate func cancel(_ message: MessageID, in chat: ChatID) throws -> ReactionInfo {
        try call(MsgCancelReactionRequest(chatID: chat, messageID: message)).reactionInfo
    }

    /// Returns the reactions of the chat's newest message, as the list of chats shows them.
    fileprivate func shown(_ chat: ChatID) throws -> ReactionInfo? {
        try self.chat(chat)?.lastMessage?.reactionInfo?.value(limits: .standard)
    }
}

private func info(_ counters: [(Text, Int64)], own: Text? = nil) -> ReactionInfo {
    ReactionInfo(
        totalCount: counters.reduce(0) { $0 + $1.1 },
        counters: counters.map { ReactionCounter(count: $0.1, reaction: $0.0) },
        yourReaction: own
    )
}

/// Runs `body` with Alice's group, its members Bob and Carol, and a message in the group. No pushes
/// are pending.
private func withMessage(
    limits overrides: [String: Int] = [:],
    _ body: (TestServer, [WireClient], ChatID, MessageID) throws -> Void
) throws {
    try withPair(limits: overrides) { server, alice, bob, _ in
        let carol = try server.signUp("Carol")
        let group = try alice.createGroup("Drums", with: [bob, carol], cid: 1)
        let message = try alice.send("boom", to: group, cid: 2).message.id
        for client in [alice, bob, carol] { _ = try client.takePushes() }
        try body(server, [alice, bob, carol], group, message)
    }
}

@Suite("MSG_REACTION (178)")
struct MsgReactionTests {
    @Test("is counted for everybody, and each sees its own")
    func counted() throws {
        try withMessage { server, people, group, message in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            #expect(try bob.react("🥁", to: message, in: group) == info([("🥁", 1)], own: "🥁"))
            for other in [alice, carol] {
                let push = try other.only(
                    .notifMsgReactionsChanged,
                    as: NotifMsgReactionsChanged.self
                )
                #expect(push.map(\.totalCount) == [1])
                #expect(push.first?.counters == info([("🥁", 1)]).counters)
                #expect(push.first?.messageID == message)
                #expect(push.first?.chatID == group)
            }
            let own = try tablet.only(.notifMsgYouReacted, as: NotifMsgYouReacted.self)
            #expect(own.map(\.reactionInfo) == [info([("🥁", 1)], own: "🥁")])
            try bob.expectSilence()

            try alice.react("👍", to: message, in: group)
            #expect(
                try carol.react("👍", to: message, in: group)
                    == info([("👍", 2), ("🥁", 1)], own: "👍")
            )
            let counters: [(Text, Int64)] = [("👍", 2), ("🥁", 1)]
            for (client, emoji) in [(alice, "👍"), (bob, "🥁"), (tablet, "🥁"), (carol, "👍")] {
                let expected = info(counters, own: Text(emoji))
                #expect(try client.shown(group) == expected)
                let page = try client.history(group).messages ?? []
                #expect(try page.last?.reactionInfo?.value(limits: .standard) == expected)
                let asked = try client.call(MsgGetRequest(chatID: group, messageIDs: [message]))
                let got = try asked.messages.first?.reactionInfo?.value(limits: .standard)
                #expect(got == expected)
                let login = try server.reconnect(client).login
                let chat = login.chats.first { $0.id == group }
                #expect(
                    try chat?.lastMessage?.reactionInfo?.value(limits: .standard) == expected
                )
            }
            let dave = try server.signUp("Dave")
            try alice.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [dave.userID],
                    operation: .add,
                    showHistory: true
                )
            )
            let page = try dave.history(group).messages ?? []
            let seen = try page.first { $0.id == message }?.reactionInfo?.value(limits: .standard)
            #expect(seen == info(counters))
        }
    }

    @Test("a second one takes the place of the first; the same one changes nothing")
    func replaced() throws {
        try withMessage { server, people, group, message in
            let (alice, bob) = (people[0], people[1])
            try bob.react("🥁", to: message, in: group)
            #expect(try bob.react("🔥", to: message, in: group) == info([("🔥", 1)], own: "🔥"))
            _ = try alice.takePushes()
            #expect(try bob.react("🔥", to: message, in: group) == info([("🔥", 1)], own: "🔥"))
            try alice.expectSilence()
            #expect(try alice.shown(group) == info([("🔥", 1)]))
        }
    }

    @Test("no kinds beyond the limit, but more of those that are there")
    func kinds() throws {
        try withMessage(limits: ["maxReactionKinds": 2]) { server, people, group, message in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            try alice.react("👍", to: message, in: group)
            try bob.react("🥁", to: message, in: group)
            _ = try alice.takePushes()
            #expect(
                try carol.code(of: carol.reaction("🔥", to: message, in: group))
                    == .errorTooManyLikes
            )
            try alice.expectSilence()
            try carol.react("🥁", to: message, in: group)
            // Nobody else has chosen Alice's old reaction. Her change removes this kind and makes
            // room for a new kind.
            #expect(
                try alice.react("🔥", to: message, in: group)
                    == info([("🥁", 2), ("🔥", 1)], own: "🔥")
            )
        }
    }

    @Test("only emojis, only messages one sees, only chats one is in")
    func refused() throws {
        try withMessage { server, people, group, message in
            let (alice, bob) = (people[0], people[1])
            for text in ["", "a", "1", "👍👍", "hi", " ", "é"] as [Text] {
                #expect(
                    try bob.code(of: bob.reaction(text, to: message, in: group))
                        == .errorMessageLikeUnknownReaction,
                    "\(text)"
                )
            }
            let animated = MsgReactionRequest(
                chatID: group,
                messageID: message,
                reaction: NewReaction(reactionType: "ANIMATED", id: "👍")
            )
            #expect(try bob.code(of: animated) == .errorMessageLikeUnknownReaction)
            for text in ["👍", "❤️", "❤", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "1️⃣", "☺"] as [Text] {
                #expect(try bob.react(text, to: message, in: group).yourReaction == text)
            }
            let long = Text(String(repeating: "👍", count: 17))
            #expect(try bob.code(of: bob.reaction(long, to: message, in: group)) == .protoPayload)
            #expect(
                try bob.code(of: bob.reaction("👍", to: MessageID(1), in: group)) == .notFound
            )
            try bob.delete([message], in: group, forMe: true)
            #expect(try bob.code(of: bob.reaction("👍", to: message, in: group)) == .notFound)
            let stranger = try server.signUp("Stranger")
            for chat in [group, ChatID(-1)] {
                #expect(
                    try stranger.code(of: stranger.reaction("👍", to: message, in: chat))
                        == .chatNotFound
                )
            }
            try alice.react("👍", to: message, in: group)
            let comment = MsgReactionRequest(
                chatID: group,
                messageID: message,
                reaction: NewReaction(id: "👍"),
                postID: message
            )
            #expect(try alice.code(of: comment) == .notFound)
        }
    }

    @Test("who was away sees it with the next login, in big chats too", arguments: [32, 2])
    func away(fanOut: Int) throws {
        try withMessage(limits: ["fanOutMembers": fanOut]) { server, people, group, message in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            var mark = try server.reconnect(carol).login.time
            let before = try #require(try carol.chat(group))
            try bob.react("🥁", to: message, in: group)
            var login = try server.reconnect(carol, since: mark).login
            var chat = try #require(login.chats.first { $0.id == group })
            #expect(try chat.lastMessage?.reactionInfo?.value(limits: .standard).totalCount == 1)
            #expect(chat.newMessages == before.newMessages)
            #expect(chat.lastEventTime == before.lastEventTime)
            mark = login.time
            try bob.cancel(message, in: group)
            login = try server.reconnect(carol, since: mark).login
            chat = try #require(login.chats.first { $0.id == group })
            #expect(chat.lastMessage?.reactionInfo == nil)
            try alice.expectSilence(but: .notifMsgReactionsChanged)
        }
    }

    @Test("an edit carries the counters, to its author the own one too; answers and forwards none")
    func edited() throws {
        try withMessage { server, people, group, message in
            let (alice, bob) = (people[0], people[1])
            try alice.react("👍", to: message, in: group)
            try bob.react("🥁", to: message, in: group)
            _ = try bob.takePushes()
            let edit = MsgEditRequest(chatID: group, messageID: message, text: "BOOM")
            let reply = try alice.call(edit)
            let counters: [(Text, Int64)] = [("👍", 1), ("🥁", 1)]
            #expect(
                try reply.message.reactionInfo?.value(limits: .standard)
                    == info(counters, own: "👍")
            )
            let push = try bob.only(.notifMessage, as: NotifMessage.self).first
            #expect(try push?.message.reactionInfo?.value(limits: .standard) == info(counters))

            let answer = try bob.call(
                MsgSendRequest(
                    chatID: group,
                    message: NewMessage(
                        cid: 7,
                        text: "loud",
                        link: NewLink(type: .reply, messageID: message)
                    )
                )
            ).message
            #expect(answer.reactionInfo == nil)
            #expect(
                try answer.link?.value(limits: .standard).message.reactionInfo == nil
            )
        }
    }

    @Test("nobody reacts any more where one has blocked the other; taking back is possible")
    func blocked() throws {
        try withPair { _, alice, bob, dialog in
            let message = try alice.send("boom", to: dialog, cid: 1).message.id
            try bob.react("👍", to: message, in: dialog)
            try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .block))
            _ = try (alice.takePushes(), bob.takePushes())
            #expect(
                try bob.code(of: bob.reaction("🔥", to: message, in: dialog)) == .chatNotFound
            )
            #expect(
                try alice.code(of: alice.reaction("🔥", to: message, in: dialog)) == .notAllowed
            )
            try alice.expectSilence()
            #expect(try bob.cancel(message, in: dialog) == info([]))
            try alice.call(ContactUpdateRequest(contactID: bob.userID, action: .unblock))
            try bob.react("🔥", to: message, in: dialog)
        }
    }

    @Test("goes with the message, and does not come back")
    func deleted() throws {
        try withMessage { server, people, group, message in
            let (alice, bob) = (people[0], people[1])
            try bob.react("🥁", to: message, in: group)
            try alice.delete([message], in: group)
            #expect(try bob.code(of: bob.reaction("👍", to: message, in: group)) == .notFound)
            let asked = try bob.call(
                MsgGetReactionsRequest(chatID: group, messageIDs: [message])
            )
            #expect(asked.messagesReactions.isEmpty)
            let again = MsgSendRequest(chatID: group, message: NewMessage(cid: 2, text: "boom"))
            #expect(try alice.call(again).message.reactionInfo == nil)
        }
    }
}

@Suite("MSG_CANCEL_REACTION (179)")
struct MsgCancelReactionTests {
    @Test("takes one back, and tells everybody once")
    func takenBack() throws {
        try withMessage { server, people, group, message in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            let tablet = try server.signIn(phoneOf: bob, device: "tablet")
            try alice.react("👍", to: message, in: group)
            try bob.react("👍", to: message, in: group)
            for client in [alice, carol, tablet] { _ = try client.takePushes() }
            #expect(try bob.cancel(message, in: group) == info([("👍", 1)]))
            for other in [alice, carol] {
                let push = try other.only(
                    .notifMsgReactionsChanged,
                    as: NotifMsgReactionsChanged.self
                )
                #expect(push.map(\.totalCount) == [1])
            }
            let own = try tablet.only(.notifMsgYouReacted, as: NotifMsgYouReacted.self)
            #expect(own.map(\.reactionInfo) == [info([("👍", 1)])])

            #expect(try bob.cancel(message, in: group) == info([("👍", 1)]))
            #expect(try carol.cancel(message, in: group) == info([("👍", 1)]))
            for client in [alice, carol, tablet] { try client.expectSilence() }
            #expect(
                try bob.code(of: MsgCancelReactionRequest(chatID: group, messageID: MessageID(1)))
                    == .notFound
            )
            let stranger = try server.signUp("Stranger")
            #expect(
                try stranger.code(
                    of: MsgCancelReactionRequest(chatID: group, messageID: message)
                ) == .chatNotFound
            )
            let comment = MsgCancelReactionRequest(
                chatID: group,
                messageID: message,
                postID: message
            )
            #expect(try alice.code(of: comment) == .notFound)
            #expect(try alice.cancel(message, in: group) == info([]))
            #expect(try bob.chat(group)?.lastMessage?.reactionInfo == nil)
        }
    }
}

@Suite("MSG_GET_REACTIONS (180) and MSG_GET_DETAILED_REACTIONS (181)")
struct MsgGetReactionsTests {
    @Test("of messages one sees, also without any")
    func byID() throws {
        try withMessage { server, people, group, message in
            let (alice, bob) = (people[0], people[1])
            let second = try alice.send("bang", to: group, cid: 3).message.id
            let hidden = try alice.send("crash", to: group, cid: 4).message.id
            try bob.delete([hidden], in: group, forMe: true)
            try bob.react("🥁", to: message, in: group)
            let asked = try bob.call(
                MsgGetReactionsRequest(
                    chatID: group,
                    messageIDs: [hidden, second, MessageID(7), message, message]
                )
            ).messagesReactions
            #expect(asked.pairs.map(\.0) == [message, second])
            #expect(asked[message] == info([("🥁", 1)], own: "🥁"))
            #expect(asked[second] == info([]))
            let elsewhere = MsgGetReactionsRequest(chatID: ChatID(-1), messageIDs: [message])
            #expect(try bob.code(of: elsewhere) == .chatNotFound)
        }
    }

    @Test("who reacted, page by page")
    func pages() throws {
        try withMessage { server, people, group, message in
            for (client, emoji) in zip(people, ["👍", "🥁", "👍"] as [Text]) {
                try client.react(emoji, to: message, in: group)
            }
            let alice = people[0]
            let first = try alice.call(
                MsgGetDetailedReactionsRequest(chatID: group, messageID: message, count: 2)
            )
            #expect(first.reactions.map(\.userID) == [alice.userID, people[1].userID])
            #expect(first.reactions.map(\.reaction) == ["👍", "🥁"])
            #expect(first.reactionInfo == info([("👍", 2), ("🥁", 1)], own: "👍"))
            let second = try alice.call(
                MsgGetDetailedReactionsRequest(
                    chatID: group,
                    messageID: message,
                    count: 2,
                    marker: first.marker
                )
            )
            #expect(second.reactions.map(\.userID) == [people[2].userID])
            #expect(second.marker == nil)
            let all = try alice.call(
                MsgGetDetailedReactionsRequest(chatID: group, messageID: message)
            )
            #expect(all.reactions.count == 3)
            #expect(all.marker == nil)
            for (chat, id, code) in [
                (group, MessageID(1), RequestError.Code.notFound),
                (ChatID(-1), message, .chatNotFound),
            ] {
                let request = MsgGetDetailedReactionsRequest(chatID: chat, messageID: id)
                #expect(try alice.code(of: request) == code)
            }
        }
    }
}

@Suite("CHAT_REACTIONS_SETTINGS_SET (257) and CHAT_REACTIONS_SETTINGS_GET_BY_CHAT_ID (258)")
struct ChatReactionsSettingsTests {
    @Test("switched off, nobody reacts any more, and what is there can be taken back")
    func off() throws {
        try withMessage { server, people, group, message in
            let (alice, bob, carol) = (people[0], people[1], people[2])
            try bob.react("🥁", to: message, in: group)
            for client in people { _ = try client.takePushes() }
            let mark = try server.reconnect(carol).login.time
            let request = ChatReactionsSettingsSetRequest(chatID: group, value: false)
            let settings = try alice.call(request).chatReactionsSettings
            #expect(!settings.isActive)
            #expect(settings.updateTime != nil)
            let pushed = try bob.only(.notifChat, as: NotifChat.self).first?.chat
            #expect(try pushed?.reactions?.value(limits: .standard) == settings)
            let delta = try server.reconnect(carol, since: mark).login
            let chat = try #require(delta.chats.first { $0.id == group })
            #expect(try chat.reactions?.value(limits: .standard) == settings)
            for emoji in ["👍", "🥁"] as [Text] {
                #expect(
                    try carol.code(of: carol.reaction(emoji, to: message, in: group))
                        == .errorReactionsNotAllowed
                )
            }
            #expect(try carol.shown(group) == info([("🥁", 1)]))
            #expect(try bob.cancel(message, in: group) == info([]))
            _ = try (alice.takePushes(), bob.takePushes())
            // Repeating the request changes nothing.
            #expect(try alice.call(request).chatReactionsSettings == settings)
            try bob.expectSilence()
        }
    }

    @Test("some of them, all but some of them, and few on a message")
    func some() throws {
        try withMessage { server, people, group, message in
            let (alice, bob) = (people[0], people[1])
            func set(_ ids: [Text], included: Bool, count: Int64? = nil) throws {
                try alice.call(
                    ChatReactionsSettingsSetRequest(
                        chatID: group,
                        isActive: true,
                        count: count,
                        reactionIDs: ids,
                        included: included
                    )
                )
            }
            try set(["👍", "🥁"], included: true)
            try bob.react("🥁", to: message, in: group)
            #expect(
                try bob.code(of: bob.reaction("🔥", to: message, in: group))
                    == .errorReactionsNotAllowed
            )
            try set(["👍"], included: false)
            try bob.react("🔥", to: message, in: group)
            #expect(
                try bob.code(of: bob.reaction("👍", to: message, in: group))
                    == .errorReactionsNotAllowed
            )
            try set([], included: true, count: 1)
            #expect(
                try alice.code(of: alice.reaction("👍", to: message, in: group))
                    == .errorTooManyLikes
            )
            try bob.react("👍", to: message, in: group)
            #expect(
                try alice.code(
                    of: ChatReactionsSettingsSetRequest(chatID: group, reactionIDs: ["no"])
                ) == .errorMessageLikeUnknownReaction
            )
        }
    }

    @Test("by who may; anybody in the chat reads them")
    func reading() throws {
        try withMessage { server, people, group, message in
            let (alice, bob) = (people[0], people[1])
            let dialog = alice.dialog(with: bob)
            try alice.send("hi", to: dialog, cid: 9)
            let change = ChatReactionsSettingsSetRequest(chatID: group, count: 3)
            #expect(try bob.code(of: change) == .notAllowed)
            let inDialog = ChatReactionsSettingsSetRequest(chatID: dialog, count: 3)
            #expect(try bob.code(of: inDialog) == .notAllowed)
            try alice.call(change)
            let asked = try bob.call(
                ChatReactionsSettingsGetByChatIdRequest(chatIDs: [dialog, ChatID(-1), group])
            ).chatReactionsSettings
            #expect(asked.map(\.chatID) == [dialog, group])
            #expect(asked.map(\.count) == [8, 3])
            #expect(asked.map(\.isActive) == [true, true])
            #expect(asked.first?.updateTime == nil)
            let stranger = try server.signUp("Stranger")
            #expect(try stranger.code(of: change) == .chatNotFound)
        }
    }
}

extension WireClient {
    /// Expects that all pushes that have arrived have this opcode.
    fileprivate func expectSilence(but opcode: Opcode) throws {
        let news = try news()
        #expect(news.allSatisfy { $0.opcode == opcode }, "\(news.map(\.opcode))")
    }
}
