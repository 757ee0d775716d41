import TambourProtocol
import Testing

@testable import TambourClient

/// The state of a chat when its list entry and its messages arrive separately.
@Suite("A chat and its place in the list")
struct ListedChatTests {
    private static let chat = ScriptedServer.dialog

    private static func shown(_ server: ScriptedServer) throws -> [String] {
        try server.store.read { db in
            try Reader(db).history(of: chat, .newest, count: 100).rows.map(\.text)
        }
    }

    private static func unread(_ server: ScriptedServer) throws -> Int? {
        try server.store.read { db in
            try Reader(db).chats(includingHidden: true).first { $0.id == chat }?.unread
        }
    }

    private static func isListed(_ server: ScriptedServer) throws -> Bool {
        try server.store.read { db in
            try Reader(db).chats(includingHidden: true).contains { $0.id == chat }
        }
    }

    @Test(
        "a refusal to describe it says nothing of it: what may pass is asked again",
        arguments: [RequestError.Code.internalError, RequestError.Code.overloaded]
    )
    func refused(code: RequestError.Code) throws {
        try withScriptedServer { server in
            server.login.chats = [ScriptedServer.described(last: ScriptedServer.message(1))]
            server.reconnect()
            #expect(try Self.isListed(server))
            server.push(
                .notifMsgDelete,
                NotifMsgDelete(chatID: Self.chat, messageIDs: [ScriptedServer.message(1).id])
            )
            try server.refuse(.chatInfo, with: code)
            #expect(try Self.isListed(server))
            server.login.chats = []
            server.reconnect()
            try server.answer(
                .chatInfo,
                ChatInfoReply(chats: [ScriptedServer.described(last: nil)])
            )
            #expect(!server.isAsked(.chatInfo))
            #expect(try Self.isListed(server))
            #expect(try Self.shown(server) == [])
        }
    }

    @Test(
        "a message that a restored server got once more is shown once, and one of another device beside it"
    )
    func sentAgain() throws {
        try withScriptedServer { server in
            func mine(_ number: Int64) -> Message {
                var message = ScriptedServer.message(number)
                message.sender = ScriptedServer.me
                message.cid = -5
                return message
            }
            func push(_ message: Message, behind previous: Message?) {
                server.push(
                    .notifMessage,
                    NotifMessage(
                        chatID: Self.chat,
                        message: message,
                        prevMessageID: previous?.id
                    )
                )
            }
            server.login.chats = [ScriptedServer.described(last: ScriptedServer.message(1))]
            server.reconnect()
            push(mine(2), behind: ScriptedServer.message(1))
            push(mine(3), behind: mine(2))
            #expect(try Self.shown(server) == ["message 1", "message 2", "message 3"])
            let ids = try server.store.read { db in
                try Reader(db).history(of: Self.chat, .newest, count: 100).rows.map(\.id)
            }
            #expect(Set(ids).count == 3)

            server.login.resync = [.chats]
            server.reconnect()
            // The push names a previous message that the client does not hold, so the push proves
            // nothing about earlier messages.
            push(mine(5), behind: ScriptedServer.message(4))
            #expect(try Self.shown(server) == ["message 1", "message 5"])
        }
    }

    @Test("who was taken out and let in again, as a task's answer says, keeps nothing of before")
    func joinedAnew() throws {
        try withScriptedServer { server in
            server.login.chats = [ScriptedServer.described(last: ScriptedServer.message(1))]
            server.reconnect()
            let task = UpdateChatTask(chat: Self.chat.rawValue, title: "new")
            _ = try server.wish { try $0.queue(task, $1) }
            #expect(try Self.shown(server) == ["message 1"])
            var chat = ScriptedServer.described(
                last: ScriptedServer.message(5),
                before: ScriptedServer.message(4)
            )
            chat.joinTime = 3_000_000
            try server.answer(.chatUpdate, ChatUpdateReply(chat: chat))
            #expect(try Self.shown(server) == ["message 5"])
        }
    }

    @Test(
        "who was taken out and let in again, before the group was described, keeps nothing of before"
    )
    func joinedAnewUndescribed() throws {
        try withScriptedServer { server in
            let group = ChatID(-5_000_000)
            func described(_ last: Int64, since joined: Int64) -> Chat {
                let message = ScriptedServer.message(last)
                var chat = ScriptedServer.described(
                    last: message,
                    before: ScriptedServer.message(last - 1)
                )
                (chat.id, chat.type, chat.joinTime) = (group, .chat, joined)
                return chat
            }
            func texts() throws -> [String] {
                try server.store.read {
                    try Reader($0).history(of: group, .newest, count: 9).rows.map(\.text)
                }
            }
            var pushed = described(2, since: 0)
            pushed.newMessages = nil
            let message = ScriptedServer.message(2)
            server.push(
                .notifMessage,
                NotifMessage(chatID: group, message: message, chat: pushed)
            )
            let before = try texts()
            #expect(before == ["message 2"])
            // The connection ends before the answer that contains the join time.
            server.login.chats = [described(5, since: 3_000_000)]
            server.reconnect()
            let after = try texts()
            #expect(after == ["message 5"])
        }
    }

    @Test("an answer without it takes it out of the list")
    func gone() throws {
        try withScriptedServer { server in
            server.login.chats = [ScriptedServer.described(last: ScriptedServer.message(1))]
            server.reconnect()
            server.push(
                .notifMsgDelete,
                NotifMsgDelete(chatID: Self.chat, messageIDs: [ScriptedServer.message(1).id])
            )
            try server.answer(.chatInfo, ChatInfoReply(chats: []))
            #expect(try !Self.isListed(server))
        }
    }

    @Test("a page that has a message before its push does not keep it from being counted")
    func pageFirst() throws {
        try withScriptedServer { server in
            let (older, first, second) = (
                ScriptedServer.message(0), ScriptedServer.message(1), ScriptedServer.message(2)
            )
            server.login.chats = [ScriptedServer.described(last: first, before: older)]
            server.reconnect()
            #expect(try Self.unread(server) == 1)
            _ = try server.wish { core, tx in
                try core.look(
                    at: Self.chat,
                    position: nil,
                    isGoingBack: true,
                    rowsOnScreen: 10,
                    visible: [],
                    tx
                )
            }
            try server.answer(.chatHistory, ChatHistoryReply(messages: [older, first, second]))
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: second, prevMessageID: first.id)
            )
            #expect(try Self.unread(server) == 2)
        }
    }

    @Test("an answer to an own message does not take away what was said and pushed since")
    func answerLast() throws {
        try withScriptedServer { server in
            let first = ScriptedServer.message(1)
            server.login.chats = [ScriptedServer.described(last: first)]
            server.reconnect()
            _ = try server.wish { core, tx in
                let task = SendTask(chat: Self.chat.rawValue, cid: 5, text: "message 2")
                return try core.queue(task, tx)
            }
            var (own, third) = (ScriptedServer.message(2), ScriptedServer.message(3))
            (own.sender, own.cid) = (ScriptedServer.me, 5)
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: third, prevMessageID: own.id)
            )
            let reply = MsgSendReply(
                chatID: Self.chat,
                message: own,
                unread: 0,
                mark: own.time,
                prevMessageID: first.id
            )
            try server.answer(.msgSend, reply)
            third.prevMessageID = nil
            // The client cannot know the unread count, so it requests the chat.
            try server.answer(
                .chatInfo,
                ChatInfoReply(chats: [ScriptedServer.described(last: third, before: own)])
            )
            #expect(try Self.unread(server) == 1)
            #expect(try Self.shown(server) == ["message 1", "message 2", "message 3"])
        }
    }

    @Test("an answer to a mark does not take away what was said and pushed since")
    func answerToMarkLast() throws {
        try withScriptedServer { server in
            let (first, second) = (ScriptedServer.message(1), ScriptedServer.message(2))
            server.login.chats = [ScriptedServer.described(last: first)]
            server.reconnect()
            let mark = MarkTask(
                chat: Self.chat.rawValue,
                message: first.id.rawValue,
                isUnread: false
            )
            _ = try server.wish { try $0.queue(mark, $1) }
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: second, prevMessageID: first.id)
            )
            try server.answer(.chatMark, ChatMarkReply(unread: 0, mark: first.time))
            // The client cannot know whether the reply counts the pushed message, so it requests
            // the chat.
            try server.answer(
                .chatInfo,
                ChatInfoReply(chats: [ScriptedServer.described(last: second, before: first)])
            )
            #expect(try Self.unread(server) == 1)
            // No message arrives during the next request, so its reply is complete.
            let next = MarkTask(
                chat: Self.chat.rawValue,
                message: second.id.rawValue,
                isUnread: false
            )
            _ = try server.wish { try $0.queue(next, $1) }
            try server.answer(.chatMark, ChatMarkReply(unread: 0, mark: second.time))
            #expect(!server.isAsked(.chatInfo))
            #expect(try Self.unread(server) == 0)
        }
    }

    @Test("an answer to a reaction does not take away that of somebody else")
    func answerToReactionLast() throws {
        func info(_ names: [String], own: String?) -> ReactionInfo {
            ReactionInfo(
                totalCount: Int64(names.count),
                counters: names.map { ReactionCounter(count: 1, reaction: Text($0)) },
                yourReaction: own.map { Text($0) }
            )
        }
        try withScriptedServer { server in
            let first = ScriptedServer.message(1)
            server.login.chats = [ScriptedServer.described(last: first)]
            server.reconnect()
            let task = ReactTask(
                chat: Self.chat.rawValue,
                message: first.id.rawValue,
                emoji: "👍"
            )
            _ = try server.wish { try $0.queue(task, $1) }
            let both = info(["👍", "🔥"], own: "👍")
            server.push(
                .notifMsgReactionsChanged,
                NotifMsgReactionsChanged(
                    chatID: Self.chat,
                    messageID: first.id,
                    counters: both.counters,
                    totalCount: both.totalCount
                )
            )
            try server.answer(
                .msgReaction,
                MsgReactionReply(reactionInfo: info(["👍"], own: "👍"))
            )
            try server.answer(
                .msgGetReactions,
                MsgGetReactionsReply(messagesReactions: IDMap([(first.id, both)]))
            )
            #expect(!server.isAsked(.msgGetReactions))
            let row = try server.store.read { db in
                try Reader(db).history(of: Self.chat, .newest, count: 1).rows.first
            }
            #expect(row?.reactions.map(\.emoji) == ["👍", "🔥"])
        }
    }

    @Test("a group that somebody has left and been added to again stays, whatever is told first")
    func leftAndAdded() throws {
        try withScriptedServer { server in
            let group = ChatID(-5_000_000)
            func described(since joined: Int64) -> Chat {
                Chat(
                    id: group,
                    type: .chat,
                    status: .active,
                    owner: ScriptedServer.partner,
                    participants: IDMap([(ScriptedServer.me, 1), (ScriptedServer.partner, 1)]),
                    lastEventTime: joined,
                    created: 1,
                    joinTime: joined,
                    modified: joined,
                    newMessages: 0
                )
            }
            server.login.chats = [described(since: 1)]
            server.reconnect()
            _ = try server.wish { try $0.queue(LeaveChatTask(chat: group.rawValue), $1) }
            server.push(.notifChat, NotifChat(chat: described(since: 2_000_000)))
            try server.answer(.chatLeave, ChatLeaveReply())
            let reply = ChatInfoReply(chats: [described(since: 2_000_000)])
            try server.answer(.chatInfo, reply)
            let chats = try server.store.read { try Reader($0).chats(includingHidden: true) }
            #expect(chats.map(\.id) == [group])
        }
    }

    @Test("an answer quotes a stored message as it is now, and not as it was when the answer came")
    func quotes() throws {
        try withScriptedServer { server in
            let first = ScriptedServer.message(1)
            server.login.chats = [ScriptedServer.described(last: first)]
            server.reconnect()
            var answer = ScriptedServer.message(2)
            answer.link = Packed(MessageLink(type: .reply, chatID: Self.chat, message: first))
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: answer, prevMessageID: first.id)
            )
            func expect(_ wanted: String) throws {
                let quotes = try server.store.read { db in
                    try Reader(db).history(of: Self.chat, .newest, count: 9).rows.compactMap(
                        \.quote
                    )
                }
                #expect(quotes.map(\.text) == [wanted])
                #expect(quotes.map(\.message) == [first.id])
            }
            try expect("message 1")
            var edited = first
            edited.text = "something else"
            edited.status = .edited
            server.push(.notifMessage, NotifMessage(chatID: Self.chat, message: edited))
            try expect("something else")
        }
    }

    @Test("a message is read by members alone, not by somebody who has left")
    func readByMembers() throws {
        try withScriptedServer { server in
            let group = ChatID(-5_000_000)
            let others = [ScriptedServer.partner, UserID(9)]
            func described(with others: ArraySlice<UserID>, last: Message?) -> Chat {
                Chat(
                    id: group,
                    type: .chat,
                    status: .active,
                    owner: ScriptedServer.me,
                    participants: IDMap(([ScriptedServer.me] + others).map { ($0, 1) }),
                    lastMessage: last,
                    lastEventTime: last?.time ?? 1,
                    created: 1,
                    joinTime: 1,
                    modified: 1,
                    newMessages: 0
                )
            }
            var mine = ScriptedServer.message(1)
            mine.sender = ScriptedServer.me
            server.login.chats = [described(with: others[...], last: mine)]
            server.reconnect()
            func expect(_ wanted: MessageState) throws {
                let state = try server.store.read { db in
                    try Reader(db).history(of: group, .newest, count: 9).rows.first(where: \.isOwn)?
                        .state
                }
                #expect(state == wanted)
            }
            try expect(.sent)
            // The partner is the author of the event that reports the departure.
            let last = ScriptedServer.message(2)
            server.push(
                .notifMessage,
                NotifMessage(
                    chatID: group,
                    message: last,
                    prevMessageID: mine.id,
                    chat: described(with: others[1...], last: mine)
                )
            )
            try expect(.sent)
            let marks = others.map { user in
                NotifMark(chatID: group, userID: user, mark: last.time, setAsUnread: false)
            }
            server.push(.notifMark, marks[0])
            try expect(.sent)
            server.push(.notifMark, marks[1])
            try expect(.read)
        }
    }

    @Test("a message that comes before it, and is deleted, does not come back with an older answer")
    func deletedMeanwhile() throws {
        try withScriptedServer { server in
            let (first, second) = (ScriptedServer.message(1), ScriptedServer.message(2))
            server.push(
                .notifMessage,
                NotifMessage(chatID: Self.chat, message: second, prevMessageID: first.id)
            )
            #expect(try Self.shown(server) == ["message 2"])
            server.push(
                .notifMsgDelete,
                NotifMsgDelete(chatID: Self.chat, messageIDs: [second.id])
            )
            try server.answer(
                .chatInfo,
                ChatInfoReply(chats: [ScriptedServer.described(last: second, before: first)])
            )
            #expect(try Self.shown(server) == [])
            #expect(try Self.isListed(server))
        }
    }
}
