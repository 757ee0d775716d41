import Foundation
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// A client with a real server over a real socket.
@Suite("A client")
struct ClientTests {
    @Test("signs in, sends and receives, and keeps what it has seen")
    func chats() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)

            try await client.send("hello", to: chat)
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect("\(push.message.text)" == "hello")
            try await client.until("sent") {
                try $0.history(of: chat).rows.map(\.state) == [.sent]
            }
            try bob.send("hi", to: chat, cid: 1)
            try await client.until("received") { try $0.texts(of: chat) == ["hello", "hi"] }
            try await client.until("who it is") { try $0.chats().first?.title == "Bob" }
            let line = try #require(try client.chats().first)
            #expect(line.unread == 1)
            #expect(line.preview?.text == "hi")

            let held = try #require(try client.history(of: chat).rows.last?.message)
            try await client.markRead(held, in: chat)
            #expect(try client.chats().first?.unread == 0)
            let mark = try bob.next(.notifMark, as: NotifMark.self)
            #expect(mark.mark == held.timeMs)
            // Bob has answered, so he has read Alice's message.
            #expect(try client.history(of: chat).rows.first?.state == .read)
            try await client.send("and this?", to: chat)
            try await client.until("sent") {
                try $0.history(of: chat).rows.last?.state == .sent
            }
            let last = try #require(try client.history(of: chat).rows.last?.message)
            let read = MarkType.readMessage
            try bob.call(ChatMarkRequest(type: read, chatID: chat, mark: last.timeMs))
            try await client.until("read") {
                try $0.history(of: chat).rows.last?.state == .read
            }

            await client.stop()
            let offline = try world.open("tambour")
            #expect(try offline.texts(of: chat) == ["hello", "hi", "and this?"])
        }
    }

    @Test("shows at once what cannot be sent yet, and sends it once, in order, when it can")
    func offline() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            var client = try await world.onlineClient(of: alice)
            try await client.send("before", to: chat)
            try await client.until("sent") { try $0.queueLength() == 0 }
            try await world.restartServer {
                try await client.until("offline") { $0.state != .online }
                for number in 1...5 { try await client.send("offline \(number)", to: chat) }
                #expect(try client.history(of: chat).rows.map(\.state).last == .waiting)
                await client.stop()
            }
            client = try world.open("tambour")
            #expect(try client.queueLength() == 5)
            try await client.startAndSync()
            try await client.until("all sent") { try $0.queueLength() == 0 }
            let expected = ["before"] + (1...5).map { "offline \($0)" }
            #expect(try client.texts(of: chat) == expected)
            let (again, _) = try world.server.reconnect(bob)
            let page = try again.call(ChatHistoryRequest(chatID: chat, backward: 50))
            #expect(page.messages?.map { "\($0.text)" } == expected)
        }
    }

    @Test("hears of what happened while it was away, and draws a gap until it is filled")
    func away() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            for number in 1...3 { try bob.send("old \(number)", to: chat, cid: Int64(number)) }
            var client = try await world.onlineClient(of: alice)
            client.look(at: chat, rowsOnScreen: 10)
            let old = (1...3).map { "old \($0)" }
            try await client.until("the old ones") { try $0.texts(of: chat) == old }
            await client.stop()

            for number in 1...120 {
                try bob.send("new \(number)", to: chat, cid: 100 + Int64(number))
            }
            client = try world.open("tambour")
            try await client.startAndSync()
            try await client.until("the newest") { try $0.texts(of: chat).last == "new 120" }
            #expect(try client.texts(of: chat) == old + ["…", "new 120"])
            let visible = try client.history(of: chat).rows.compactMap(\.message)
            client.look(at: chat, rowsOnScreen: 10, visible: visible)
            try await client.until("a page") { try $0.texts(of: chat, count: 200).count > 50 }
            client.look(
                at: chat,
                rowsOnScreen: 200,
                visible: try client.history(of: chat, count: 200).rows.compactMap(\.message)
            )
            let all = old + (1...120).map { "new \($0)" }
            try await client.until("all of it") { try $0.texts(of: chat, count: 200) == all }
        }
    }

    @Test("a gap stays in sight when the row before it is being deleted", arguments: [1, 3])
    func gapAfterDeletion(deleted: Int) async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            for number in 1...3 { try bob.send("old \(number)", to: chat, cid: Int64(number)) }
            var client = try await world.onlineClient(of: alice)
            client.look(at: chat, rowsOnScreen: 10)
            let old = (1...3).map { "old \($0)" }
            try await client.until("the old ones") { try $0.texts(of: chat) == old }
            await client.stop()
            for number in 1...120 {
                try bob.send("new \(number)", to: chat, cid: 100 + Int64(number))
            }
            client = try world.open("tambour")
            try await client.startAndSync()
            try await client.until("the newest") { try $0.texts(of: chat).last == "new 120" }
            await client.stop()
            client = try world.open("tambour")
            let held = try client.history(of: chat).rows.compactMap(\.message)
            let last = Array(held.prefix(3).suffix(deleted))
            try await client.delete(last, in: chat, onlyForMe: true)
            let rest = Array(old.dropLast(deleted))
            #expect(try client.texts(of: chat) == rest + ["…", "new 120"])
        }
    }

    @Test("learns what became of messages it holds: edits, deletions, reactions")
    func changesWhileAway() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let sent = try (1...4).map {
                try bob.send("m\($0)", to: chat, cid: Int64($0)).message.id
            }
            var client = try await world.onlineClient(of: alice)
            client.look(at: chat, rowsOnScreen: 10)
            try await client.until("all four") {
                try $0.texts(of: chat) == ["m1", "m2", "m3", "m4"]
            }
            await client.stop()

            try bob.call(MsgEditRequest(chatID: chat, messageID: sent[0], text: "edited"))
            try bob.call(MsgDeleteRequest(chatID: chat, messageIDs: [sent[1]]))
            try bob.call(
                MsgReactionRequest(
                    chatID: chat,
                    messageID: sent[2],
                    reaction: NewReaction(id: "👍")
                )
            )
            client = try world.open("tambour")
            try await client.startAndSync()
            client.look(at: chat, rowsOnScreen: 10)
            try await client.until("what changed") {
                try $0.texts(of: chat) == ["edited", "m3", "m4"]
            }
            try await client.until("the reaction") {
                try $0.history(of: chat).rows[1].reactions.map(\.emoji) == ["👍"]
            }
        }
    }

    @Test("edits, deletes and reacts offline, and the server agrees afterwards")
    func changesOffline() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            for number in 1...3 { try await client.send("m\(number)", to: chat) }
            try await client.until("sent") { try $0.queueLength() == 0 }
            let ids = try client.history(of: chat).rows.compactMap(\.message)
            try #require(ids.count == 3)
            try await world.restartServer {
                try await client.until("offline") { $0.state != .online }
                try await client.edit(ids[0], in: chat, text: "edited")
                try await client.delete([ids[1]], in: chat)
                try await client.react("🔥", to: ids[2], in: chat)
                #expect(try client.texts(of: chat) == ["edited", "m3"])
                #expect(try client.history(of: chat).rows[1].reactions.map(\.count) == [1])
                await client.stop()
            }
            let again = try world.open("tambour")
            try await again.startAndSync()
            try await again.until("done") { try $0.queueLength() == 0 }
            #expect(try again.texts(of: chat) == ["edited", "m3"])
            let (wire, _) = try world.server.reconnect(bob)
            let page = try wire.call(ChatHistoryRequest(chatID: chat, backward: 50))
            #expect(page.messages?.map { "\($0.text)" } == ["edited", "m3"])
            #expect(page.messages?[1].reactionInfo?.stored?.totalCount == 1)
        }
    }

    private static let isSoak = ProcessInfo.processInfo.environment["TAMBOUR_SOAK"] == "1"

    @Test(
        "asks for each message of a long history once",
        arguments: isSoak ? [1_000, 10_000] : [1_000]
    )
    func scroll(total: Int) async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            for start in stride(from: 1, through: total, by: 200) {
                let sent = try (start..<start + 200).map { number in
                    let message = NewMessage(cid: Int64(number), text: Text("\(number)"))
                    return try bob.send(MsgSendRequest(chatID: chat, message: message))
                }
                for number in sent { _ = try bob.reply(to: number, as: MsgSendReply.self) }
            }
            let client = try await world.client(of: alice, tapsFrames: true)
            let events = client.events()
            async let frames = events.reduce(into: 0) { count, event in
                guard case .frame(let frame) = event, frame.direction == .sent else { return }
                if frame.opcode == "\(Opcode.chatHistory)" { count += 1 }
            }
            try await client.startAndSync()
            try await scrollToTop(client, chat, total)
            let all = try client.history(of: chat, .newest, count: total).rows.map(\.text)
            #expect(all == (1...total).map(String.init))
            #expect(await client.historyRequests() == (total + 49) / 50)
            try await scrollToTop(client, chat, total)
            #expect(await client.historyRequests() == (total + 49) / 50)
            // Count the requests of both scrolls on the wire.
            await client.stop()
            #expect(await frames == (total + 49) / 50)
        }
    }

    private func scrollToTop(_ client: Client, _ chat: ChatID, _ total: Int) async throws {
        var top: MessageID?
        client.look(at: chat, rowsOnScreen: 20)
        while true {
            let edge = top
            try await client.until("rows above \(edge.map(String.init) ?? "the end")") { client in
                let page = try client.history(
                    of: chat,
                    edge.map { .before($0) } ?? .newest,
                    count: 20
                )
                return page.rows.count == 20 || page.isStart
            }
            let anchor: Client.HistoryAnchor = top.map { .before($0) } ?? .newest
            let page = try client.history(of: chat, anchor, count: 20)
            guard let oldest = page.rows.first?.message else { return }
            top = oldest
            client.look(at: chat, position: oldest, rowsOnScreen: 20)
            if page.isStart { return }
        }
    }

    @Test("shares its file with another process: one connects, both see and send")
    func shared() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let screen = try await world.onlineClient(of: alice)
            let script = try world.open("tambour")
            script.start()
            try await script.until("the other is connected") { $0.state == .elsewhere }
            try await script.send("from the script", to: chat)
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect("\(push.message.text)" == "from the script")
            try await script.until("sent") { try $0.history(of: chat).rows.map(\.state) == [.sent] }
            try await screen.until("seen") { try $0.texts(of: chat) == ["from the script"] }
            await screen.stop()
            try await script.until("taken over") { $0.state == .online }
        }
    }

    @Test("says that it was signed out, and keeps what was not sent")
    func signedOut() async throws {
        try await withWorld { world in
            let (alice, _, chat) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            try alice.call(SessionsCloseRequest())
            try await client.until("signed out") { $0.state == .signedOut }
            try await client.send("kept", to: chat)
            #expect(try client.texts(of: chat) == ["kept"])
            let session = try world.server.signIn(phoneOf: alice, device: "tambour")
            try await client.signIn(token: session.token)
            try await client.until("sent") { try $0.queueLength() == 0 }
        }
    }

    @Test("lets nobody else into what it holds of an account that was signed out")
    func another() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let carol = try world.server.signUp("Carol")
            let client = try await world.onlineClient(of: alice)
            try await client.send("mine", to: chat)
            try await client.until("sent") { try $0.queueLength() == 0 }
            #expect(try client.isSignedIn())
            try alice.call(SessionsCloseRequest())
            try await client.until("signed out") { $0.state == .signedOut }
            #expect(try !client.isSignedIn() && client.me() == alice.userID)

            let reason = client.signedOutReason
            let session = try world.server.signIn(phoneOf: bob, device: "tambour")
            // The session is fresh, as after a login by code; no other client uses it.
            try await client.signIn(token: session.token, phone: "79990000001")
            try await client.until("refused") {
                try $0.signedOutReason != reason && !$0.isSignedIn()
            }
            // Bob's messages must not reach the file of Alice's account.
            try carol.send("for Bob", to: carol.dialog(with: bob), cid: 1)
            // The server has closed the refused session.
            try session.waitForClose()
            #expect(try client.me() == alice.userID)
            #expect(try client.chats().map(\.id) == [chat])

            let again = try world.server.signIn(phoneOf: alice, device: "tambour")
            try await client.signIn(token: again.token)
            try await client.until("signed in") { $0.state == .online }
            #expect(try client.texts(of: chat) == ["mine"])
            #expect(client.signedOutReason == nil)
        }
    }

    @Test("lets in nobody who has the same id on a server set up anew")
    func sameID() async throws {
        try await withWorld { world in
            let (alice, _, chat) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            try await client.send("mine", to: chat)
            try await client.until("sent") { try $0.queueLength() == 0 }
            await client.stop()
            try await world.restartServer {
                try FileManager.default.removeItem(atPath: world.directory + "/server")
            }

            let (mallory, _, same) = try world.aliceAndBob()
            #expect(mallory.userID == alice.userID && same == chat)
            let again = try world.open("tambour")
            again.start()
            // The new server does not know this client's token.
            try await again.until("signed out") { $0.state == .signedOut }
            let reason = again.signedOutReason
            let session = try world.server.signIn(phoneOf: mallory, device: "tambour")
            try await again.signIn(token: session.token)
            try await again.until("refused") {
                try $0.signedOutReason != reason && !$0.isSignedIn()
            }
            #expect(try again.texts(of: chat) == ["mine"])

            try await again.signOut()
            // This device refused the session, but the server did not, so the token is still valid.
            try await again.signIn(token: session.token)
            try await again.until("signed in") { $0.state == .online }
            #expect(try again.texts(of: chat) == [])
        }
    }

    @Test("may be dropped as soon as it has answered, while its lane is not done with that")
    func droppedWithAnswer() async throws {
        try await withWorld { world in
            for round in 0..<60 {
                let client = try Client(
                    store: "\(world.directory)/\(round).db",
                    server: world.server.address
                )
                client.start()
                await #expect {
                    try await client.requestCode(phone: "0")
                } throws: { error in
                    if case ClientError.refused = error { true } else { false }
                }
            }
        }
    }

    @Test("lets go of everything when nobody needs it any more, whatever is under way")
    func dropped() async throws {
        try await withWorld { world in
            let (alice, _, _) = try world.aliceAndBob()
            let session = try world.server.signIn(phoneOf: alice, device: "tambour")
            for round in 0..<12 {
                // Create the client directly, because the world would keep a reference to it.
                let client = try Client(
                    store: world.directory + "/tambour.db",
                    server: world.server.address
                )
                client.start()
                if round == 0 { try await client.signIn(token: session.token) }
                if round % 2 == 0 { try await client.until("online") { $0.state == .online } }
            }
            let last = try world.open("tambour")
            last.start()
            try await last.until("online") { $0.state == .online }
            await last.stop()
            await last.stop()
        }
    }
}
