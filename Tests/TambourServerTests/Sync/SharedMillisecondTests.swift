import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

/// Tests that all items that a login or a page orders by time may share one millisecond. The clock
/// stands still in these tests.
@Suite("What shares one millisecond")
struct SharedMillisecondTests {
    private static let capabilities: [[String]?] = [nil, ["sync-more"]]

    private func tablets(_ server: TestServer, of user: WireClient) throws -> [WireClient] {
        try Self.capabilities.enumerated().map { index, capabilities in
            try server.signIn(phoneOf: user, device: "tablet \(index)", capabilities: capabilities)
        }
    }

    /// Returns a message with as much content as the server permits.
    private func large(_ cid: Int64, answering answered: MessageID? = nil) -> NewMessage {
        let element = Element(
            type: Text(String(repeating: "T", count: 512)),
            from: 0,
            length: 1
        )
        var elements = [element]
        while Packed(elements + [element]).bytes.count < Limits.standard.maxMessageContentBytes - 64
        {
            elements.append(element)
        }
        return NewMessage(
            cid: cid,
            text: "x",
            elements: elements,
            link: answered.map { NewLink(type: .reply, messageID: $0) }
        )
    }

    private func laterDrafts(_ range: SyncRange, _ tablet: WireClient) throws -> Set<ChatID> {
        var drafts: Set<ChatID> = []
        var end: Int64? = range.upTo
        while let upTo = end {
            let page = try tablet.call(
                SyncMoreRequest(kind: range.kind, since: range.since, upTo: upTo)
            )
            drafts.formUnion(page.drafts?.chats?.saved.pairs.map(\.0) ?? [])
            end = page.upTo
        }
        return drafts
    }

    @Test("the largest chats do not lock a member out")
    func chats() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, _ in
            let tablets = try tablets(server, of: bob)
            var groups: Set<ChatID> = []
            for number in Int64(1)...14 {
                let group = try alice.createGroup("Group \(number)", with: [bob], cid: number * 10)
                groups.insert(group)
                func send(_ message: NewMessage) throws -> MessageID {
                    try alice.call(MsgSendRequest(chatID: group, message: message)).message.id
                }
                let first = try send(large(number * 10 + 1))
                let pinned = try send(large(number * 10 + 2, answering: first))
                try alice.call(
                    ChatUpdateRequest(chatID: group, pinMessageID: pinned, notifyPin: false)
                )
                _ = try send(large(number * 10 + 3, answering: first))
            }
            for tablet in tablets {
                let login = try server.login(tablet)
                var found = login.chats.map(\.id)
                var marker = login.chatMarker ?? 0
                while marker != 0, found.count < 100 {
                    let page = try tablet.call(ChatsListRequest(marker: marker))
                    try #require(!page.chats.isEmpty)
                    found += page.chats.map(\.id)
                    marker = page.marker
                }
                #expect(Set(found) == groups)
                #expect(found.count == groups.count)
                let request = ChatSearchCommonParticipantsRequest(userIDs: [alice.userID])
                let common = try tablet.call(request)
                #expect(!common.commonChats.isEmpty && common.hasMore)
                for group in groups.prefix(2) {
                    let history = try tablet.call(
                        ChatHistoryRequest(
                            chatID: group,
                            from: clock.now,
                            forward: 100,
                            backward: 100,
                            getChat: true
                        )
                    )
                    #expect(history.chat?.pinnedMessage != nil)
                    #expect(history.messages?.isEmpty == false)
                }
            }
            #expect(server.server.metrics.repliesOverLimit.count == 0)
        }
    }

    @Test("a phone book of the longest names does not lock its owner out")
    func contacts() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, _, _ in
            let tablets = try tablets(server, of: alice)
            let name = String(repeating: "\u{10348}", count: Limits.standard.maxNameUnits / 2)
            let count = 700
            try server.run { tx in
                for number in 1...Int64(count) {
                    _ = try tx.createAccount(
                        phone: 79_000_000_000 + number,
                        firstName: name,
                        lastName: name
                    )
                }
            }
            let book = (1...count).map { number in
                (
                    Text("+\(79_000_000_000 + number)"),
                    PhoneBookEntry(firstName: Text(name), lastName: Text(name))
                )
            }
            let phones = try alice.call(SyncRequest(contactList: NameMap(book))).phones
            #expect(phones.pairs.count == count)
            let people = Set(phones.pairs.map(\.1))
            for tablet in tablets {
                for mark in [-1, clock.now - 1_000] {
                    let contacts = try server.login(tablet, since: mark).contacts
                    #expect(Set(contacts.map(\.id)) == people)
                    #expect(contacts.contains { $0.names.count == 2 })
                }
                let second = try tablet.call(Login2Request(contactsSync: 0))
                #expect(!second.contacts.isEmpty || second.more?.isEmpty == false)
                if second.more == nil { #expect(Set(second.contacts.map(\.id)) == people) }
            }
            let more = try tablets[1].call(
                SyncMoreRequest(kind: .contacts, since: 1, upTo: clock.now, count: 10)
            )
            #expect(Set(more.contacts.map(\.id)) == people)
            #expect(server.server.metrics.repliesOverLimit.count == 0)
        }
    }

    @Test("drafts of one millisecond are refused before they lock their owner out, and then let in")
    func drafts() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, _ in
            let tablets = try tablets(server, of: alice)
            let message = large(1)
            var saved = 0
            var refused = 0
            for number in Int64(1)...24 {
                let group = try alice.createGroup("Group \(number)", with: [bob], cid: number)
                let request = DraftSaveRequest(
                    chatID: group,
                    draft: NewDraft(text: "x", elements: message.elements)
                )
                let reply = try alice.reply(to: alice.send(request))
                if reply.header.command != PacketCommand.ok.rawValue {
                    refused += 1
                    try alice.call(request)
                }
                saved += 1
            }
            #expect(refused > 0 && refused < saved / 2)
            for tablet in tablets {
                var (drafts, mark, rounds) = (Set<ChatID>(), Int64(-1), 0)
                while drafts.count < saved, rounds < 10 {
                    let login = try server.login(tablet, since: mark)
                    drafts.formUnion(login.drafts?.chats?.saved.pairs.map(\.0) ?? [])
                    for range in login.more ?? [] {
                        drafts.formUnion(try laterDrafts(range, tablet))
                    }
                    mark = login.time
                    clock.advance(ms: 60_000)
                    rounds += 1
                }
                #expect(drafts.count == saved)
            }
            #expect(server.server.metrics.repliesOverLimit.count == 0)
        }
    }
}
