import TambourProtocol
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

/// The effect of pages of nearly a million bytes on other clients. The tests count bytes rather
/// than milliseconds.
@Suite("Large pages")
struct LargePageTests {
    /// An account whose saved messages fill a page, and a second account.
    private final class Stage {
        let server: SteppedServer
        let alice: SteppedClient
        let bob: SteppedClient
        private(set) var request = MsgGetRequest(chatID: ChatID(0), messageIDs: [])
        /// The payload bytes of the reply to `request`.
        private(set) var pageBytes = 0

        init(limits: [String: Int]) throws {
            server = try SteppedServer(limits: limits, users: 2)
            bob = try server.logIn()
            alice = try server.logIn()
        }

        func fill() throws {
            let saved = ChatID.dialog(alice.userID, alice.userID)
            let text = Text(String(repeating: "長", count: Limits.standard.maxTextUnits))
            let ids = try (1...60).map { cid in
                try alice.call(
                    MsgSendRequest(
                        chatID: saved,
                        message: NewMessage(cid: Int64(cid), text: text)
                    )
                ).message.id
            }
            request = MsgGetRequest(chatID: saved, messageIDs: ids)
            let before = written
            try takePage()
            pageBytes = written - before
            try #require(pageBytes > 700_000)
        }

        /// Requests the page and reads it in several parts, because it exceeds the socket's buffer.
        func takePage() throws {
            let number = try alice.send(request)
            server.settle()
            var rounds = 0
            while !alice.hasReply(to: number), rounds < 100 {
                server.settle()
                rounds += 1
            }
            try #require(alice.hasReply(to: number))
        }

        /// The payload bytes of all replies so far.
        var written: Int { server.server.metrics.replyBytes.count }

        /// The number of queries that readers have begun.
        var begun: Int {
            server.server.metrics.queueTimes.histogram(.reader, isStranger: false).count
        }

        var slowReadersClosed: Int { server.server.metrics.slowReadersClosed.count }
    }

    private func withStage(
        limits: [String: Int] = [:],
        _ body: (Stage) throws -> Void
    ) throws {
        let stage = try Stage(limits: limits)
        defer { stage.server.remove() }
        try stage.fill()
        try body(stage)
    }

    @Test(
        "of one account keep a PING of somebody else waiting for those of one round",
        arguments: [1, 4]
    )
    func onePing(connections: Int) throws {
        try withStage { stage in
            let server = stage.server
            let crowd =
                try [stage.alice]
                + (1..<connections).map { _ in try server.logIn(token: stage.alice.token) }
            let asked = try crowd.map { client in
                try (0..<6).map { _ in try client.send(stage.request) }
            }
            let most = Limits.standard.maxReplyBytesPerRound + stage.pageBytes
            var steps = 0
            func isDone() -> Bool {
                zip(crowd, asked).allSatisfy { client, numbers in
                    numbers.last.map { client.hasReply(to: $0) } ?? true
                }
            }
            while !isDone(), steps < 1_000 {
                let ping = try stage.bob.send(PingRequest())
                let before = stage.written
                server.poke()
                while !stage.bob.hasReply(to: ping), server.scheduler.step() {}
                try #require(stage.bob.hasReply(to: ping))
                #expect(stage.written - before <= most)
                // Vary the moment of the next request.
                for _ in 0..<steps % 4 {
                    server.poke()
                    server.scheduler.step()
                }
                steps += 1
            }
            for (client, numbers) in zip(crowd, asked) {
                #expect(numbers.allSatisfy { client.hasReply(to: $0) })
            }
            #expect(stage.slowReadersClosed == 0)
        }
    }

    @Test("of two accounts take turns, however many connections one of them has")
    func accounts() throws {
        try withStage(limits: ["maxReplyBytesPerRound": 1]) { stage in
            let server = stage.server
            // Bob also requests a long page.
            let saved = ChatID.dialog(stage.bob.userID, stage.bob.userID)
            let sent = try stage.bob.call(
                MsgSendRequest(chatID: saved, message: NewMessage(cid: 1, text: "mine"))
            )
            let mine = MsgGetRequest(chatID: saved, messageIDs: [sent.message.id])
            let crowd =
                try [stage.alice]
                + (1..<4).map { _ in try server.logIn(token: stage.alice.token) }
            for client in crowd { for _ in 0..<10 { try client.send(stage.request) } }
            server.poke()
            // Run until readers have begun eight of the crowd's pages.
            for _ in 0..<20 where stage.begun < 8 { server.scheduler.step() }
            let number = try stage.bob.send(mine)
            let before = stage.written
            server.poke()
            while !stage.bob.hasReply(to: number), server.scheduler.step() {}
            #expect(stage.bob.hasReply(to: number))
            // The server may write only four of the crowd's eight pages before it reads Bob's.
            #expect(stage.written - before <= 4 * stage.pageBytes + stage.pageBytes / 2)
        }
    }

    @Test("are not made for a client that does not read, which gets them all when it does")
    func backpressure() throws {
        try withStage { stage in
            let server = stage.server
            let begunBefore = stage.begun
            let numbers = try (0..<20).map { _ in try stage.alice.send(stage.request) }
            server.settle()
            server.settle()
            // Readers begin only the pages that the kernel accepts, the pages in the backlog, and
            // one page in flight.
            #expect(stage.begun - begunBefore <= 4)
            #expect(!stage.alice.isClosed)
            // Later requests stay unread, and the unread bytes do not count as an unfinished frame.
            let send = try stage.alice.send(PingRequest())
            server.settle()
            #expect(!stage.alice.hasReply(to: send))
            var rounds = 0
            while numbers.contains(where: { !stage.alice.hasReply(to: $0) }), rounds < 1_000 {
                server.settle()
                rounds += 1
            }
            #expect((numbers + [send]).allSatisfy { stage.alice.hasReply(to: $0) })
            #expect(stage.slowReadersClosed == 0)
        }
    }

    @Test("that nobody takes close the connection after a while, but not a slow one")
    func stalled() throws {
        try withStage { stage in
            let server = stage.server
            let numbers = try (0..<10).map { _ in try stage.alice.send(stage.request) }
            let timeout = Duration.milliseconds(Limits.standard.stalledReaderTimeoutMs)
            // The client reads a little from time to time.
            for _ in 0..<4 {
                server.settle()
                server.scheduler.advance(by: timeout * 0.7)
                stage.alice.look()
            }
            server.settle()
            #expect(stage.slowReadersClosed == 0)
            #expect(!numbers.allSatisfy { stage.alice.hasReply(to: $0) })
            // In the first round the server may still notice the previous read.
            for _ in 0..<2 {
                server.settle()
                server.scheduler.advance(by: timeout * 1.1)
                server.settle()
            }
            #expect(stage.slowReadersClosed == 1)
            try stage.bob.call(PingRequest())
        }
    }

    @Test("of a connection that is closed are not read")
    func gone() throws {
        try withStage { stage in
            let before = stage.begun
            let asked = SteppedClient.packet(stage.request, 7)
            try stage.alice.send(raw: asked + asked + Array(repeating: 0xFF, count: 20))
            stage.server.settle()
            #expect(stage.server.server.metrics.framesRefused.count == 1)
            #expect(stage.begun == before)
        }
    }

    @Test("are paid by their size, from the bucket of rows, and short ones by their rows alone")
    func price() throws {
        let limits = ["readBurst": 800, "readsPerMinute": 60]
        try withStage(limits: limits) { stage in
            // `fill` left fewer units than another page costs.
            let refused = try stage.alice.send(stage.request)
            stage.server.settle()
            #expect(stage.alice.hasReply(to: refused))
            #expect(stage.server.server.metrics.refusalCounts["too.many.requests"] == 1)
            // A request that another bucket pays for succeeds.
            try stage.alice.call(PingRequest())
            stage.server.scheduler.advance(by: .seconds(120))
            try stage.takePage()
            // Bob has a separate bucket, and his pages are short.
            for _ in 0..<10 { _ = try stage.bob.call(SessionsInfoRequest()) }
        }
    }
}
