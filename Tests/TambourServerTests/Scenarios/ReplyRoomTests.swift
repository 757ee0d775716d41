import TambourProtocol
import TambourTesting
import Testing

/// Tests replies whose lists grow with the actions of users. Such a reply contains as many items as
/// fit. The server never drops a reply because of its size.
@Suite("Room in replies")
struct ReplyRoomTests {
    /// Room for about five users.
    private static let limits = ["maxReplyBytes": 1_500]

    private func withCrowd(
        _ body: (TestServer, WireClient, [WireClient]) throws -> Void
    ) throws {
        try withPair(limits: Self.limits) { server, alice, bob, _ in
            let others = try ["Carol", "Dave", "Eve", "Frank", "Grace", "Heidi", "Ivan"].map {
                try server.signUp($0)
            }
            try body(server, alice, [bob] + others)
        }
    }

    @Test("CONTACT_INFO holds the first users that fit")
    func contactInfo() throws {
        try withCrowd { _, alice, others in
            let ids = others.map(\.userID)
            let found = try alice.call(ContactInfoRequest(contactIDs: ids)).contacts
            #expect((1..<ids.count).contains(found.count))
            #expect(found.map(\.id) == Array(ids.prefix(found.count)))
            let one = try alice.call(ContactInfoRequest(contactIDs: [ids[7]])).contacts
            #expect(one.map(\.id) == [ids[7]])
        }
    }

    @Test("CONTACT_LIST goes on where a full page ends")
    func contactList() throws {
        try withCrowd { _, alice, others in
            for other in others {
                try alice.call(ContactUpdateRequest(contactID: other.userID, action: .block))
            }
            var found: [UserID] = []
            var marker: Int64?
            var pages = 0
            repeat {
                let page = try alice.call(ContactListRequest(status: .blocked, from: marker))
                found += page.contacts.map(\.id)
                marker = page.marker
                pages += 1
            } while marker != nil && pages < 20
            #expect(found == others.map(\.userID).sorted())
            #expect(pages > 1)
        }
    }

    @Test("SYNC names everybody it found, and brings the contacts that fit")
    func phoneBook() throws {
        try withCrowd { _, alice, others in
            let book = NameMap(
                try others.map { other in
                    let own = try other.call(ContactInfoRequest(contactIDs: [other.userID]))
                    let phone = try #require(own.contacts.first?.phone)
                    return (Text("+\(phone)"), PhoneBookEntry())
                }
            )
            let reply = try alice.call(SyncRequest(contactList: book))
            #expect(reply.phones.pairs.map(\.1) == others.map(\.userID))
            #expect((1..<others.count).contains(reply.contacts.count))
        }
    }

    @Test("LOGIN2 says which contacts it has left out", arguments: [Int64(0), 1])
    func login2(since mark: Int64) throws {
        try withCrowd { server, alice, others in
            for other in others {
                try alice.call(ContactUpdateRequest(contactID: other.userID, action: .add))
            }
            let (tablet, _) = try server.reconnect(alice, capabilities: ["sync-more"])
            let reply = try tablet.call(Login2Request(contactsSync: mark))
            var found = reply.contacts.map(\.id)
            #expect((0..<others.count).contains(found.count))
            let range = try #require(reply.more?.first)
            #expect(range.kind == .contacts && range.since == mark && reply.more?.count == 1)
            var upTo: Int64? = range.upTo
            while let end = upTo {
                let page = try tablet.call(
                    SyncMoreRequest(kind: .contacts, since: range.since, upTo: end)
                )
                found += page.contacts.map(\.id)
                upTo = page.upTo
            }
            #expect(found.sorted() == others.map(\.userID).sorted())
            // A client without the capability cannot request the rest. Its list ends where the
            // reply is full.
            let classic = try alice.call(Login2Request(contactsSync: mark))
            #expect(classic.more == nil && (1..<others.count).contains(classic.contacts.count))
        }
    }

    @Test("SESSIONS_INFO begins with the asking session and holds those that fit")
    func sessions() throws {
        try withPair(limits: ["maxReplyBytes": 500]) { server, alice, _, _ in
            for number in 0..<8 {
                _ = try server.signIn(phoneOf: alice, device: "device \(number)")
            }
            let sessions = try alice.call(SessionsInfoRequest()).sessions
            #expect((1..<9).contains(sessions.count))
            #expect(sessions.first?.current == true)
        }
    }

    @Test("a chat has no more administrators than it can name")
    func administrators() throws {
        try withPair(limits: ["maxChatAdmins": 3]) { server, alice, bob, _ in
            let others = [bob] + (try ["Carol", "Dave"].map { try server.signUp($0) })
            let group = try alice.createGroup("Picnic", with: others, cid: 7)
            func appoint(_ users: [WireClient], _ permissions: Int64?) -> ChatMembersUpdateRequest {
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: users.map(\.userID),
                    operation: permissions == nil ? .remove : .add,
                    type: .admin,
                    permissions: permissions
                )
            }
            let refusal = try alice.refusal(of: appoint(others, 2))
            #expect(refusal.code == .protoPayload)
            #expect(refusal.message == "/userIds: 4 administrators, limit 3")
            try alice.call(appoint(Array(others.prefix(2)), 2))
            // Change the rights of the same administrators. Then dismiss one of them and appoint
            // another user.
            try alice.call(appoint(Array(others.prefix(2)), 6))
            #expect(try alice.refusal(of: appoint([others[2]], 2)).code == .protoPayload)
            try alice.call(appoint([others[0]], nil))
            let chat = try alice.call(appoint([others[2]], 2)).chat
            #expect(chat.admins?.count == 3)
        }
    }
}
