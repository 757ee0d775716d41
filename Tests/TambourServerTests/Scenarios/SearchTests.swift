import TambourProtocol
import TambourSQL
import TambourServer
import TambourTesting
import Testing

extension WireClient {
    /// Returns the texts that CHAT_SEARCH finds, newest first.
    fileprivate func found(_ query: Text, count: Int64? = nil) throws -> [String] {
        try call(ChatSearchRequest(query: query, count: count)).result.map {
            String($0.message.text)
        }
    }

    /// Returns the texts that MSG_SEARCH finds, newest first.
    fileprivate func found(_ query: Text, in chat: ChatID) throws -> [String] {
        try call(MsgSearchRequest(chatID: chat, query: query)).result.map {
            String($0.message.text)
        }
    }

    fileprivate func people(_ query: Text) throws -> [UserID] {
        try call(PublicSearchRequest(query: query)).result.compactMap { $0.contact?.id }
    }
}

@Suite("CHAT_SEARCH (68)")
struct ChatSearchTests {
    @Test("finds words in all chats of the caller, newest first, in Russian and English")
    func everywhere() throws {
        try withPair { server, alice, bob, dialog in
            let group = try alice.createGroup("Лес", with: [bob], cid: 1)
            try bob.send("Ёжик в тумане", to: dialog, cid: 2)
            try alice.send("Hedgehog in the fog, ежи", to: group, cid: 3)
            try bob.send("вежа", to: group, cid: 4)
            #expect(try alice.found("еж") == ["Hedgehog in the fog, ежи", "Ёжик в тумане"])
            #expect(try alice.found("ТУМАН ЁЖИК") == ["Ёжик в тумане"])
            #expect(try alice.found("HEDGE ежи") == ["Hedgehog in the fog, ежи"])
            #expect(try alice.found("нет еж").isEmpty)
            #expect(try alice.found("…").isEmpty)
            let reply = try alice.call(ChatSearchRequest(query: "Ёжик"))
            #expect(reply.result.map(\.chatID) == [dialog])
            #expect(reply.result.first?.highlights == ["ежик"])
            #expect(reply.marker == nil)
        }
    }

    @Test("pages begin below the marker of the one before")
    func pages() throws {
        try withPair { server, alice, bob, dialog in
            let group = try alice.createGroup("G", with: [bob], cid: 1)
            for number in 1...5 {
                try alice.send(
                    ("word \(number)"),
                    to: number % 2 == 0 ? group : dialog,
                    cid: Int64(number + 1)
                )
            }
            var texts: [String] = []
            var marker: MessageID?
            var pages = 0
            repeat {
                let reply = try bob.call(ChatSearchRequest(query: "word", count: 2, marker: marker))
                texts += reply.result.map { String($0.message.text) }
                marker = reply.marker
                pages += 1
            } while marker != nil
            #expect(texts == (1...5).reversed().map { "word \($0)" })
            #expect(pages == 3)
            #expect(try bob.code(of: ChatSearchRequest(query: "word", count: -1)) == .protoPayload)
        }
    }

    @Test("any marker is answered", arguments: [Int64.min, .min + 1, -1, 0, 1, .max])
    func anyMarker(number: Int64) throws {
        try withPair { server, alice, bob, dialog in
            try alice.send("word", to: dialog, cid: 1)
            let marker = MessageID(number)
            let found = number == .max ? 1 : 0
            for isIndexed in [false, true] {
                if isIndexed { try server.indexWords() }
                let everywhere = try alice.call(ChatSearchRequest(query: "word", marker: marker))
                #expect(everywhere.result.count == found)
                let inChat = try alice.call(
                    MsgSearchRequest(chatID: dialog, query: "word", marker: marker)
                )
                #expect(inChat.result.count == found)
            }
        }
    }

    @Test("a reply that would be too long is a shorter page")
    func budget() throws {
        try withPair(limits: ["maxReplyBytes": 2_000]) { server, alice, bob, dialog in
            for number in 1...10 {
                try alice.send(
                    ("word \(number) \(String(repeating: "x", count: 400))"),
                    to: dialog,
                    cid: Int64(number)
                )
            }
            let reply = try alice.call(ChatSearchRequest(query: "word"))
            #expect((1..<10).contains(reply.result.count))
            #expect(reply.marker == reply.result.last?.message.id)
        }
    }

    @Test(
        "strangers, those who left, those who came later and those who hid a message do not find it"
    )
    func hidden() throws {
        try withPair { server, alice, bob, dialog in
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("G", with: [bob], cid: 1)
            try alice.send("secret", to: group, cid: 2)
            let own = try alice.send("secret too", to: dialog, cid: 3)
            #expect(try carol.found("secret").isEmpty)
            try alice.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: [carol.userID],
                    operation: .add,
                    showHistory: false
                )
            )
            #expect(try carol.found("secret").isEmpty)
            try alice.send("secret three", to: group, cid: 4)
            #expect(try carol.found("secret") == ["secret three"])
            #expect(try bob.found("secret").count == 3)
            try bob.delete([own.message.id], in: dialog, forMe: true)
            #expect(try bob.found("secret") == ["secret three", "secret"])
            #expect(try alice.found("secret").count == 3)
            try bob.call(ChatLeaveRequest(chatID: group))
            #expect(try bob.found("secret").isEmpty)
            try alice.call(ChatClearRequest(chatID: group))
            #expect(try alice.found("secret") == ["secret too"])
        }
    }

    @Test("edits and removals count at once, forwards by what they carry")
    func changes() throws {
        try withPair { server, alice, bob, dialog in
            let sent = try alice.send("first words", to: dialog, cid: 1)
            try alice.call(
                MsgEditRequest(chatID: dialog, messageID: sent.message.id, text: "second ones")
            )
            #expect(try bob.found("first").isEmpty)
            #expect(try bob.found("second") == ["second ones"])
            let group = try bob.createGroup("G", with: [], cid: 2)
            let forward = NewLink(type: .forward, messageID: sent.message.id, chatID: dialog)
            try bob.call(
                MsgSendRequest(chatID: group, message: NewMessage(cid: 3, link: forward))
            )
            #expect(try bob.found("second").count == 2)
            try alice.delete([sent.message.id], in: dialog)
            let left = try bob.call(ChatSearchRequest(query: "second")).result
            #expect(left.map(\.chatID) == [group])
        }
    }

    @Test("a long chat is indexed when the engine has time, and is right before and after")
    func indexed() throws {
        try withPair { server, alice, bob, dialog in
            for number in 1...200 {
                try alice.send(
                    (number == 77 ? "needle" : "hay \(number)"),
                    to: dialog,
                    cid: Int64(number)
                )
            }
            #expect(try bob.found("needle") == ["needle"])
            let store = try SQLiteConnection(
                path: "\(server.dataDirectory)/tambour.db",
                mode: .readOnly
            )
            let indexed = try store.prepare("SELECT count(*) FROM search_part")
            let deadline = ContinuousClock.now + .seconds(120)
            var parts: Int64 = 0
            while parts == 0, .now < deadline {
                #expect(try bob.found("needle") == ["needle"])
                if try indexed.step() { parts = indexed.int(0) }
                indexed.reset()
            }
            #expect(parts == 1)
            #expect(try bob.found("needl hay").isEmpty)
            #expect(try bob.found("hay 20", in: dialog) == ["hay 200", "hay 20"])
        }
    }
}

@Suite("MSG_SEARCH (73)")
struct MsgSearchTests {
    @Test("finds in all chats of the caller when none is named")
    func everywhere() throws {
        try withPair { server, alice, bob, dialog in
            let group = try alice.createGroup("G", with: [], cid: 1)
            try alice.send("word in group", to: group, cid: 2)
            try alice.send("word in dialog", to: dialog, cid: 3)
            func found(_ client: WireClient) throws -> [String] {
                try client.call(MsgSearchRequest(query: "word")).result
                    .map { String($0.message.text) }
            }
            #expect(try found(alice) == ["word in dialog", "word in group"])
            #expect(try found(bob) == ["word in dialog"])
        }
    }

    @Test("finds in one chat, and refuses those of others")
    func one() throws {
        try withPair { server, alice, bob, dialog in
            let group = try alice.createGroup("G", with: [], cid: 1)
            try alice.send("word in group", to: group, cid: 2)
            try alice.send("word in dialog", to: dialog, cid: 3)
            #expect(try alice.found("word", in: group) == ["word in group"])
            #expect(try bob.found("wo", in: dialog) == ["word in dialog"])
            for chat in [group, ChatID(-1), alice.dialog(with: bob).nowhere] {
                #expect(
                    try bob.code(of: MsgSearchRequest(chatID: chat, query: "word")) == .chatNotFound
                )
            }
            let carol = try server.signUp("Carol")
            #expect(try carol.found("word", in: carol.dialog(with: bob)).isEmpty)
        }
    }
}

extension ChatID {
    /// The id of the dialog with a user who does not exist.
    fileprivate var nowhere: ChatID { ChatID(rawValue ^ 0x7fff_ffff) }
}

@Suite("CHAT_MEDIA (51)")
struct ChatMediaTests {
    @Test("pages messages by the kinds of their attachments")
    func kinds() throws {
        try withPair { server, alice, bob, dialog in
            func send(_ attach: NewAttach?, cid: Int64) throws -> MessageID {
                try alice.call(
                    MsgSendRequest(
                        chatID: dialog,
                        message: NewMessage(
                            cid: cid,
                            text: "t",
                            attaches: attach.map { [$0] } ?? []
                        )
                    )
                ).message.id
            }
            let share = NewAttach(type: .share, url: "https://example.org/a")
            let place = NewAttach(type: .location, latitude: 1, longitude: 2)
            let shares = try [send(share, cid: 1), send(nil, cid: 2), send(share, cid: 3)]
            let other = try send(place, cid: 4)
            let last = try send(share, cid: 5)
            func media(_ request: ChatMediaRequest) throws -> [MessageID] {
                try bob.call(request).messages.map(\.id)
            }
            let all = [shares[0], shares[2], other, last]
            #expect(try media(ChatMediaRequest(chatID: dialog)) == all)
            #expect(
                try media(ChatMediaRequest(chatID: dialog, attachTypes: [.share], backward: 2))
                    == [shares[2], last]
            )
            #expect(
                try media(
                    ChatMediaRequest(
                        chatID: dialog,
                        messageID: shares[2],
                        attachTypes: [.share, .location],
                        forward: 1,
                        backward: 1
                    )
                ) == [shares[2], other]
            )
            #expect(
                try media(ChatMediaRequest(chatID: dialog, type: "LOCATION", count: 9)) == [other]
            )
            #expect(try media(ChatMediaRequest(chatID: dialog, type: "IMAGE")) == [])
            try alice.delete([last], in: dialog)
            try bob.delete([other], in: dialog, forMe: true)
            #expect(try media(ChatMediaRequest(chatID: dialog)) == [shares[0], shares[2]])
            #expect(
                try bob.code(of: ChatMediaRequest(chatID: dialog, backward: -1)) == .protoPayload
            )
            let forward = NewLink(type: .forward, messageID: shares[0], chatID: dialog)
            let group = try bob.createGroup("G", with: [], cid: 1)
            let sent = try bob.call(
                MsgSendRequest(chatID: group, message: NewMessage(cid: 2, link: forward))
            )
            #expect(try media(ChatMediaRequest(chatID: group)) == [sent.message.id])
            #expect(try alice.code(of: ChatMediaRequest(chatID: group)) == .chatNotFound)
        }
    }
}

@Suite("PUBLIC_SEARCH (60)")
struct PublicSearchTests {
    @Test("finds people by the words of their names, and by a whole phone")
    func people() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let petr = try server.signUp("Пётр")
            let peter = try server.signUp("Peter")
            #expect(try alice.people("петр") == [petr.userID])
            #expect(try alice.people("PET") == [peter.userID])
            #expect(try alice.people("eter").isEmpty)
            #expect(try alice.people("peter петр").isEmpty)
            #expect(try alice.people("alice").isEmpty)
            let own = try peter.call(ContactInfoRequest(contactIDs: [peter.userID])).contacts
            let phone = try #require(own.first?.phone)
            let reply = try alice.call(PublicSearchRequest(query: Text("+\(phone)")))
            #expect(reply.result.map { $0.contact?.phone } == [phone])
            #expect(reply.total == 1)
            #expect(try alice.people(Text("\(phone / 10)")).isEmpty)
            #expect(
                try alice.call(PublicSearchRequest(query: "peter")).result[0].contact?.phone == nil
            )
            try peter.call(ProfileRequest(firstName: "Pierre"))
            #expect(try alice.people("peter").isEmpty)
            #expect(try alice.people("pierre") == [peter.userID])
            try server.block(peter.userID)
            #expect(try alice.people("pierre").isEmpty)
            #expect(try alice.people(Text("+\(phone)")).isEmpty)
        }
    }

    @Test("pages follow each other, up to maxPeopleFound")
    func pages() throws {
        try withServer(limits: ["maxPeopleFound": 4]) { server in
            let alice = try server.signUp("Alice")
            let others = try ["Bob A", "Bob B", "Bob C", "Bob D", "Bob E"].map {
                try server.signUp($0)
            }
            var found: [UserID] = []
            var marker: Int64?
            repeat {
                let reply = try alice.call(
                    PublicSearchRequest(query: "bob", count: 3, marker: marker)
                )
                #expect(reply.total == 4)
                found += reply.result.compactMap { $0.contact?.id }
                marker = reply.marker
            } while marker != nil
            #expect(found == others.prefix(4).map(\.userID))
        }
    }
}

@Suite("MSG_GET_STAT (74) and MSG_SEARCH_TOUCH (72)")
struct MsgGetStatTests {
    @Test("views are the members beside the author who have read it")
    func views() throws {
        try withPair { server, alice, bob, _ in
            let carol = try server.signUp("Carol")
            let group = try alice.createGroup("G", with: [bob, carol], cid: 1)
            let sent = try [2, 3].map { try alice.send("hi", to: group, cid: $0).message.id }
            func views() throws -> [Int64] {
                let ids = sent + [MessageID(1)]
                let stats = try bob.call(MsgGetStatRequest(chatID: group, messageIDs: ids)).stats
                return sent.compactMap { stats[$0]?.views }
            }
            #expect(try views() == [0, 0])
            try bob.call(ChatMarkRequest(type: .readMessage, chatID: group, messageID: sent[0]))
            #expect(try views() == [1, 0])
            try carol.call(ChatMarkRequest(type: .readMessage, chatID: group, messageID: sent[1]))
            #expect(try views() == [2, 1])
            let dave = try server.signUp("Dave")
            #expect(
                try dave.code(of: MsgGetStatRequest(chatID: group, messageIDs: sent))
                    == .chatNotFound
            )
            try bob.call(MsgSearchTouchRequest())
        }
    }
}
