import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

@Suite("What a request reads beyond its price is paid for")
struct ReadPriceTests {
    /// Runs `body` with Alice, her large group, and the newest message of the group. All members
    /// have read this message.
    private func withCrowd(
        _ body: (_ alice: WireClient, _ crowd: ChatID, _ newest: MessageID) throws -> Void
    ) throws {
        try withServer(limits: ["readBurst": 2_000, "readsPerMinute": 1]) { server in
            let alice = try server.signUp("Alice")
            let crowd = try alice.createGroup("Crowd", with: [], cid: 1)
            let newest = try alice.call(
                MsgSendRequest(chatID: crowd, message: NewMessage(cid: 2, text: "a"))
            ).message.id
            let me = alice.userID
            try server.run { tx in
                let users = try (0..<1_600).map {
                    try tx.createAccount(
                        phone: 79_000_000_000 + $0,
                        firstName: "User",
                        lastName: nil
                    )
                }
                let chat = try #require(try tx.chat(crowd, visibleTo: me))
                try tx.add(users, to: chat, showingHistory: true)
                for user in users { try tx.raiseRead(to: newest.timeMs, of: user, in: chat) }
            }
            try body(alice, crowd, newest)
        }
    }

    /// Returns how many requests the server answers before it refuses one.
    private func answered(_ client: WireClient, _ request: some WireRequest) throws -> Int {
        for count in 0..<200 {
            if let code = try client.refusalCode(of: request) {
                #expect(code == .tooManyRequests)
                return count
            }
        }
        return 200
    }

    @Test("MSG_GET_STAT pays for the marks that it counts")
    func readers() throws {
        try withCrowd { alice, crowd, newest in
            let request = MsgGetStatRequest(chatID: crowd, messageIDs: [newest])
            let stats = try alice.call(request).stats.pairs
            #expect(stats.map(\.1.views) == [1_600])
            // Counting 1,600 marks costs as much as reading 200 rows.
            let count = try answered(alice, request)
            #expect((30...45).contains(count), "\(count)")
        }
    }

    @Test("CHAT_MEMBERS pays for the members whom a query does not name")
    func members() throws {
        try withCrowd { alice, crowd, _ in
            let request = ChatMembersRequest(chatID: crowd, query: "nobody")
            let count = try answered(alice, request)
            #expect(count == 5)
        }
    }

    @Test("PUBLIC_SEARCH looks at no more rows than one request may, and its pages hold all")
    func names() throws {
        let meter = CostMeter()
        var environment = Environment.live
        environment.disk = meter.disk
        let rows = 40
        try withServer(limits: ["maxScannedRows": rows], environment: environment) { server in
            let alice = try server.signUp("Alice")
            let wanted = try ["Anton Zed", "Antonina Antonova Zed"].map {
                try server.signUp($0).userID
            }
            try server.run { tx in
                for index in 0..<150 {
                    _ = try tx.createAccount(
                        phone: 79_000_000_000 + Int64(index),
                        firstName: index % 2 == 0 ? "Anton" : "Antonina",
                        lastName: "Anton \(index)"
                    )
                    let chat = try tx.createGroup(
                        .channel,
                        title: Text(index == 77 ? "Anton zed" : "Anton \(index)"),
                        owner: wanted[0],
                        members: wanted
                    )
                    var details = chat.details
                    details.isPublic = true
                    details.link = Text("antonov_\(index)")
                    try tx.set(details, of: chat)
                }
            }
            var people: [UserID] = []
            var chats: [Text] = []
            var marker: Int64?
            var pages = 0
            repeat {
                _ = meter.take()
                let reply = try alice.call(
                    PublicSearchRequest(query: "anton ze", marker: marker)
                )
                #expect(meter.take().rowsRead <= rows + 8)
                people += reply.result.compactMap { $0.contact?.id }
                chats += reply.result.compactMap { $0.chat?.title }
                #expect(reply.total == Int64(people.count + chats.count))
                marker = reply.marker
                pages += 1
            } while marker != nil && pages < 100
            #expect(people == wanted)
            #expect(chats == ["Anton zed"])
        }
    }

    @Test("groups in common come page by page, however few memberships a request may look up")
    func commonGroups() throws {
        try withServer(limits: ["maxScannedRows": 12]) { server in
            let alice = try server.signUp("Alice")
            let bob = try server.signUp("Bob")
            let carol = try server.signUp("Carol")
            var common: [ChatID] = []
            for index in 0..<20 {
                let others = index % 6 == 0 ? [bob, carol] : [bob]
                let group = try alice.createGroup("G", with: others, cid: Int64(index + 1))
                if index % 6 == 0 { common.insert(group, at: 0) }
            }
            for count in [nil, 1] as [Int64?] {
                var found: [ChatID] = []
                var marker: Int64?
                var pages = 0
                repeat {
                    let reply = try alice.call(
                        ChatSearchCommonParticipantsRequest(
                            userIDs: [bob.userID, carol.userID],
                            count: count,
                            marker: marker
                        )
                    )
                    found += reply.commonChats.map(\.id)
                    marker = reply.marker
                    #expect(reply.hasMore == (marker != nil))
                    pages += 1
                } while marker != nil && pages < 100
                #expect(Set(found) == Set(common))
                #expect(found.count == common.count)
                #expect(pages > 1)
            }
        }
    }

    @Test("who adds and removes one user after another reaches an end")
    func removedContacts() throws {
        try withServer(limits: ["maxContactRows": 4]) { server in
            let alice = try server.signUp("Alice")
            let group = try alice.createGroup("G", with: [], cid: 1)
            let others = try (0..<6).map { try server.signUp("User \($0)") }
            try alice.call(
                ChatMembersUpdateRequest(
                    chatID: group,
                    userIDs: others.map(\.userID),
                    operation: .add
                )
            )
            func change(_ index: Int, _ action: ContactAction) throws -> RequestError.Code? {
                try alice.refusalCode(
                    of: ContactUpdateRequest(contactID: others[index].userID, action: action)
                )
            }
            for index in 0..<4 {
                let actions: [ContactAction] =
                    index % 2 == 0 ? [.add, .remove] : [.block, .unblock]
                for action in actions { #expect(try change(index, action) == nil) }
            }
            #expect(try change(4, .add) == .protoPayload)
            #expect(try change(4, .block) == .protoPayload)
            // A former contact may become a contact again.
            #expect(try change(0, .add) == nil)
            #expect(try change(1, .block) == nil)
        }
    }

    @Test("a user waits to be let into a limited number of chats at once")
    func joinRequests() throws {
        try withPair(limits: ["maxJoinRequests": 2]) { _, alice, bob, _ in
            let groups = try (0..<3).map {
                try alice.createGroup("G\($0)", with: [], cid: Int64($0 + 1))
            }
            let links = try groups.map {
                try alice.ask(for: $0)
                let update = ChatUpdateRequest(chatID: $0, revokePrivateLink: true)
                return try #require(try alice.call(update).chat.link)
            }
            func join(_ index: Int) throws -> RequestError.Code? {
                try bob.refusalCode(of: ChatJoinRequest(link: links[index]))
            }
            #expect(try join(0) == nil)
            #expect(try join(1) == nil)
            #expect(try join(2) == .protoPayload)
            #expect(try join(0) == nil)
            try bob.call(ChatLeaveRequest(chatID: groups[0]))
            #expect(try join(2) == nil)
        }
    }
}
