import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

/// The server does one piece of work at each step of a test. The tests can therefore count frames
/// and need not measure time.
@Suite("Fairness between connections")
struct FairnessTests {
    private func withSteppedServer(
        limits: [String: Int] = [:],
        users: Int = 0,
        _ body: (SteppedServer) throws -> Void
    ) throws {
        let server = try SteppedServer(limits: limits, users: users)
        defer { server.remove() }
        try body(server)
    }

    private func logs(handledBy server: SteppedServer) -> Int {
        server.server.metrics.requestCounts[Opcode.log.rawValue] ?? 0
    }

    /// Runs the server until the reply arrives.
    ///
    /// - Returns: The number of LOG frames handled in between.
    private func frames(
        before number: UInt16,
        of client: SteppedClient,
        on server: SteppedServer
    ) throws -> Int {
        let before = logs(handledBy: server)
        server.poke()
        for _ in 0..<100_000 where !client.hasReply(to: number) {
            guard server.scheduler.step() else { break }
        }
        try #require(client.hasReply(to: number))
        return logs(handledBy: server) - before
    }

    private static let burst = SteppedClient.packet(LogRequest(events: []))
    private static let burstFrames = 64 * 1024 / burst.count

    @Test(
        "a stranger's 64 KB keep a PING waiting for the frames of one turn"
    )
    func oneStranger() throws {
        try withSteppedServer(users: 1) { server in
            let alice = try server.logIn()
            let stranger = try server.connect(from: "10.6.6.6")
            let limits = Limits.standard
            try stranger.send(raw: (0..<Self.burstFrames).flatMap { _ in Self.burst })
            // Send a PING before the server handles the burst, and repeatedly while it does.
            for _ in 0..<20 {
                let ping = try alice.send(PingRequest())
                let handled = try frames(before: ping, of: alice, on: server)
                #expect(handled <= limits.maxTurnFramesBeforeLogin)
                for _ in 0..<3 { server.scheduler.step() }
            }
            #expect(logs(handledBy: server) < Self.burstFrames)
            // The server continues as long as the client reads the replies.
            for _ in 0..<10 {
                server.settle()
                stranger.look()
            }
            #expect(logs(handledBy: server) == Self.burstFrames)
        }
    }

    @Test("forty strangers keep a PING waiting for the work of one round")
    func fortyStrangers() throws {
        try withSteppedServer(users: 1) { server in
            let alice = try server.logIn()
            let strangers = try (0..<40).map { try server.connect(from: "10.6.6.\($0)") }
            for stranger in strangers {
                try stranger.send(raw: (0..<Self.burstFrames).flatMap { _ in Self.burst })
            }
            // A frame counts as at least 256 bytes, and a turn finishes once it has begun.
            let most =
                Limits.standard.maxStrangerBytesPerRound / 256
                + Limits.standard.maxTurnFramesBeforeLogin
            for _ in 0..<20 {
                let ping = try alice.send(PingRequest())
                #expect(try frames(before: ping, of: alice, on: server) <= most)
                for _ in 0..<3 { server.scheduler.step() }
            }
            server.settle()
            #expect(logs(handledBy: server) == 40 * Self.burstFrames)
        }
    }

    @Test("what inflates counts as what it becomes")
    func inflated() throws {
        try withSteppedServer(users: 1) { server in
            let alice = try server.logIn()
            let stranger = try server.connect(from: "10.6.6.6")
            let type = Text(String(repeating: "x", count: 200))
            let payload = LogRequest(events: (0..<35).map { _ in LogEvent(type: type) }).encoded()
            #expect(payload.count > 7_000 && payload.count <= 8_192)
            let block = try #require(payload.withUnsafeBytes { LZ4.compress($0) })
            var header = [UInt8](repeating: 0, count: PacketHeader.size)
            header.withUnsafeMutableBytes { bytes in
                PacketHeader(
                    command: PacketCommand.request.rawValue,
                    sequence: 1,
                    opcode: Opcode.log.rawValue,
                    flags: UInt8(payload.count / block.count + 1),
                    length: block.count
                ).write(to: bytes)
            }
            #expect(block.count < 300)
            try stranger.send(raw: (0..<100).flatMap { _ in header + block })
            for _ in 0..<20 {
                let ping = try alice.send(PingRequest())
                // Two frames exceed the bytes of a turn.
                #expect(try frames(before: ping, of: alice, on: server) <= 2)
            }
            server.settle()
            #expect(logs(handledBy: server) == 100)
        }
    }

    @Test("a member's burst keeps another one waiting for the frames of one turn")
    func member() throws {
        try withSteppedServer(users: 2) { server in
            let (alice, bob) = (try server.logIn(), try server.logIn())
            try bob.send(raw: (0..<Self.burstFrames).flatMap { _ in Self.burst })
            for _ in 0..<10 {
                let ping = try alice.send(PingRequest())
                let handled = try frames(before: ping, of: alice, on: server)
                #expect(handled <= Limits.standard.maxTurnFrames)
            }
            server.settle()
            #expect(logs(handledBy: server) == Self.burstFrames)
        }
    }

    @Test("a member's bursts on four connections keep another one waiting for one turn")
    func memberWithConnections() throws {
        try withSteppedServer(users: 2) { server in
            let (alice, bob) = (try server.logIn(), try server.logIn())
            let crowd = try [bob] + (0..<3).map { _ in try server.logIn(token: bob.token) }
            for client in crowd { try client.send(raw: (0..<1_000).flatMap { _ in Self.burst }) }
            for _ in 0..<10 {
                let ping = try alice.send(PingRequest())
                let handled = try frames(before: ping, of: alice, on: server)
                #expect(handled <= Limits.standard.maxTurnFrames)
            }
            server.settle()
            #expect(logs(handledBy: server) == 4_000)
        }
    }

    @Test("what waits for its turn is no frame that does not end")
    func deadline() throws {
        try withSteppedServer(limits: ["partialFrameTimeoutMs": 50]) { server in
            let stranger = try server.connect()
            try stranger.send(raw: (0..<200).flatMap { _ in Self.burst })
            server.poke()
            for _ in 0..<200 {
                server.scheduler.step()
                server.scheduler.advance(by: .milliseconds(10))
            }
            server.settle()
            stranger.look()
            #expect(!stranger.isClosed)
            #expect(logs(handledBy: server) == 200)
            // The server closes the connection if a frame stays incomplete.
            try stranger.send(raw: [10, 0])
            server.settle()
            server.scheduler.advance(by: .milliseconds(100))
            server.settle()
            server.scheduler.advance(by: .seconds(2))
            server.settle()
            stranger.look()
            #expect(stranger.isClosed)
        }
    }

    @Test("how long requests waited is counted where their work is done")
    func queueTimes() throws {
        try withSteppedServer(users: 2) { server in
            let bob = try server.logIn().userID
            let alice = try server.logIn()
            try alice.call(PingRequest())
            let dialog = ChatID.dialog(alice.userID, bob)
            try alice.call(MsgSendRequest(chatID: dialog, message: NewMessage(cid: 1, text: "x")))
            _ = try alice.call(ChatsListRequest(marker: 0))
            let times = server.server.metrics.queueTimes
            #expect(times.histogram(.lane, isStranger: true).count == 2)
            #expect(times.histogram(.lane, isStranger: false).count == 1)
            #expect(times.histogram(.login, isStranger: true).count == 2)
            #expect(times.histogram(.engine, isStranger: false).count == 1)
            #expect(times.histogram(.reader, isStranger: false).count == 1)
        }
    }

    @Test("broken frames write one line in a while, which says how many others there were")
    func brokenFrames() throws {
        try withSteppedServer { server in
            func breakOne() throws {
                let stranger = try server.connect()
                try stranger.send(raw: Array(repeating: 0xFF, count: 20))
                server.settle()
            }
            func lines() -> [String] { server.lines.all.filter { $0.hasPrefix("broken frame") } }
            for _ in 0..<50 { try breakOne() }
            #expect(lines().count == 1)
            #expect(server.server.metrics.framesRefused.count == 50)
            server.scheduler.advance(by: .seconds(2))
            try breakOne()
            #expect(lines().count == 2)
            #expect(lines().last?.contains("\"suppressed\": 49") == true)
        }
    }
}
