import TambourClient
import Testing

/// Sending a photo takes three tasks. `resize` makes a small file, `upload` puts it on the server
/// and gets a token, and `send` names the token in a message. An upload continues at its last
/// offset; a token expires.
@Suite("A photo is sent through three tasks that depend on each other")
struct PhotoChainTests {
    private static let resize = TaskID(1)
    private static let upload = TaskID(2)
    private static let send = TaskID(3)
    private static let fileBytes = 100

    private var desk = TaskDesk()
    private var server = Server()

    /// The server does each operation once and stores its reply under the operation's key.
    private struct Server {
        var receivedBytes = 0
        var validToken: [UInt8] = []
        var tokens: [String: [UInt8]] = [:]
        var messages: [String: Int] = [:]

        /// Accepts bytes from the end of the last piece; returns a token once the file is whole.
        mutating func put(_ key: String, upTo bytes: Int) -> [UInt8]? {
            if let token = tokens[key] { return token }
            receivedBytes = bytes
            guard bytes == PhotoChainTests.fileBytes else { return nil }
            validToken = Array("token \(tokens.count)".utf8)
            tokens[key] = validToken
            return validToken
        }

        /// Returns false when the token has expired. A repeated key gives the same message.
        mutating func post(_ key: String, token: [UInt8]) -> Bool {
            if messages[key] != nil { return true }
            guard token == validToken else { return false }
            messages[key] = messages.count
            return true
        }
    }

    private mutating func queue() throws {
        var ids = ClientIDGenerator()
        let cid = ids.next(nowMs: desk.nowMs, random: 77)
        let tasks = [
            NewTask(id: Self.resize, kind: "resize", codecVersion: 1, payload: [], opKey: "r"),
            NewTask(
                id: Self.upload,
                kind: "upload",
                codecVersion: 1,
                payload: [],
                opKey: "u",
                requires: [.connected],
                dependencies: [Self.resize: .needs]
            ),
            NewTask(
                id: Self.send,
                kind: "send",
                codecVersion: 1,
                payload: Array("\(cid)".utf8),
                opKey: "cid:\(cid)",
                lane: "chat:5",
                requires: [.connected, .loggedIn],
                dependencies: [Self.upload: .refresh]
            ),
        ]
        _ = try desk.scheduler.insert(tasks, nowMs: desk.nowMs)
    }

    private mutating func runUpload() throws {
        let run = try desk.start(Self.upload)
        let key = try #require(desk.scheduler[Self.upload]?.requestKey)
        let stored = server.put(key, upTo: Self.fileBytes)
        let token = try #require(stored)
        try desk.complete(run, output: token)
    }

    private mutating func runSend() throws {
        let run = try desk.start(Self.send)
        let key = try #require(desk.scheduler[Self.send]?.requestKey)
        let token = try #require(desk.scheduler.inputs(of: Self.send)[Self.upload])
        if server.post(key, token: token) {
            try desk.complete(run)
        } else {
            try desk.expire(run)
        }
    }

    @Test("resized off-line, uploaded when connected, sent when logged in")
    mutating func conditions() throws {
        try queue()
        #expect(desk.startable() == [Self.resize])
        try desk.complete(desk.start(Self.resize))
        #expect(desk.startable().isEmpty)
        #expect(desk.startable(.connected) == [Self.upload])
        try runUpload()
        #expect(desk.startable(.connected).isEmpty)
        #expect(desk.startable([.connected, .loggedIn]) == [Self.send])
        try runSend()
        #expect(server.messages.count == 1)
        #expect(desk.scheduler.tasks.isEmpty)
    }

    @Test("an upload goes on where the network broke, in another life of the process")
    mutating func brokenUpload() throws {
        try queue()
        try desk.complete(desk.start(Self.resize))
        let run = try desk.start(Self.upload)
        let key = try #require(desk.scheduler[Self.upload]?.requestKey)
        let token = server.put(key, upTo: 40)
        #expect(token == nil)
        try desk.fail(run, .networkLost)

        desk.scheduler = TaskScheduler(
            records: desk.scheduler.tasks,
            dependencies: [
                TaskDependency(task: Self.send, on: Self.upload, mode: .refresh),
                TaskDependency(task: Self.upload, on: Self.resize, mode: .needs),
            ]
        )
        _ = desk.scheduler.wake(.connected)
        #expect(server.receivedBytes == 40)
        #expect(desk.scheduler[Self.upload]?.requestKey == key)
        try runUpload()
        try runSend()
        #expect(desk.scheduler.tasks.isEmpty)
    }

    @Test("a token that expired between upload and send is got again, and the message is sent once")
    mutating func expiredToken() throws {
        try queue()
        try desk.complete(desk.start(Self.resize))
        try runUpload()
        server.validToken = []
        try runSend()
        #expect(desk.state(Self.upload) == .ready)
        #expect(desk.state(Self.send) == .blocked)
        try runUpload()
        #expect(server.tokens.count == 2)
        try runSend()
        #expect(server.messages.count == 1)
        #expect(desk.scheduler.tasks.isEmpty)
    }

    @Test("killed between the reply and its commit, the message is still sent once")
    mutating func killed() throws {
        try queue()
        try desk.complete(desk.start(Self.resize))
        try runUpload()
        let run = try desk.start(Self.send)
        let stored = desk.scheduler
        let token = try #require(desk.scheduler.inputs(of: Self.send)[Self.upload])
        let key = try #require(desk.scheduler[Self.send]?.requestKey)
        let isSent = server.post(key, token: token)
        #expect(isSent)
        try desk.complete(run)

        desk.scheduler = stored
        desk.pass(ms: 30_000)
        try runSend()
        #expect(server.messages.count == 1)
    }

    @Test("a photo that cannot be uploaded fails the message, and one retry brings back all")
    mutating func rejected() throws {
        try queue()
        try desk.complete(desk.start(Self.resize))
        try desk.fail(desk.start(Self.upload), .never)
        #expect(desk.state(Self.send) == .failed(.dependency(Self.upload)))
        _ = try desk.scheduler.retry(Self.send)
        try runUpload()
        try runSend()
        #expect(server.messages.count == 1)
    }

    @Test("a message that is taken back takes its chain with it")
    mutating func cancelled() throws {
        try queue()
        try desk.complete(desk.start(Self.resize))
        let run = try desk.start(Self.upload)
        let chain = desk.scheduler.needed(for: Self.send) + [Self.send]
        _ = desk.scheduler.cancel(chain)
        #expect(desk.scheduler.tasks.map(\.id) == [Self.resize, Self.upload])
        try desk.complete(run)
        #expect(desk.scheduler.tasks.isEmpty)
        #expect(server.messages.isEmpty)
    }
}
