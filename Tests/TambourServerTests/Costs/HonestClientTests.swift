import TambourMessenger
import TambourNet
import TambourProtocol
import Testing

/// Plays the busiest minutes of honest clients with the specified rate limits. No request may be
/// refused.
@Suite("What honest clients ask for")
struct HonestClientTests {
    /// The buckets of one account, and a clock.
    private struct Account {
        let clock = ManualClock()
        let limits = Limits.standard
        private let rates: RateLimiter
        private let user = RateLimiter.Subject.user(UserID(1))

        init() { rates = RateLimiter(limits: .standard, wallMs: clock.environment.wallMs) }

        func ask(_ request: SessionRequest) { pay(RateRules.charges(for: request, limits: limits)) }
        func ask(_ request: QueryRequest) { pay(RateRules.charges(for: request, limits: limits)) }
        func ask(_ request: CommandRequest) { pay(RateRules.charges(for: request, limits: limits)) }
        func login() { #expect(rates.take(from: .login, of: user) == nil) }

        /// Sends a query, and pays for the rows that it reads.
        func ask(_ request: QueryRequest, reading rows: Int) {
            ask(request)
            let units = RateRules.units(forReading: rows, by: request, limits: limits)
            rates.charge(units, to: .read, of: user)
        }

        /// Pays for a reply of this many bytes.
        func receive(_ bytes: Int) {
            let units = RateRules.units(forReplyOf: bytes, limits: limits)
            rates.charge(units, to: .read, of: user)
        }

        private func pay(_ charges: RateRules.Charges) {
            for charge in [charges.first, charges.second].compactMap(\.self) {
                let wait = rates.take(charge.units, from: charge.bucket, of: user)
                #expect(wait == nil, "\(charge)")
            }
        }
    }

    private let chat = ChatID(7)
    private let limits = Limits.standard
    /// The size of a message in a page, in bytes. The message has a few lines of text, formatting
    /// and a picture.
    private static let messageBytes = 500
    private func users(_ count: Int) -> [UserID] { (1...Int64(count)).map { UserID($0) } }

    private func send(_ cid: Int64) -> CommandRequest {
        .msgSend(MsgSendRequest(chatID: chat, message: NewMessage(cid: cid, text: "a")))
    }

    @Test("a stock client starts on five devices, and each starts again and again on a bad network")
    func starting() {
        let account = Account()
        for _ in 0..<10 {
            for _ in 0..<5 {
                account.login()
                account.receive(limits.maxReplyBytes)
                account.ask(.ping(PingRequest(interactive: true)))
                account.ask(.log(LogRequest(events: (0..<20).map { _ in LogEvent() })))
                account.ask(.config(ConfigRequest(pushToken: "token")))
                // Each chat has the maximum number of members for which a chat list still shows
                // read marks.
                account.ask(.chatsList(ChatsListRequest(count: 100)), reading: 4_500)
                account.ask(.foldersGet(FoldersGetRequest()), reading: 31)
                let people = users(50)
                account.ask(.contactInfo(ContactInfoRequest(contactIDs: people)), reading: 150)
                account.ask(
                    .contactPresence(ContactPresenceRequest(contactIDs: people)),
                    reading: 200
                )
                account.ask(.sessionsInfo(SessionsInfoRequest()), reading: 5)
                for _ in 0..<5 {
                    account.ask(.chatHistory(ChatHistoryRequest(chatID: chat, backward: 30)))
                    account.receive(30 * Self.messageBytes)
                }
            }
            account.clock.advance(ms: 15_000)
        }
    }

    @Test("somebody scrolls through a long history, ten pages of 200 a second, for minutes")
    func scrolling() {
        let account = Account()
        for _ in 0..<3_000 {
            // Every message is a reply and has a reaction.
            account.ask(
                .chatHistory(ChatHistoryRequest(chatID: chat, backward: 200)),
                reading: 620
            )
            account.receive(200 * Self.messageBytes)
            account.clock.advance(ms: 100)
        }
    }

    @Test("a script takes 200,000 messages of history as fast as it can")
    func export() {
        let account = Account()
        for _ in 0..<1_000 {
            // Every message is a reply and has a reaction.
            account.ask(
                .chatHistory(ChatHistoryRequest(chatID: chat, backward: 200)),
                reading: 620
            )
            account.receive(200 * Self.messageBytes)
            account.clock.advance(ms: 1)
        }
    }

    @Test(
        "the owner of a channel of 20,000 readers scrolls through it and looks at the numbers of each page"
    )
    func readers() {
        let account = Account()
        let ids = (1...50).map { MessageID($0) }
        for _ in 0..<300 {
            account.ask(
                .chatHistory(ChatHistoryRequest(chatID: chat, backward: 50)),
                reading: 160
            )
            account.receive(50 * Self.messageBytes)
            account.ask(
                .msgGetStat(MsgGetStatRequest(chatID: chat, messageIDs: ids)),
                reading: 150 + 20_000 / 8
            )
            account.clock.advance(ms: 500)
        }
    }

    @Test("each of twenty messages a second is marked as read and receipted, for an hour")
    func busyGroup() {
        let account = Account()
        for _ in 0..<72_000 {
            account.ask(.chatMark(ChatMarkRequest(type: .readMessage, chatID: chat)))
            account.ask(.notifMessage(NotifMessageRequest(chatID: chat)))
            account.ask(.msgDelivery(MsgDeliveryRequest()))
            account.clock.advance(ms: 50)
        }
    }

    @Test("somebody types in twelve chats at once, for an hour")
    func typing() {
        let account = Account()
        for _ in 0..<1_200 {
            for _ in 0..<12 { account.ask(.msgTyping(MsgTypingRequest(chatID: chat))) }
            account.clock.advance(ms: 3_000)
        }
    }

    @Test("an outbox of 300 is emptied after a day without a network, with its reactions and marks")
    func outbox() {
        let account = Account()
        account.login()
        for cid in 1...300 { account.ask(send(Int64(cid))) }
        for _ in 0..<200 {
            account.ask(
                .msgReaction(
                    MsgReactionRequest(
                        chatID: chat,
                        messageID: MessageID(1),
                        reaction: NewReaction(id: "👍")
                    )
                )
            )
            account.ask(.chatMark(ChatMarkRequest(type: .readMessage, chatID: chat)))
            account.ask(.draftSave(DraftSaveRequest(chatID: chat, text: "a")))
        }
        account.ask(
            .msgDelete(
                MsgDeleteRequest(chatID: chat, messageIDs: (1...1_000).map { MessageID($0) })
            )
        )
    }

    @Test("a client catches up with a thousand chats, two pages of each, and everybody in them")
    func catchingUp() {
        let account = Account()
        account.login()
        for _ in 0..<20 {
            account.ask(.syncMore(SyncMoreRequest(kind: .chats, since: 1, upTo: 2, count: 50)))
        }
        for _ in 0..<1_000 {
            account.ask(.chatChanges(ChatChangesRequest(chatID: chat, since: 1)), reading: 420)
            // Every message is a reply and has a reaction.
            account.ask(
                .chatHistory(ChatHistoryRequest(chatID: chat, backward: 200)),
                reading: 620
            )
            account.receive(200 * Self.messageBytes)
            account.ask(.contactInfo(ContactInfoRequest(contactIDs: [UserID(1)])), reading: 3)
            account.ask(.chatMark(ChatMarkRequest(type: .readMessage, chatID: chat)))
            account.clock.advance(ms: 30)
        }
    }

    @Test("a phone book of 5,000 numbers is brought over, and one of 500 by hand")
    func phoneBook() {
        let account = Account()
        let book = (0..<5_000).map { (Text("+7999\($0)"), PhoneBookEntry()) }
        account.ask(.sync(SyncRequest(contactList: NameMap(book))))
        account.ask(.contactInfo(ContactInfoRequest(contactIDs: users(1_000))))
        account.ask(.contactPresence(ContactPresenceRequest(contactIDs: users(1_000))))
        for user in users(500) {
            account.ask(.contactUpdate(ContactUpdateRequest(contactID: user, action: .add)))
        }
    }

    @Test("a bot answers two messages a second for an hour, shown as typing before each")
    func bot() {
        let account = Account()
        account.login()
        for cid in 1...7_200 {
            account.ask(.msgGet(MsgGetRequest(chatID: chat, messageIDs: [MessageID(1)])))
            account.ask(.chatMark(ChatMarkRequest(type: .readMessage, chatID: chat)))
            account.ask(.msgTyping(MsgTypingRequest(chatID: chat)))
            account.ask(send(Int64(cid)))
            account.clock.advance(ms: 500)
        }
    }

    @Test("an administrator makes a group of a community, and clears it of spammers")
    func administrator() {
        let account = Account()
        let control = NewAttach(type: .control, event: "new", userIDs: users(300))
        account.ask(.msgSend(MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))))
        for _ in 0..<20 {
            account.ask(.chatUpdate(ChatUpdateRequest(chatID: chat, theme: "a")))
        }
        func update(_ operation: MemberOperation, _ count: Int) {
            account.ask(
                .chatMembersUpdate(
                    ChatMembersUpdateRequest(
                        chatID: chat,
                        userIDs: users(count),
                        operation: operation
                    )
                )
            )
        }
        update(.add, 200)
        update(.remove, 250)
        for page in 0..<100 {
            account.ask(
                .chatMembers(
                    ChatMembersRequest(chatID: chat, marker: Int64(page * 200), count: 200)
                )
            )
        }
    }

    @Test("a device brings over all entities of an account, and two days of values")
    func entities() {
        let account = Account()
        let operations = [ObjectOperation](
            repeating: ObjectOperation(
                .create(.note, below: nil, [:], opID: 1)
            ),
            count: 200
        )
        for _ in 0..<100 {
            account.ask(.objPush(ObjPushRequest(clientNow: 1, ops: operations)))
            account.clock.advance(ms: 100)
        }
        for _ in 0..<100 { account.ask(.objPull(ObjPullRequest(count: 1_000))) }
    }

    // MARK: - Before login

    @Test("an office of a thousand behind one address reconnects after a power cut")
    func office() {
        let clock = ManualClock()
        let rates = RateLimiter(limits: .standard, wallMs: clock.environment.wallMs)
        let address = RateLimiter.Subject.address(PeerAddress("10.0.0.1"))
        for _ in 0..<1_000 {
            var connection = RateLimiter.OwnBucket()
            // Each connection pays for SESSION_INIT and a PING; LOGIN is free.
            for _ in 0..<2 {
                #expect(rates.take(from: .connection, kept: &connection) == nil)
                #expect(rates.take(from: .address, of: address) == nil)
            }
        }
    }

    @Test("thirty people behind one address look at a QR code until it is stale")
    func codes() {
        let clock = ManualClock()
        let limits = Limits.standard
        let rates = RateLimiter(limits: limits, wallMs: clock.environment.wallMs)
        let address = RateLimiter.Subject.address(PeerAddress("10.0.0.1"))
        var connections = [RateLimiter.OwnBucket](repeating: .init(), count: 30)
        for _ in 0..<(limits.qrLifetimeMs / limits.qrPollingIntervalMs) {
            for index in connections.indices {
                // Each connection pays for GET_QR_STATUS and at most one PING.
                for _ in 0..<2 {
                    #expect(rates.take(from: .connection, kept: &connections[index]) == nil)
                    #expect(rates.take(from: .address, of: address) == nil)
                }
            }
            clock.advance(ms: Int64(limits.qrPollingIntervalMs))
        }
    }
}
