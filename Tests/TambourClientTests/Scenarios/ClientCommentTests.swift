import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Comments on posts of channels, read and written through the library.
@Suite("Comments of a client")
struct ClientCommentTests {
    /// A channel with a post. Bob owns the channel, and Alice reads it.
    private struct Stage {
        let world: World
        let alice: WireClient
        let bob: WireClient
        let channel: ChatID
        let post: MessageID
        let client: Client

        /// Opens the comments on the post in a client, as a screen does.
        func open(_ client: Client? = nil, rowsOnScreen: Int = 10) async throws -> ChatID {
            let client = client ?? self.client
            let id = try await client.comments(on: post, of: channel).id
            client.look(at: id, rowsOnScreen: rowsOnScreen)
            return id
        }
    }

    private func withStage(
        comments: Int = 0,
        _ body: (Stage) async throws -> Void
    ) async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let channel = try bob.channel("News", with: [alice], cid: 1)
            let post = try bob.send("the post", to: channel, cid: 2).message.id
            for number in 0..<comments {
                let text = Text("c\(number + 1)")
                try bob.comment(text, on: post, in: channel, cid: Int64(100 + number))
            }
            let client = try await world.onlineClient(of: alice) { $0.historyPage = 5 }
            try await body(
                Stage(
                    world: world,
                    alice: alice,
                    bob: bob,
                    channel: channel,
                    post: post,
                    client: client
                )
            )
        }
    }

    @Test("the newest page is fetched first, then older pages as one scrolls")
    func pages() async throws {
        try await withStage(comments: 60) { stage in
            let id = try await stage.open(rowsOnScreen: 5)
            try await stage.client.until("the newest page") {
                try $0.texts(of: id).last == "c60"
            }
            let first = try #require(try stage.client.history(of: id).rows.first?.message)
            #expect(try stage.client.texts(of: id).first == "…")
            stage.client.look(at: id, position: first, rowsOnScreen: 100)
            try await stage.client.until("all of them") {
                try $0.texts(of: id) == (1...60).map { "c\($0)" }
            }
            let page = try stage.client.history(of: id, count: 100)
            #expect(page.isStart && page.isEnd)
            #expect(page.rows.allSatisfy { $0.senderName == "Bob" })
            // The comments are neither messages of the channel nor a chat in the list.
            #expect(try stage.client.texts(of: stage.channel).suffix(1) == ["the post"])
            #expect(try stage.client.chats(includingHidden: true).contains { $0.id == id } == false)
        }
    }

    @Test("what others do arrives while comments are open, and changes nothing else")
    func pushes() async throws {
        try await withStage(comments: 2) { stage in
            let (client, bob) = (stage.client, stage.bob)
            let id = try await stage.open()
            try await client.until("both") { try $0.texts(of: id) == ["c1", "c2"] }
            let unread = try client.chat(stage.channel)?.unread
            let third = try bob.comment("c3", on: stage.post, in: stage.channel, cid: 200)
            try await client.until("the third") { try $0.texts(of: id) == ["c1", "c2", "c3"] }
            try bob.call(
                MsgEditRequest(
                    chatID: stage.channel,
                    messageID: third.id,
                    text: "better",
                    postID: stage.post
                )
            )
            try await client.until("the edit") { try $0.texts(of: id).last == "better" }
            try bob.call(
                MsgReactionRequest(
                    chatID: stage.channel,
                    messageID: third.id,
                    reaction: NewReaction(id: "👍"),
                    postID: stage.post
                )
            )
            try await client.until("the reaction") {
                try $0.history(of: id).rows.last?.reactions.map(\.emoji) == ["👍"]
            }
            let first = try #require(try client.history(of: id).rows.first?.message)
            try bob.call(
                MsgDeleteRequest(
                    chatID: stage.channel,
                    messageIDs: [first],
                    postID: stage.post
                )
            )
            try await client.until("the deletion") { try $0.texts(of: id) == ["c2", "better"] }
            #expect(try client.chat(stage.channel)?.unread == unread)
            #expect(try client.texts(of: stage.channel).last == "the post")
        }
    }

    @Test("a comment is answered, edited, reacted to and deleted")
    func writing() async throws {
        try await withStage(comments: 1) { stage in
            let (client, bob) = (stage.client, stage.bob)
            let id = try await stage.open()
            try await client.until("it") { try $0.texts(of: id) == ["c1"] }
            let first = try #require(try client.history(of: id).rows.first?.message)
            try await client.send("an answer", to: id, replyingTo: first)
            try await client.until("sent") {
                try $0.history(of: id).rows.last.map { $0.message != nil && $0.text == "an answer" }
                    == true
            }
            let own = try #require(try client.history(of: id).rows.last)
            let message = try #require(own.message)
            #expect(own.isOwn && own.quote?.message == first && own.quote?.text == "c1")
            // The answer is in the thread of the first comment.
            #expect(try client.thread(of: first, in: id).entries.map(\.depth) == [0, 1])
            try await client.edit(own.id, in: id, text: "a better answer")
            try await client.react("👍", to: first, in: id)
            try await client.until("done") {
                let rows = try $0.history(of: id).rows
                return try $0.queueLength() == 0 && rows.last?.text == "a better answer"
                    && rows.first?.reactions.first?.isOwn == true
            }
            let theirs = try bob.comments(on: stage.post, in: stage.channel)
            #expect(theirs.map(\.text) == ["c1", "a better answer"])
            #expect(theirs[0].reactionInfo?.stored?.totalCount == 1)
            try await client.react(nil, to: first, in: id)
            try await client.delete([message], in: id)
            try await client.until("gone") {
                let rows = try $0.history(of: id).rows
                return try $0.queueLength() == 0 && rows.map(\.text) == ["c1"]
                    && rows[0].reactions.isEmpty
            }
            #expect(try bob.comments(on: stage.post, in: stage.channel).map(\.text) == ["c1"])
        }
    }

    @Test("comments are read and written offline; the next connection brings what was missed")
    func offline() async throws {
        try await withStage(comments: 2) { stage in
            var client = stage.client
            let id = try await stage.open()
            try await client.until("both") { try $0.texts(of: id) == ["c1", "c2"] }
            try await stage.world.restartServer {
                try await client.until("offline") { $0.state != .online }
                // Without a connection no pushes arrive, so comments may be missing at the end.
                try await client.until("a gap") { try $0.texts(of: id) == ["c1", "c2", "…"] }
                try await client.send("written offline", to: id)
                let row = try #require(try client.history(of: id).rows.last)
                #expect(row.text == "written offline" && row.state == .waiting)
                let waiting = try #require(try client.waiting().first)
                #expect(waiting.kind == .comment("written offline"))
                #expect(waiting.chat == stage.channel && waiting.chatTitle == "News")
                await client.stop()
            }
            client = try stage.world.open("tambour") { $0.historyPage = 5 }
            try await client.startAndSync()
            _ = try await stage.open(client)
            try await client.until("sent, without a gap") {
                try $0.texts(of: id) == ["c1", "c2", "written offline"] && $0.queueLength() == 0
            }
            let bob = try stage.world.server.reconnect(stage.bob).client
            let said = try bob.comments(on: stage.post, in: stage.channel).map(\.text)
            #expect(said == ["c1", "c2", "written offline"])
        }
    }

    @Test("changes between two openings are seen at the second one")
    func reopened() async throws {
        // The comments fill more than a page, and the deleted comment is not on the newest page.
        try await withStage(comments: 8) { stage in
            let (client, bob) = (stage.client, stage.bob)
            let all = (1...8).map { "c\($0)" }
            let id = try await stage.open()
            try await client.until("all") { try $0.texts(of: id) == all }
            let first = try #require(try client.history(of: id).rows[0].message)
            client.lookAway(from: id)
            try await client.until("a gap") { try $0.texts(of: id).last == "…" }
            try bob.comment("c9", on: stage.post, in: stage.channel, cid: 300)
            try bob.call(
                MsgDeleteRequest(
                    chatID: stage.channel,
                    messageIDs: [first],
                    postID: stage.post
                )
            )
            // The server no longer pushes the comments; a push would arrive before this reply.
            _ = try await client.sessions()
            #expect(try client.texts(of: id) == all + ["…"])
            _ = try await stage.open()
            try await client.until("the changes") {
                try $0.texts(of: id) == all.dropFirst() + ["c9"]
            }
        }
    }

    @Test("a post shows how many comments it has")
    func counts() async throws {
        try await withStage(comments: 2) { stage in
            let (client, channel, post) = (stage.client, stage.channel, stage.post)
            func wait(for count: Int) async throws {
                try await client.until("\(count) comments") {
                    try $0.commentCount(of: post, in: channel) == count
                }
            }
            #expect(try client.commentCount(of: post, in: channel) == nil)
            client.look(at: channel, rowsOnScreen: 10, visible: [post])
            try await wait(for: 2)
            let id = try await stage.open()
            try await client.until("open") { try $0.texts(of: id) == ["c1", "c2"] }
            try await client.send("c3", to: id)
            try await wait(for: 3)
            let own = try #require(try client.history(of: id).rows.last?.message)
            try await client.delete([own], in: id)
            try await wait(for: 2)
            try stage.bob.comment("c4", on: stage.post, in: stage.channel, cid: 300)
            try await wait(for: 3)
        }
    }

    @Test("refusals say why")
    func refusals() async throws {
        try await withStage(comments: 1) { stage in
            let (client, bob) = (stage.client, stage.bob)
            let id = try await stage.open()
            try await client.until("it") { try $0.texts(of: id) == ["c1"] }
            try bob.ban(stage.alice, from: stage.channel)
            try await client.send("banned", to: id)
            try await client.until("the ban") {
                guard case .failed(let reason)? = try $0.history(of: id).rows.last?.state else {
                    return false
                }
                return reason.hasPrefix("you are banned from commenting in this channel")
            }
            try bob.call(
                ChatUpdateRequest(chatID: stage.channel, options: NameMap([("COMMENTS", false)]))
            )
            try await client.until("closed") { try $0.comments(id)?.areAllowed == false }
            let waiting = try #require(try client.waiting().first)
            try await client.retry(waiting.id)
            try await client.until("the other reason") {
                guard case .failed(let reason)? = try $0.history(of: id).rows.last?.state else {
                    return false
                }
                return reason.hasPrefix("comments are closed in this channel")
            }
            try await client.cancel(waiting.id)
            #expect(try client.texts(of: id) == ["c1"])
        }
    }

    @Test("comments go with their post")
    func deletedPost() async throws {
        try await withStage(comments: 1) { stage in
            let client = stage.client
            let id = try await stage.open()
            try await client.until("it") { try $0.texts(of: id) == ["c1"] }
            try stage.bob.call(
                MsgDeleteRequest(chatID: stage.channel, messageIDs: [stage.post])
            )
            try await client.until("gone") { try $0.comments(id) == nil }
            #expect(try client.texts(of: id).isEmpty)
        }
    }

    @Test("a chat without comments, an event and an unknown chat have none")
    func others() async throws {
        try await withStage { stage in
            let (client, bob) = (stage.client, stage.bob)
            let group = try bob.createGroup("Friends", with: [stage.alice], cid: 50)
            let said = try bob.send("hello", to: group, cid: 51).message.id
            try await client.until("the group") { try $0.texts(of: group).last == "hello" }
            for (message, chat) in [(said, group), (stage.post, ChatID(-3))] {
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.comments(on: message, of: chat)
                }
                #expect(error?.description == "only posts of channels have comments")
            }
            #expect(try client.comments(group) == nil)
            let id = try await stage.open()
            await #expect(throws: ClientError.self) {
                _ = try await client.send(NewPoll("Where?", ["Here", "There"]), to: id)
            }
            await #expect(throws: ClientError.self) {
                _ = try await client.forward(said, of: group, to: id)
            }
        }
    }

    @Test("searches in all chats omit comments, a search in comments finds them")
    func search() async throws {
        try await withStage(comments: 3) { stage in
            let client = stage.client
            let id = try await stage.open()
            try await client.until("all") { try $0.texts(of: id).count == 3 }
            #expect(try client.search("c2").isEmpty)
            #expect(try client.search("c2", in: id).map(\.row.text) == ["c2"])
            #expect(try client.search("post").map(\.row.text) == ["the post"])
        }
    }

    @Test("the draft of a comment stays on this device")
    func draft() async throws {
        try await withStage { stage in
            let client = stage.client
            let id = try await stage.open()
            try await client.saveDraft("half a com", in: id)
            #expect(try client.draft(in: id).text == "half a com")
            #expect(try client.queueLength() == 0)
            try await client.send("a comment", to: id, insteadOf: client.draft(in: id))
            #expect(try client.draft(in: id) == .empty)
            try await client.until("sent") { try $0.queueLength() == 0 }
            #expect(try client.waiting().isEmpty)
        }
    }

    @Test("a client beside the connected one reads, writes and follows comments")
    func otherProcess() async throws {
        try await withStage(comments: 2) { stage in
            let second = try stage.world.open("tambour")
            second.start()
            try await second.until("beside the other") { $0.state == .elsewhere }
            let id = try await stage.open(second)
            try await second.until("both") { try $0.texts(of: id) == ["c1", "c2"] }
            try stage.bob.comment("c3", on: stage.post, in: stage.channel, cid: 300)
            try await second.until("the third") { try $0.texts(of: id) == ["c1", "c2", "c3"] }
            try await second.send("c4", to: id)
            try await second.until("sent") { try $0.queueLength() == 0 }
            #expect(try second.texts(of: id) == ["c1", "c2", "c3", "c4"])
        }
    }

    @Test("no more posts are open than the server allows")
    func limit() async throws {
        try await withStage { stage in
            let (client, bob) = (stage.client, stage.bob)
            var threads: [ChatID] = []
            for number in 0...Limits.standard.maxOpenThreads {
                let post = try bob.send("post", to: stage.channel, cid: Int64(500 + number))
                let id = try await client.comments(on: post.message.id, of: stage.channel).id
                client.look(at: id, rowsOnScreen: 10)
                try await client.until("open") { try $0.history(of: id).isStart }
                threads.append(id)
            }
            let open = try client.store.read { try $0.openCommentThreads().map(\.id) }
            #expect(open == Array(threads.dropFirst()))
        }
    }

    /// A client version that does not know comments must not send comments as messages.
    @Test("tasks on comments have names of their own, and are read back")
    func tasks() throws {
        let tasks: [any MessageTask] = [
            SendTask(chat: -1, post: 2, cid: 3, text: "a"),
            EditTask(chat: -1, post: 2, message: 3, text: "a"),
            DeleteTask(chat: -1, post: 2, messages: [3], isForMe: false),
            ReactTask(chat: -1, post: 2, message: 3, emoji: "👍"),
            CancelReactionTask(chat: -1, post: 2, message: 3),
        ]
        for task in tasks {
            #expect(task.storedKind == type(of: task).commentKind)
            #expect(task.storedKind != type(of: task).kind)
            #expect(task.place == ChatID(2) && task.changedChat == nil)
            #expect(task.lane == "chat:2")
        }
        let send = SendTask(chat: -1, cid: 3, text: "a")
        #expect(send.storedKind == "message.send" && send.place == ChatID(-1))
    }
}

extension Client {
    /// The number of comments that a post shows.
    fileprivate func commentCount(of post: MessageID, in channel: ChatID) throws -> Int? {
        try history(of: channel).rows.first { $0.message == post }?.commentCount
    }
}
