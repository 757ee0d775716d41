import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

/// A relation between Bob and Alice. The relation determines what she may learn about him.
private enum Relation: String, CaseIterable, CustomTestStringConvertible {
    case stranger, wasFoundByOther, isAddedByOther
    case foundByPhone, foundByName, foundByLink
    case contact, removedContact, blockedContact, hidesPresence
    case wroteToAlice, isWrittenTo, blockedAlice
    case inGroup, leftGroup, inGroupAliceLeft
    case readsSameChannel, ownsChannel, readsHerChannel, administersChannel
    case forwardedAuthor, contactCard, cardInForward
    case ownsPublicChat, ownedPublicChat, asksToJoin, asksToJoinElsewhere
    case erased

    var testDescription: String { rawValue }

    /// Whether Alice sees Bob's profile.
    var showsProfile: Bool {
        switch self {
        case .stranger, .wasFoundByOther, .isAddedByOther, .inGroupAliceLeft, .readsSameChannel,
            .ownedPublicChat, .asksToJoinElsewhere:
            false
        default: true
        }
    }

    /// Whether Alice sees Bob's presence.
    var showsPresence: Bool {
        switch self {
        case .contact, .wroteToAlice, .isWrittenTo, .inGroup: true
        default: false
        }
    }
}

/// Alice and Bob, who are connected only by one relation, and Carol. Both know Carol.
private struct Pair {
    let server: TestServer
    let alice: WireClient
    let bob: WireClient
    let carol: WireClient

    init(_ server: TestServer) throws {
        self.server = server
        alice = try server.signUp("Alice", isStranger: true)
        bob = try server.signUp("Bob", isStranger: true)
        carol = try server.signUp("Carol", isStranger: true)
        for (one, other) in [(alice, carol), (carol, alice), (bob, carol), (carol, bob)] {
            server.server.messenger.foundPeople.note([other.userID], by: one.userID)
        }
    }

    private func phone(of client: WireClient) throws -> String {
        let own = try client.call(ContactInfoRequest(contactIDs: [client.userID])).contacts
        return "+\(try #require(own.first?.phone))"
    }

    private func add(_ other: WireClient, by client: WireClient) throws {
        let request = ContactCreateRequest(phone: try phone(of: other), firstName: "Friend")
        try client.call(request)
    }

    private func update(_ action: ContactAction, by client: WireClient, _ other: WireClient) throws
    {
        try client.call(ContactUpdateRequest(contactID: other.userID, action: action))
    }

    private func link(of chat: ChatID, by owner: WireClient) throws -> Text {
        let reply = try owner.call(ChatUpdateRequest(chatID: chat, revokePrivateLink: true))
        return try #require(reply.chat.link)
    }

    private func joining(_ chat: ChatID, of owner: WireClient) throws -> ChatJoinRequest {
        ChatJoinRequest(link: try link(of: chat, by: owner))
    }

    /// Makes Carol forward one of Bob's messages to Alice.
    private func forward(_ attaches: [NewAttach] = []) throws {
        let chat = bob.dialog(with: carol)
        let message = NewMessage(cid: 1, text: "news", attaches: attaches)
        let sent = try bob.call(MsgSendRequest(chatID: chat, message: message)).message
        let link = NewLink(type: .forward, messageID: sent.id, chatID: chat)
        let forward = NewMessage(cid: 2, link: link)
        try carol.call(MsgSendRequest(chatID: carol.dialog(with: alice), message: forward))
    }

    func make(_ relation: Relation) throws {
        switch relation {
        case .stranger: break
        case .wasFoundByOther: try bob.meet([phone(of: alice)])
        case .isAddedByOther: try add(alice, by: bob)
        case .foundByPhone: try alice.meet([phone(of: bob)])
        case .foundByName: try alice.call(PublicSearchRequest(query: "Bob"))
        case .foundByLink:
            let group = try bob.createGroup("Private", with: [carol], cid: 1)
            try alice.call(LinkInfoRequest(link: link(of: group, by: bob)))
        case .contact: try add(bob, by: alice)
        case .removedContact:
            try add(bob, by: alice)
            try update(.remove, by: alice, bob)
        case .blockedContact:
            try add(bob, by: alice)
            try update(.block, by: alice, bob)
            try update(.remove, by: alice, bob)
        case .hidesPresence:
            try add(bob, by: alice)
            let hidden = NameMap([("HIDDEN" as Text, AnyValue(true))])
            try bob.call(ConfigRequest(settings: SettingsChange(user: hidden)))
        case .wroteToAlice: try bob.send("hello", to: bob.dialog(with: alice), cid: 1)
        case .isWrittenTo: try alice.send("hello", to: alice.dialog(with: bob), cid: 1)
        case .blockedAlice:
            try bob.send("hello", to: bob.dialog(with: alice), cid: 1)
            try update(.block, by: bob, alice)
        case .inGroup: _ = try carol.createGroup("Both", with: [alice, bob], cid: 1)
        case .leftGroup, .inGroupAliceLeft:
            let group = try carol.createGroup("Both", with: [alice, bob], cid: 1)
            let leaving = relation == .leftGroup ? bob : alice
            try leaving.call(ChatLeaveRequest(chatID: group))
        case .readsSameChannel:
            _ = try carol.createGroup("News", with: [alice, bob], type: "CHANNEL", cid: 1)
        case .ownsChannel:
            let channel = try bob.createGroup("News", with: [carol], type: "CHANNEL", cid: 1)
            try alice.call(joining(channel, of: bob))
            // Alice has found Bob through the channel's link. Only the channel itself may make Bob
            // visible to her. So note many other users, and the server forgets that she found him.
            let many = (1...400).map { UserID($0) }
            server.server.messenger.foundPeople.note(many, by: alice.userID)
        case .readsHerChannel:
            let channel = try alice.createGroup("News", with: [carol], type: "CHANNEL", cid: 1)
            try bob.call(joining(channel, of: alice))
        case .administersChannel:
            let others = [alice, bob]
            let channel = try carol.createGroup("News", with: others, type: "CHANNEL", cid: 1)
            try carol.call(
                ChatMembersUpdateRequest(
                    chatID: channel,
                    userIDs: [bob.userID],
                    operation: .add,
                    type: .admin,
                    permissions: 256
                )
            )
        case .forwardedAuthor: try forward()
        case .contactCard, .cardInForward:
            let card = NewAttach(type: .contact, contactID: bob.userID)
            let first = relation == .contactCard ? alice : bob
            let chat = carol.dialog(with: first)
            let message = NewMessage(cid: 1, attaches: [card])
            let sent = try carol.call(MsgSendRequest(chatID: chat, message: message)).message
            if relation == .cardInForward {
                let link = NewLink(type: .forward, messageID: sent.id, chatID: chat)
                let forward = NewMessage(cid: 2, link: link)
                let saved = carol.dialog(with: alice)
                try carol.call(MsgSendRequest(chatID: saved, message: forward))
            }
        case .ownsPublicChat, .ownedPublicChat:
            let group = try bob.createGroup("Open", with: [carol], cid: 1)
            try bob.call(ChatUpdateRequest(chatID: group, access: .public, link: "open_house"))
            if relation == .ownedPublicChat {
                try bob.call(ChatUpdateRequest(chatID: group, access: .private))
            }
        case .asksToJoin, .asksToJoinElsewhere:
            let owner = relation == .asksToJoin ? alice : carol
            let group = try owner.createGroup(
                "Ask",
                with: [owner === alice ? carol : alice],
                cid: 1
            )
            try owner.ask(for: group)
            try bob.call(joining(group, of: owner))
        case .erased:
            try add(bob, by: alice)
            _ = try server.admin(.erase(user: "\(bob.userID)", isConfirmed: true))
        }
    }

    // MARK: - Alice's view

    func profile(of user: UserID) throws -> [UserID] {
        try alice.call(ContactInfoRequest(contactIDs: [user])).contacts.map(\.id)
    }

    func presence(of user: UserID) throws -> [UserID] {
        let reply = try alice.call(ContactPresenceRequest(contactIDs: [user]))
        return reply.presence.pairs.map(\.0)
    }

    /// Sends every kind of request that the server refuses if the caller does not see the named
    /// user.
    ///
    /// - Returns: The refusal of each request; nil if the request succeeded.
    func doors(of user: UserID, cid: Int64) throws -> [String: RequestError?] {
        func refusal(_ request: some WireRequest) throws -> RequestError? {
            let number = try alice.send(request)
            let packet = try alice.reply(to: number)
            guard packet.header.command == PacketCommand.error.rawValue else { return nil }
            let error = try ErrorReply.decode(packet.payload, limits: .standard)
            return error.error == "user.not.found" ? .userNotFound : .internalError
        }
        let card = NewAttach(type: .contact, contactID: user)
        let control = NewAttach(
            type: .control,
            title: "Trap",
            event: "new",
            userIDs: [user]
        )
        let own = try alice.createGroup("Own", with: [], cid: cid)
        let add = ChatMembersUpdateRequest(chatID: own, userIDs: [user], operation: .add)
        return [
            "CONTACT_PHOTOS": try refusal(ContactPhotosRequest(contactID: user)),
            "card": try refusal(
                MsgSendRequest(
                    chatID: alice.dialog(with: alice),
                    message: NewMessage(cid: cid + 1, attaches: [card])
                )
            ),
            "new group": try refusal(
                MsgSendRequest(message: NewMessage(cid: cid + 2, attaches: [control]))
            ),
            "CHAT_MEMBERS_UPDATE": try refusal(add),
            "CONTACT_UPDATE": try refusal(ContactUpdateRequest(contactID: user, action: .add)),
        ]
    }

    /// Returns two sets: the users that Alice's payloads name, and the users whose presence the
    /// payloads contain.
    func met() throws -> (people: Set<UserID>, present: Set<UserID>) {
        let login = try server.reconnect(alice).login
        var people = Set(login.contacts.map(\.id))
        for chat in login.chats {
            people.formUnion(chat.participants.pairs.map(\.0))
            people.formUnion(chat.admins ?? [])
            people.insert(chat.owner)
            for message in try alice.history(chat.id).messages ?? [] {
                if let sender = message.sender { people.insert(sender) }
                if let author = message.link?.stored?.message.sender { people.insert(author) }
                for attach in message.attaches.stored ?? [] {
                    people.formUnion(attach.userIDs ?? [])
                    if let user = attach.contactID ?? attach.userID { people.insert(user) }
                }
            }
            for type in [MemberType.member, .joinRequest] {
                let number = try alice.send(ChatMembersRequest(chatID: chat.id, type: type))
                let packet = try alice.reply(to: number)
                guard packet.header.command != PacketCommand.error.rawValue else { continue }
                let page = try ChatMembersReply.decode(packet.payload, limits: .standard)
                people.formUnion(page.members.map(\.contact.id))
            }
        }
        let blocked = try alice.call(ContactListRequest(status: .blocked)).contacts
        people.formUnion(blocked.map(\.id))
        let second = try alice.call(Login2Request(needProfile: true, contactsSync: 0))
        people.formUnion(second.contacts.map(\.id))
        people.formUnion(try alice.call(ChatSuggestRequest()).chats.map(\.owner))
        return (people, Set(login.presence.pairs.map(\.0)))
    }
}

@Suite("Who sees whom")
struct SightTests {
    private func with(_ relation: Relation, _ body: (Pair) throws -> Void) throws {
        try withServer { server in
            let pair = try Pair(server)
            try pair.make(relation)
            try body(pair)
        }
    }

    private static let nobody = UserID(1 << 42 - 7)

    @Test("profile and presence go by the relation alone", arguments: Relation.allCases)
    fileprivate func shown(relation: Relation) throws {
        try with(relation) { pair in
            let bob = pair.bob.userID
            let (profile, presence) = (try pair.profile(of: bob), try pair.presence(of: bob))
            #expect(profile == (relation.showsProfile ? [bob] : []))
            #expect(presence == (relation.showsPresence ? [bob] : []))
            #expect(try pair.profile(of: Self.nobody) == [])
            #expect(try pair.presence(of: Self.nobody) == [])
        }
    }

    @Test(
        "what would open a door is refused to a stranger as for an unknown id",
        arguments: Relation.allCases
    )
    fileprivate func doors(relation: Relation) throws {
        try with(relation) { pair in
            let unknown = try pair.doors(of: Self.nobody, cid: 100)
            #expect(unknown.values.allSatisfy { $0 == .userNotFound }, "\(unknown)")
            let answers = try pair.doors(of: pair.bob.userID, cid: 200)
            for (door, refusal) in answers {
                let isOpen = relation.showsProfile && relation != .erased
                // Alice cannot invite a user who has blocked her.
                let isBlocked = relation == .blockedAlice && door.contains("_MEMBERS_")
                let isTrap = relation == .blockedAlice && door == "new group"
                let expected = isOpen && !isBlocked && !isTrap ? nil : RequestError.userNotFound
                #expect(refusal == expected, "\(door)")
            }
        }
    }

    @Test("everybody whom a client meets is there when it asks", arguments: Relation.allCases)
    fileprivate func met(relation: Relation) throws {
        try with(relation) { pair in
            let (people, present) = try pair.met()
            for user in people { #expect(try pair.profile(of: user) == [user]) }
            for user in present { #expect(try pair.presence(of: user) == [user]) }
            if !relation.showsProfile { #expect(!people.contains(pair.bob.userID)) }
        }
    }

    @Test("what was found is forgotten by a restart, and a contact stays")
    func restart() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let first = try TestServer(dataDirectory: directory)
        let alice = try first.signUp("Alice")
        let bob = try first.signUp("Bob")
        let carol = try first.signUp("Carol")
        try alice.call(ContactUpdateRequest(contactID: carol.userID, action: .add))
        first.stop()
        let again = try TestServer(dataDirectory: directory)
        defer { again.stop() }
        let client = try again.reconnect(alice).client
        let asked = ContactInfoRequest(contactIDs: [bob.userID, carol.userID])
        #expect(try client.call(asked).contacts.map(\.id) == [carol.userID])
    }

    @Test("who walks through ids finds nobody, and pays for each")
    func scan() throws {
        try withServer(limits: ["peopleBurst": 2_000, "peoplePerMinute": 1]) { server in
            let mallory = try server.signUp("Mallory", isStranger: true)
            let others = try (0..<5).map { try server.signUp("User \($0)") }
            let first = others[0].userID.rawValue
            for _ in 0..<2 {
                let ids = (0..<999).map { UserID(first + $0) }
                #expect(try mallory.call(ContactInfoRequest(contactIDs: ids)).contacts.isEmpty)
            }
            let next = ContactInfoRequest(contactIDs: others.map(\.userID))
            #expect(try mallory.code(of: next) == .tooManyRequests)
            #expect(try others[0].call(next).contacts.count == 5)
        }
    }
}
