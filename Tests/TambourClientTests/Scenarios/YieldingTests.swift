import Foundation
import GRDB
import TambourProtocol
import Testing

@testable import TambourClient

/// Two devices of an account make changes at the same time. One device receives the push of the
/// other device's change before the reply to its own change. No pushed change is lost, and the
/// first device ends with the server's state.
@Suite("An answer yields to what was pushed before it")
struct YieldingTests {
    private static let chat = ChatID.dialog(ScriptedServer.me, ScriptedServer.partner)

    /// - Parameter name: The name that the account has given the contact; nil for none.
    private static func user(
        _ id: UserID = ScriptedServer.partner,
        _ name: String? = nil,
        at time: Int64 = 2_000_000,
        isRemoved: Bool = false
    ) -> User {
        User(
            id: id,
            updateTime: time,
            names: [UserName(name: name ?? "Partner", type: name == nil ? "ONEME" : "CUSTOM")],
            status: isRemoved ? "REMOVED" : nil
        )
    }

    private static func change(_ action: String, _ name: String? = nil) -> UpdateContactTask {
        UpdateContactTask(user: ScriptedServer.partner.rawValue, action: action, firstName: name)
    }

    private static func contacts(_ server: ScriptedServer) throws -> [String] {
        try server.store.read { try $0.contacts().map(\.name) }
    }

    // MARK: - Contacts and the profile

    @Test("a contact removed here and added elsewhere behind that stays")
    func addedBehind() throws {
        try withScriptedServer { server in
            _ = try server.wish { try $0.queue(Self.change("ADD", "Here"), $1) }
            try server.answer(
                .contactUpdate,
                ContactUpdateReply(
                    contact: Self.user(ScriptedServer.partner, "Here", at: 1_500_000)
                )
            )
            _ = try server.wish { try $0.queue(Self.change("REMOVE"), $1) }
            server.push(
                .notifContact,
                NotifContact(contact: Self.user(ScriptedServer.partner, "There"))
            )
            try server.answer(
                .contactUpdate,
                ContactUpdateReply(contact: Self.user(at: 1_000_000))
            )
            let asked = try server.asked(SyncMoreRequest.self)
            #expect(asked.map(\.kind) == [.contacts])
            #expect(asked.map(\.since) == [server.login.time])
            try server.answer(
                .syncMore,
                SyncMoreReply(contacts: [Self.user(ScriptedServer.partner, "There")])
            )
            #expect(try Self.contacts(server) == ["There"])
        }
    }

    @Test("a contact added here and removed elsewhere behind that is gone")
    func removedBehind() throws {
        try withScriptedServer { server in
            _ = try server.wish { try $0.queue(Self.change("ADD", "Here"), $1) }
            server.push(.notifContact, NotifContact(contact: Self.user(isRemoved: true)))
            try server.answer(
                .contactUpdate,
                ContactUpdateReply(contact: Self.user(ScriptedServer.partner, "Here"))
            )
            try server.answer(.syncMore, SyncMoreReply(contacts: [Self.user(isRemoved: true)]))
            #expect(try Self.contacts(server) == [])
        }
    }

    @Test("who is online now makes an answer about a contact no older")
    func online() throws {
        try withScriptedServer { server in
            _ = try server.wish { try $0.queue(Self.change("ADD", "Here"), $1) }
            server.push(
                .notifPresence,
                NotifPresence(userID: ScriptedServer.partner, presence: Presence(status: 1))
            )
            try server.answer(
                .contactUpdate,
                ContactUpdateReply(contact: Self.user(ScriptedServer.partner, "Here"))
            )
            #expect(try Self.contacts(server) == ["Here"])
            #expect(!server.isAsked(.syncMore))
        }
    }

    @Test("what is pushed while everything since the login is asked for is newer than the answer")
    func pushedBehindTheQuestion() throws {
        try withScriptedServer { server in
            _ = try server.wish { try $0.queue(Self.change("ADD", "Here"), $1) }
            server.push(
                .notifContact,
                NotifContact(contact: Self.user(ScriptedServer.partner, "There"))
            )
            try server.answer(
                .contactUpdate,
                ContactUpdateReply(contact: Self.user(ScriptedServer.partner, "Here"))
            )
            server.push(.notifContact, NotifContact(contact: Self.user(isRemoved: true)))
            let many = SyncMoreReply(
                contacts: [Self.user(ScriptedServer.partner, "There")],
                upTo: 1_900_000
            )
            try server.answer(.syncMore, many)
            #expect(try Self.contacts(server) == [])
            let next = try server.asked(SyncMoreRequest.self)
            #expect(next.map(\.upTo) == [1_900_000])
        }
    }

    @Test("the account is called as it was renamed last")
    func renamed() throws {
        try withScriptedServer { server in
            let me = ScriptedServer.me
            _ = try server.wish { try $0.queue(UpdateProfileTask(firstName: "Here"), $1) }
            let there = Self.user(me, "There")
            server.push(.notifProfile, NotifProfile(profile: Profile(contact: there)))
            let here = Self.user(me, "Here")
            try server.answer(.profile, ProfileReply(profile: Profile(contact: here)))
            let asked = try server.asked(ContactInfoRequest.self)
            #expect(asked.map(\.contactIDs) == [[me]])
            try server.answer(.contactInfo, ContactInfoReply(contacts: [there]))
            let name = try server.store.read { try $0.person(me)?.name }
            #expect(name == "There")
        }
    }

    // MARK: - Drafts

    private static func drafts(_ server: ScriptedServer) throws -> [String] {
        try server.store.read { try String.fetchAll($0, sql: "SELECT text FROM draft") }
    }

    private static func saved(_ text: Text, at time: Int64) -> NotifDraft {
        let draft = Draft(text: text, time: time, saveTime: time)
        return NotifDraft(chatID: chat, draft: draft)
    }

    private static func everything(_ push: NotifDraft) -> SyncMoreReply {
        SyncMoreReply(drafts: Drafts(chats: ChatDrafts(saved: IDMap([(chat, push.draft)]))))
    }

    @Test("a draft saved elsewhere behind the one that is saved here takes its place")
    func savedBehind() throws {
        try withScriptedServer { server in
            let task = SaveDraftTask(chat: Self.chat.rawValue, text: "here")
            _ = try server.wish { try $0.queue(task, $1) }
            let there = Self.saved("there", at: 2_000_000)
            server.push(.notifDraft, there)
            try server.answer(.draftSave, DraftSaveReply(time: 2_000_000))
            #expect(try Self.drafts(server) == ["here"])
            try server.answer(.syncMore, Self.everything(there))
            #expect(try Self.drafts(server) == ["there"])
        }
    }

    @Test("a draft saved elsewhere stays that is pushed while one is thrown away here")
    func savedBehindDiscard() throws {
        try withScriptedServer { server in
            let task = DiscardDraftTask(chat: Self.chat.rawValue)
            _ = try server.wish { try $0.queue(task, $1) }
            let there = Self.saved("there", at: 2_000_000)
            server.push(.notifDraft, there)
            try server.answer(.draftDiscard, DraftDiscardReply())
            #expect(try Self.drafts(server) == ["there"])
            try server.answer(.syncMore, Self.everything(there))
            #expect(try Self.drafts(server) == ["there"])
        }
    }

    @Test("a draft that the server refuses stays, for all that this device has saved before")
    func refusedDraft() throws {
        try withScriptedServer { server in
            let chat = Self.chat.rawValue
            _ = try server.wish { try $0.queue(SaveDraftTask(chat: chat, text: "first"), $1) }
            try server.answer(.draftSave, DraftSaveReply(time: 2_000_000))
            _ = try server.wish { try $0.queue(SaveDraftTask(chat: chat, text: "longer"), $1) }
            try server.refuse(.draftSave, with: .protoPayload)
            #expect(try Self.drafts(server) == ["longer"])
            #expect(!server.isAsked(.syncMore))
        }
    }

    @Test("a draft that the server refuses while a newer one waits costs nothing")
    func refusedBeforeAnother() throws {
        try withScriptedServer { server in
            let chat = Self.chat.rawValue
            _ = try server.wish { try $0.queue(SaveDraftTask(chat: chat, text: "long"), $1) }
            _ = try server.wish { try $0.queue(SaveDraftTask(chat: chat, text: "short"), $1) }
            try server.refuse(.draftSave, with: .protoPayload)
            try server.answer(.draftSave, DraftSaveReply(time: 2_000_000))
            #expect(try Self.drafts(server) == ["short"])
            #expect(server.logins == 1)
        }
    }

    /// Changes the draft of a chat offline, and returns the times in the discard requests that
    /// follow.
    private static func discarded(
        _ server: ScriptedServer,
        loginBrings drafts: Drafts? = nil,
        offline texts: String?...
    ) throws -> [Int64?] {
        server.loseConnection()
        for text in texts { try write(text, server) }
        server.login.drafts = drafts
        server.passTime()
        server.login.drafts = nil
        return try server.asked(DraftDiscardRequest.self).map(\.time)
    }

    /// Writes a draft; nil discards the current one.
    private static func write(_ text: String?, _ server: ScriptedServer) throws {
        _ = try server.wish { core, tx in
            if let text {
                try core.queue(SaveDraftTask(chat: chat.rawValue, text: text), tx)
            } else {
                try core.queue(DiscardDraftTask(chat: chat.rawValue), tx)
            }
        }
    }

    @Test("a draft that never left goes alone, and what another device saved meanwhile shows")
    func neverLeft() throws {
        try withScriptedServer { server in
            let there = Self.everything(Self.saved("there", at: 900_000)).drafts
            let asked = try Self.discarded(server, loginBrings: there, offline: "here", nil)
            #expect(asked == [1])
            #expect(try Self.drafts(server) == [])
            try server.answer(.draftDiscard, DraftDiscardReply())
            #expect(try Self.drafts(server) == ["there"])
            try Self.write(nil, server)
            #expect(try server.asked(DraftDiscardRequest.self).map(\.time) == [900_000])
        }
    }

    @Test("a draft goes whose throwing away was overtaken by another one, which never left")
    func overtaken() throws {
        try withScriptedServer { server in
            try Self.write("first", server)
            try server.answer(.draftSave, DraftSaveReply(time: 2_000_000))
            let asked = try Self.discarded(server, offline: nil, "second", nil)
            #expect(asked == [2_000_000])
        }
    }

    @Test("a draft of which it is not known whether it was saved goes if it was")
    func lostAnswer() throws {
        try withScriptedServer { server in
            try Self.write("here", server)
            let here = Self.everything(Self.saved("here", at: 900_000)).drafts
            let asked = try Self.discarded(server, loginBrings: here, offline: nil)
            #expect(asked == [900_000])
            try server.answer(.draftDiscard, DraftDiscardReply())
            #expect(try Self.drafts(server) == [])
        }
    }

    @Test("a draft of another device stays that took the place of one whose answer was lost")
    func lostAnswerAndAnother() throws {
        try withScriptedServer { server in
            try Self.write("here", server)
            let there = Self.everything(Self.saved("there", at: 900_000)).drafts
            let asked = try Self.discarded(server, loginBrings: there, offline: nil)
            #expect(asked == [1])
            try server.answer(.draftDiscard, DraftDiscardReply())
            #expect(try Self.drafts(server) == ["there"])
        }
    }

    @Test(
        "a draft that waits to be saved stays when the server was set back, and one that was saved goes"
    )
    func setBack() throws {
        try withScriptedServer { server in
            let other = ChatID.dialog(ScriptedServer.me, UserID(9))
            server.push(
                .notifDraft,
                NotifDraft(chatID: other, draft: Self.saved("saved", at: 1).draft)
            )
            server.loseConnection()
            try Self.write("here", server)
            server.login.resync = [.drafts]
            server.passTime()
            #expect(try Self.drafts(server) == ["here"])
        }
    }

    @Test("a draft that was thrown away goes though a login brings it again, as begun in a dialog")
    func broughtAgain() throws {
        try withScriptedServer { server in
            try Self.write("hi", server)
            try server.answer(.draftSave, DraftSaveReply(time: 900_000))
            let hi = Self.saved("hi", at: 900_000).draft
            let drafts = Drafts(
                chats: ChatDrafts(saved: IDMap([(Self.chat, hi)])),
                users: UserDrafts(discarded: IDMap([(ScriptedServer.partner, 950_000)]))
            )
            #expect(try Self.discarded(server, loginBrings: drafts, offline: nil) == [900_000])
        }
    }

    @Test("a draft that was thrown away goes though the server was set back meanwhile")
    func setBackMeanwhile() throws {
        try withScriptedServer { server in
            try Self.write("hi", server)
            try server.answer(.draftSave, DraftSaveReply(time: 900_000))
            server.login.resync = [.drafts]
            let hi = Self.everything(Self.saved("hi", at: 900_000)).drafts
            #expect(try Self.discarded(server, loginBrings: hi, offline: nil) == [900_000])
        }
    }

    @Test("a draft that the server refuses stays when a login brings again what is known")
    func refusedAndKnown() throws {
        try withScriptedServer { server in
            try Self.write("first", server)
            try server.answer(.draftSave, DraftSaveReply(time: 900_000))
            try Self.write("longer", server)
            try server.refuse(.draftSave, with: .protoPayload)
            server.login.drafts = Self.everything(Self.saved("first", at: 900_000)).drafts
            server.reconnect()
            #expect(try Self.drafts(server) == ["longer"])
        }
    }

    @Test("a draft whose end is given up while it is under way shows again")
    func endGivenUp() throws {
        try withScriptedServer { server in
            server.push(.notifDraft, Self.saved("there", at: 2_000_000))
            let discard = DiscardDraftTask(chat: Self.chat.rawValue)
            let task = try #require(try server.wish { try $0.queue(discard, $1) })
            _ = try server.wish { try $0.cancel(task, $1) }
            let before = try Self.drafts(server)
            server.reconnect()
            let after = try Self.drafts(server)
            #expect((before, after) == ([], ["there"]))
        }
    }

    @Test("a draft whose answer takes too long is asked about before it is thrown away")
    func slowAnswer() throws {
        try withScriptedServer { server in
            try Self.write("here", server)
            try Self.write(nil, server)
            server.login.drafts = Self.everything(Self.saved("here", at: 900_000)).drafts
            // The first step makes the answer overdue, the second reaches the time to reconnect.
            server.passTime()
            server.passTime()
            #expect(server.logins == 2)
            #expect(try server.asked(DraftDiscardRequest.self).map(\.time) == [900_000])
        }
    }

    @Test("a draft that is given up in the queue is as the server has it")
    func draftGivenUp() throws {
        try withScriptedServer { server in
            server.push(.notifDraft, Self.saved("there", at: 2_000_000))
            server.loseConnection()
            let save = SaveDraftTask(chat: Self.chat.rawValue, text: "here")
            let task = try #require(try server.wish { try $0.queue(save, $1) })
            let before = try Self.drafts(server)
            _ = try server.wish { try $0.cancel(task, $1) }
            let after = try Self.drafts(server)
            #expect((before, after) == (["here"], ["there"]))
        }
    }

    // MARK: - Settings

    private static func settings(_ chat: ChatID = chat, until: Int64?) -> IDMap<ChatID, AnyValue> {
        let names = until.map { [(Text("dontDisturbUntil"), AnyValue($0))] } ?? []
        return IDMap([(chat, AnyValue(NameMap(names)))])
    }

    private static func pushed(until: Int64?) -> NotifConfig {
        NotifConfig(config: LoginConfig(hash: "2", chats: settings(until: until)))
    }

    private static func mutedUntil(_ server: ScriptedServer, in chat: ChatID = chat) throws -> Int64
    {
        try server.store.read {
            let select = "SELECT mutedUntil FROM chat WHERE id = ?"
            return try Int64.fetchOne($0, sql: select, arguments: [chat.rawValue]) ?? -2
        }
    }

    private static func mute(_ until: Int64) -> ConfigureChatTask {
        ConfigureChatTask(chat: chat.rawValue, mutedUntil: until)
    }

    private static func dialog(with partner: UserID) -> Chat {
        Chat(
            id: .dialog(ScriptedServer.me, partner),
            type: .dialog,
            status: .active,
            owner: ScriptedServer.me,
            participants: IDMap([(ScriptedServer.me, 1), (partner, 1)]),
            lastEventTime: 1,
            created: 1,
            joinTime: 1,
            modified: 1,
            newMessages: 0
        )
    }

    /// Runs `body` with a client that has the chat in its list.
    private static func withChat(_ body: (ScriptedServer) throws -> Void) throws {
        try withScriptedServer { server in
            server.login.chats = [dialog(with: ScriptedServer.partner)]
            server.reconnect()
            try body(server)
        }
    }

    @Test(
        "a chat is muted as it was set last, wherever that was",
        arguments: [-1, 0] as [Int64]
    )
    func muted(until: Int64) throws {
        try Self.withChat { server in
            _ = try server.wish { try $0.queue(Self.mute(-1), $1) }
            server.push(.notifConfig, Self.pushed(until: 0))
            #expect(try Self.mutedUntil(server) == -1)
            let reply = ConfigReply(hash: "2", user: NameMap([]), chats: Self.settings(until: -1))
            try server.answer(.config, reply)
            let asked = try server.asked(ConfigRequest.self)
            #expect(asked.map { $0.settings?.chats.pairs.map(\.1.isEmpty) } == [[true]])
            let truth = Self.settings(until: until)
            try server.answer(
                .config,
                ConfigReply(hash: "2", user: NameMap([]), chats: truth)
            )
            #expect(try Self.mutedUntil(server) == until)
        }
    }

    /// Makes the client request the chat's settings, and refuses the request as if the user had
    /// left the chat.
    ///
    /// - Returns: The reply to send after the chat has come back.
    private static func leaveBeforeAnswer(_ server: ScriptedServer) throws -> ConfigReply {
        _ = try server.wish { try $0.queue(mute(-1), $1) }
        server.push(.notifConfig, pushed(until: 0))
        let muted = ConfigReply(hash: "2", user: NameMap([]), chats: settings(until: -1))
        try server.answer(.config, muted)
        try server.refuse(.config, with: .chatNotFound)
        return muted
    }

    @Test("a chat that was left before its settings were told has them when it is there again")
    func leftMeanwhile() throws {
        try Self.withChat { server in
            let muted = try Self.leaveBeforeAnswer(server)
            let before = try Self.mutedUntil(server)
            server.push(.notifChat, NotifChat(chat: server.login.chats[0]))
            try server.answer(.config, muted)
            let after = try Self.mutedUntil(server)
            #expect((before, after) == (0, -1))
        }
    }

    @Test("such a chat has them also when it could not be stored at first")
    func leftMeanwhileWithFullDisk() throws {
        try Self.withChat { server in
            let muted = try Self.leaveBeforeAnswer(server)
            server.withFullDisk {
                server.push(.notifChat, NotifChat(chat: server.login.chats[0]))
            }
            server.passTime()
            try server.answer(.config, muted)
            #expect(try Self.mutedUntil(server) == -1)
        }
    }

    @Test("a chat muted offline stays muted when a login brings older settings")
    func mutedOffline() throws {
        try Self.withChat { server in
            server.login.config = LoginConfig(hash: "1", chats: Self.settings(until: 0))
            server.loseConnection()
            _ = try server.wish { try $0.queue(Self.mute(-1), $1) }
            server.passTime()
            #expect(server.isAsked(.config))
            #expect(try Self.mutedUntil(server) == -1)
        }
    }

    @Test("a chat muted offline mutes no other one that a login brings settings of")
    func mutedAlone() throws {
        try Self.withChat { server in
            let other = Self.dialog(with: UserID(9))
            server.loseConnection()
            _ = try server.wish { try $0.queue(Self.mute(-1), $1) }
            server.login.chats.append(other)
            let settings = Self.settings(until: 0).pairs + Self.settings(other.id, until: 5).pairs
            server.login.config = LoginConfig(hash: "1", chats: IDMap(settings))
            server.passTime()
            #expect(try Self.mutedUntil(server) == -1)
            #expect(try Self.mutedUntil(server, in: other.id) == 5)
        }
    }

    @Test("a chat muted and at once unmuted is not muted, whatever is answered in between")
    func changedTwice() throws {
        try Self.withChat { server in
            _ = try server.wish { try $0.queue(Self.mute(-1), $1) }
            _ = try server.wish { try $0.queue(Self.mute(0), $1) }
            let muted = ConfigReply(hash: "2", user: NameMap([]), chats: Self.settings(until: -1))
            try server.answer(.config, muted)
            #expect(try Self.mutedUntil(server) == 0)
        }
    }

    @Test("a setting that is given up before it is sent is as it was")
    func givenUp() throws {
        try Self.withChat { server in
            server.loseConnection()
            let task = try #require(try server.wish { try $0.queue(Self.mute(-1), $1) })
            let before = try Self.mutedUntil(server)
            _ = try server.wish { try $0.cancel(task, $1) }
            let after = try Self.mutedUntil(server)
            #expect((before, after) == (-1, 0))
        }
    }

    @Test("a setting that the server refuses is as it was")
    func refusedSetting() throws {
        try Self.withChat { server in
            _ = try server.wish { try $0.queue(Self.mute(-1), $1) }
            #expect(try Self.mutedUntil(server) == -1)
            try server.refuse(.config, with: .chatNotFound)
            #expect(try Self.mutedUntil(server) == 0)
        }
    }

    @Test("a setting that a login does not name was taken away")
    func takenAway() throws {
        try Self.withChat { server in
            server.push(.notifConfig, Self.pushed(until: -1))
            let before = try Self.mutedUntil(server)
            server.login.config = LoginConfig(hash: "3")
            server.reconnect()
            let after = try Self.mutedUntil(server)
            #expect((before, after) == (-1, 0))
        }
    }

    // MARK: - Messages

    private static func message(_ reactions: ReactionInfo? = nil) -> Message {
        Message(
            id: MessageID(timeMs: 2_000_001, counter: 0),
            time: 2_000_001,
            type: "USER",
            text: "hello",
            sender: ScriptedServer.me,
            cid: 5,
            reactionInfo: reactions.map { Packed($0) }
        )
    }

    private static func shown(_ server: ScriptedServer) throws -> ReactionInfo? {
        let data = try server.store.read { try Data.fetchOne($0, sql: "SELECT data FROM message") }
        return data.flatMap { Message(stored: $0) }?.reactionInfo?.stored
    }

    private static let others = ReactionInfo(
        totalCount: 1,
        counters: [ReactionCounter(count: 1, reaction: "🔥")]
    )

    @Test("a reaction of somebody else stays that was pushed before the own one was taken back")
    func reactionTakenBack() throws {
        try withScriptedServer { server in
            let message = Self.message()
            server.push(.notifMessage, NotifMessage(chatID: Self.chat, message: message))
            let task = CancelReactionTask(
                chat: Self.chat.rawValue,
                message: message.id.rawValue
            )
            _ = try server.wish { try $0.queue(task, $1) }
            server.push(
                .notifMsgReactionsChanged,
                NotifMsgReactionsChanged(
                    chatID: Self.chat,
                    messageID: message.id,
                    counters: Self.others.counters,
                    totalCount: 1
                )
            )
            try server.answer(
                .msgCancelReaction,
                MsgCancelReactionReply(reactionInfo: ReactionInfo())
            )
            let now = IDMap([(message.id, Self.others)])
            try server.answer(
                .msgGetReactions,
                MsgGetReactionsReply(messagesReactions: now)
            )
            #expect(try Self.shown(server) == Self.others)
        }
    }

    @Test("a reaction stays that was pushed before the answer to a message sent a second time")
    func sentTwice() throws {
        try withScriptedServer { server in
            let task = SendTask(chat: Self.chat.rawValue, cid: 5, text: "hello")
            _ = try server.wish { try $0.queue(task, $1) }
            let message = Self.message(Self.others)
            server.push(.notifMessage, NotifMessage(chatID: Self.chat, message: message))
            try server.answer(
                .msgSend,
                MsgSendReply(chatID: Self.chat, message: Self.message())
            )
            let now = IDMap([(message.id, Self.others)])
            try server.answer(.msgGetReactions, MsgGetReactionsReply(messagesReactions: now))
            #expect(try Self.shown(server) == Self.others)
        }
    }
}
