import Synchronization
import TambourMessenger
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

/// A long read takes several steps. A page ends where a step ends.
@Suite("Steps of reading")
struct ReadStepTests {
    /// Limits that make each step read only a few rows.
    private static let small: [String: Int] = ["rowsPerReadStep": 4, "itemsPerReadStep": 2]

    @Test("lists of ids are answered as in one step")
    func lists() throws {
        try withPair(limits: Self.small) { server, alice, bob, dialog in
            let ids = try (1...9).map { try alice.send("\($0)", to: dialog, cid: $0).message.id }
            let groups = try (1...7).map {
                try alice.createGroup("Group \($0)", with: [bob], cid: 100 + $0)
            }
            let strangers = (1...5).map { UserID($0) }

            let messages = try bob.call(MsgGetRequest(chatID: dialog, messageIDs: ids + ids))
            #expect(messages.messages.map(\.id) == ids)
            #expect(messages.chatID == dialog)

            let chats = try bob.call(ChatInfoRequest(chatIDs: groups + [ChatID(-1)] + groups))
            #expect(chats.chats.map(\.id) == groups)

            let people = strangers + [alice.userID, bob.userID] + strangers
            let contacts = try bob.call(ContactInfoRequest(contactIDs: people))
            #expect(contacts.contacts.map(\.id) == [alice.userID, bob.userID])
            let presence = try bob.call(ContactPresenceRequest(contactIDs: people))
            #expect(presence.presence.pairs.map(\.0) == [alice.userID, bob.userID].sorted())
        }
    }

    @Test("pages of chats end, and go on until all were there", arguments: [nil, ["sync-more"]])
    func pages(capabilities: [String]?) throws {
        try withPair(limits: Self.small) { server, alice, bob, dialog in
            try alice.send("hello", to: dialog, cid: 1)
            var expected: Set<ChatID> = [dialog]
            for number in Int64(1)...12 {
                expected.insert(
                    try alice.createGroup("Group \(number)", with: [bob], cid: 100 + number)
                )
            }
            let tablet = try server.signIn(
                phoneOf: bob,
                device: "tablet",
                capabilities: capabilities
            )
            let login = try tablet.call(LoginRequest(token: tablet.token, chatsCount: 40))
            var seen = login.chats.map(\.id)
            #expect(seen.count < expected.count)
            var marker = login.chatMarker ?? 0
            while marker > 0 {
                let page = try tablet.call(ChatsListRequest(marker: marker, count: 40))
                #expect(!page.chats.isEmpty)
                seen += page.chats.map(\.id)
                marker = page.marker
            }
            #expect(Set(seen) == expected && seen.count == expected.count)

            var common: [ChatID] = []
            var next: Int64?
            repeat {
                let page = try tablet.call(
                    ChatSearchCommonParticipantsRequest(userIDs: [alice.userID], marker: next)
                )
                common += page.commonChats.map(\.id)
                next = page.marker
            } while next != nil
            #expect(Set(common) == expected.subtracting([dialog]))
        }
    }

    @Test("SYNC_MORE brings every change, the newest first")
    func changes() throws {
        try withPair(limits: Self.small) { _, alice, bob, dialog in
            var expected: Set<ChatID> = [dialog]
            for number in Int64(1)...12 {
                expected.insert(
                    try alice.createGroup("Group \(number)", with: [bob], cid: 100 + number)
                )
            }
            try alice.send("hello", to: dialog, cid: 1)
            var pages: [[Chat]] = []
            var end: Int64? = .max
            while let upTo = end {
                let page = try bob.call(SyncMoreRequest(kind: .chats, since: 1, upTo: upTo))
                pages.append(page.chats)
                end = page.upTo
            }
            #expect(pages.count > 1)
            let seen = pages.flatMap(\.self)
            #expect(Set(seen.map(\.id)) == expected && seen.count == expected.count)
            // The chats within one page may be in any order.
            for (page, older) in zip(pages, pages.dropFirst()) {
                let oldest = try #require(page.map(\.lastEventTime).min())
                #expect(older.allSatisfy { $0.lastEventTime <= oldest })
            }
        }
    }

    @Test("what happens between two steps of a login is in it, or in the next one")
    func betweenSteps() throws {
        let machine = try SyncMachine(
            seed: 1,
            limits: Limits(overrides: Self.small),
            wall: 1_700_000_000_000
        )
        defer { machine.remove() }
        let (users, token, caller) = try machine.signedUp(3)
        let keys = Mutex<[ChatID]>([])
        let mark = machine.safeTime
        for number in 0..<8 {
            machine.world.wallMs += 1
            run(machine) { tx in
                let title = Text("\(number)")
                let chat = try tx.createGroup(title: title, owner: users[1], members: users)
                keys.withLock { $0.append(ChatID(chat.key.rawValue)) }
            }
        }
        machine.world.wallMs += 10
        let time = machine.safeTime

        let request = LoginRequest(token: token, chatsSync: mark)
        var answer = machine.beginLogin(request, from: caller)
        answer = machine.goOn(answer)
        #expect(answer.restOfQuery != nil)
        // The login has already read the two newest changes, in two chats. One of these chats
        // changes again, and the user leaves the other chat. The user also leaves the chat with the
        // oldest change. The login reads this change last.
        let (oldest, newest, second) = keys.withLock { ($0[0], $0[7], $0[6]) }
        run(machine) { tx in
            for left in [oldest, second] {
                if let chat = try tx.chat(left, visibleTo: users[1]) {
                    try tx.remove([caller.userID], from: chat)
                }
            }
            if let chat = try tx.chat(newest, visibleTo: users[1]) {
                try tx.remove([users[2]], from: chat)
            }
        }
        var steps = 2
        while answer.restOfQuery != nil {
            answer = machine.goOn(answer)
            steps += 1
        }
        let first: LoginReply = try machine.reply(answer)
        #expect(steps > 3)
        #expect(first.time <= time)
        #expect(Set(first.chats.map(\.id)).count == 8)
        #expect(first.chats.filter { $0.id == oldest }.map(\.status) == [.removed])
        // The tombstone comes last. A client that applies the chats in order removes the chat.
        #expect(first.chats.filter { $0.id == second }.map(\.status) == [.active, .removed])

        machine.world.wallMs += 10
        let next = try machine.login(
            LoginRequest(token: token, chatsSync: first.time),
            from: caller
        )
        #expect(first.chats.first { $0.id == newest }?.participants.count == 3)
        #expect(next.chats.first { $0.id == newest }?.participants.count == 2)
    }

    @Test("a session that ends between two steps of a query gets no reply to it")
    func sessionEnds() throws {
        try betweenStepsOfQuery { machine, chat, caller, users in
            let request = QueryRequest.chatInfo(
                ChatInfoRequest(chatIDs: (1...9).map { ChatID(-$0) })
            )
            return (
                request, { try $0.closeSessions([caller.sessionID], of: caller.userID) },
                .protoState
            )
        }
    }

    @Test("messages of a chat that the caller has to leave between two steps are not shown")
    func chatIsLeft() throws {
        try betweenStepsOfQuery { machine, chat, caller, users in
            let ids = (1...9).map { MessageID($0) }
            let request = QueryRequest.msgGet(MsgGetRequest(chatID: chat, messageIDs: ids))
            return (
                request,
                { tx in
                    guard let state = try tx.chat(chat, visibleTo: users[1]) else { return }
                    try tx.remove([caller.userID], from: state)
                },
                .chatNotFound
            )
        }
    }

    /// Runs the first step of a query, then `change`, and then the remaining steps. Expects that
    /// the query ends with `refusal`.
    private func betweenStepsOfQuery(
        _ scene: (SyncMachine, ChatID, Caller, [UserID]) -> (
            request: QueryRequest, change: @Sendable (WriteTransaction) throws -> Void,
            refusal: RequestError
        )
    ) throws {
        let machine = try SyncMachine(
            seed: 1,
            limits: Limits(overrides: Self.small),
            wall: 1_700_000_000_000
        )
        defer { machine.remove() }
        let (users, token, caller) = try machine.signedUp(2)
        let made = Mutex<ChatID?>(nil)
        run(machine) { tx in
            let chat = try tx.createGroup(title: Text("a"), owner: users[1], members: users)
            made.withLock { $0 = ChatID(chat.key.rawValue) }
        }
        let chat = try #require(made.withLock { $0 })
        let (request, change, refusal) = scene(machine, chat, caller, users)
        let answer = machine.beginQuery(request, from: caller, token: token)
        #expect(answer.restOfQuery != nil)
        run(machine, change)
        let error = #expect(throws: RequestError.self) {
            let _: PingReply = try machine.reply(answer)
        }
        #expect(error?.code == refusal.code)
    }

    private func run(
        _ machine: SyncMachine,
        _ body: @escaping @Sendable (WriteTransaction) throws -> Void
    ) {
        _ = machine.run([
            Command { tx in
                try body(tx)
                return .done
            }
        ])
    }
}
