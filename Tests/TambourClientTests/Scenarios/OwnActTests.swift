import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// What each device of an account shows after one of these devices, or another user, has changed a
/// group.
@Suite("What a change of a group leaves on the devices of its author")
struct OwnActTests {
    /// A group of Alice and Bob, and the participants of an act.
    struct Stage {
        let group: ChatID
        /// The device that acts.
        let actor: Client
        let alice: WireClient
        let bob: WireClient
        let carol: WireClient
        /// The newest message of the group.
        let last: MessageID
    }

    struct Act: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let run: @Sendable (Stage) async throws -> Void

        init(_ name: String, _ run: @escaping @Sendable (Stage) async throws -> Void) {
            (testDescription, self.run) = (name, run)
        }
    }

    /// Every act that the library supports in a group, and acts of the account's other clients.
    static let acts: [Act] = [
        Act("title") { try await $0.actor.update($0.group, title: "Best friends") },
        Act("about") { try await $0.actor.update($0.group, about: "all of us") },
        Act("pin") { try await $0.actor.update($0.group, pinned: $0.last) },
        Act("title and pin") {
            try await $0.actor.update($0.group, title: "Best friends", pinned: $0.last)
        },
        Act("unpin") {
            try await $0.actor.update($0.group, pinned: $0.last)
            try await $0.actor.update($0.group, pinned: MessageID(0))
        },
        Act("add") { try await $0.actor.add([$0.carol.userID], to: $0.group) },
        Act("remove") { try await $0.actor.remove([$0.bob.userID], from: $0.group) },
        Act("add, remove and title") {
            try await $0.actor.add([$0.carol.userID], to: $0.group)
            try await $0.actor.remove([$0.carol.userID], from: $0.group)
            try await $0.actor.update($0.group, title: "Best friends")
        },
        Act("administrator") {
            try await $0.actor.setAdministrator($0.bob.userID, in: $0.group, true)
            try await $0.actor.setAdministrator($0.bob.userID, in: $0.group, false)
        },
        Act("send") { try await $0.actor.send("hello", to: $0.group) },
        Act("send and title") {
            try await $0.actor.send("hello", to: $0.group)
            try await $0.actor.update($0.group, title: "Best friends")
            try await $0.actor.send("again", to: $0.group)
        },
        Act("forward") {
            let said = try $0.bob.send("said", to: $0.group, cid: 1000).message.id
            try await $0.actor.forward(said, of: $0.group, to: $0.group)
        },
        Act("delete") { try await $0.actor.delete([$0.last], in: $0.group, onlyForMe: true) },
        Act("react") { try await $0.actor.react("👍", to: $0.last, in: $0.group) },
        Act("read") { try await $0.actor.markRead($0.last, in: $0.group) },
        Act("unread") { try await $0.actor.markUnread(from: $0.last, in: $0.group) },
        Act("mute") { try await $0.actor.mute($0.group, true) },
        Act("favourite") { try await $0.actor.pin($0.group, true) },
        Act("hide") { try await $0.actor.hide($0.group) },
        Act("leave") {
            try $0.alice.call(
                ChatUpdateRequest(chatID: $0.group, changeOwnerID: $0.bob.userID)
            )
            try await $0.actor.leave($0.group)
        },
        Act("options") {
            let options = NameMap<Bool>([("ONLY_ADMIN_CAN_ADD_MEMBER", true)])
            try $0.alice.call(ChatUpdateRequest(chatID: $0.group, options: options))
        },
        Act("new invitation") {
            try $0.alice.call(ChatUpdateRequest(chatID: $0.group, revokePrivateLink: true))
        },
        Act("join by the invitation") {
            let reply = try $0.alice.call(
                ChatUpdateRequest(chatID: $0.group, revokePrivateLink: true)
            )
            try $0.carol.call(ChatJoinRequest(link: #require(reply.chat.link)))
        },
        Act("new owner") {
            try $0.alice.call(
                ChatUpdateRequest(chatID: $0.group, changeOwnerID: $0.bob.userID)
            )
        },
        Act("title from elsewhere") {
            try $0.alice.call(ChatUpdateRequest(chatID: $0.group, theme: "Elsewhere"))
        },
        Act("title by somebody else") {
            try $0.bob.call(ChatUpdateRequest(chatID: $0.group, theme: "By Bob"))
        },
        Act("title here and title by somebody else") {
            try await $0.actor.update($0.group, title: "Best friends")
            try $0.bob.call(ChatUpdateRequest(chatID: $0.group, theme: "By Bob"))
        },
    ]

    @Test("all devices show the newest message, in the list and in the history", arguments: acts)
    func everyAct(act: Act) async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let carol = try world.server.signUp("Carol")
            // The devices hold only a part of the first group. The second group has only its
            // creation event.
            let long = try alice.createGroup("Friends", with: [bob], cid: 1)
            for number in 1...90 { try bob.send("n \(number)", to: long, cid: Int64(number)) }
            let phone = try await world.onlineClient(of: alice, device: "phone")
            let laptop = try await world.onlineClient(of: alice, device: "laptop")
            let fresh = try alice.createGroup("New friends", with: [bob], cid: 2)
            for group in [long, fresh] {
                for client in [phone, laptop] { try await client.waitUntilIdle() }
                let last = try #require(try phone.history(of: group).rows.last?.message)
                try await act.run(
                    Stage(
                        group: group,
                        actor: phone,
                        alice: alice,
                        bob: bob,
                        carol: carol,
                        last: last
                    )
                )
                for client in [phone, laptop] { try await client.waitUntilIdle() }
                try check(group, on: phone, laptop, as: alice)
            }
        }
    }

    @Test("what is looked at has no gap, without anybody looking again", arguments: acts)
    func everyActInSight(act: Act) async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let carol = try world.server.signUp("Carol")
            let group = try alice.createGroup("Friends", with: [bob], cid: 1)
            for number in 1...12 { try bob.send("n \(number)", to: group, cid: Int64(number)) }
            let phone = try await world.onlineClient(of: alice, device: "phone")
            let laptop = try await world.onlineClient(of: alice, device: "laptop")
            for client in [phone, laptop] {
                client.look(at: group, rowsOnScreen: 20)
                try await client.waitUntilIdle()
            }
            let last = try #require(try phone.history(of: group).rows.last?.message)
            try await act.run(
                Stage(
                    group: group,
                    actor: phone,
                    alice: alice,
                    bob: bob,
                    carol: carol,
                    last: last
                )
            )
            for client in [phone, laptop] { try await client.waitUntilIdle() }
            try check(group, on: phone, laptop, as: alice)
            for client in [phone, laptop] where try client.chat(group) != nil {
                let page = try client.history(of: group)
                #expect(page.isStart)
                #expect(page.rows.allSatisfy { !$0.isGapAfter })
            }
            let shown = try [phone, laptop].filter { try $0.chat(group)?.isGone == false }
                .map { try $0.history(of: group).rows.map(\.message) }
            #expect(Set(shown).count <= 1)
        }
    }

    /// Returns the text that a list shows for a row.
    private static func words(_ row: HistoryRow) -> String { row.event ?? row.text }

    /// Checks that both devices show the state of the server.
    private func check(
        _ group: ChatID,
        on phone: Client,
        _ laptop: Client,
        as alice: WireClient
    ) throws {
        let served = try alice.call(ChatInfoRequest(chatIDs: [group])).chats.first
        for client in [phone, laptop] {
            let line = try client.chat(group)
            guard let served else {
                // The device that leaves forgets the group; the other device only marks it as gone.
                if client === phone {
                    #expect(line?.isGone == nil)
                } else {
                    #expect(line?.isGone == true)
                }
                continue
            }
            guard let line else {
                Issue.record("the group is not in the list")
                continue
            }
            let page = try client.history(of: group)
            let last = page.rows.last
            #expect(last?.message == served.lastMessage?.id)
            #expect(last?.isGapAfter ?? page.isGapBefore == false)
            #expect(line.preview?.text == last.map(Self.words))
            #expect(line.title == served.title.map { "\($0)" })
            #expect(line.unread == Int(served.newMessages ?? 0))
        }
        guard served != nil else { return }
        let lines = try [phone, laptop].map { try $0.chat(group) }
        #expect(lines[0]?.preview == lines[1]?.preview)
    }
}

extension Client {
    /// Waits until all tasks are done, all earlier pushes have arrived, and all resulting requests
    /// have replies.
    func waitUntilIdle() async throws {
        try await until("all is done") { try $0.queueLength() == 0 }
        repeat {
            _ = try await ask(PingRequest())
        } while try await call { $0.wire.requests.count } > 0
    }
}
