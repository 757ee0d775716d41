import TambourProtocol
import TambourSQL
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

/// A client that causes the same log line again and again must not fill the disk.
@Suite("Lines that are written once in a while")
struct ThrottledLinesTests {
    private func withSteppedServer(
        limits: [String: Int] = [:],
        _ body: (SteppedServer, SteppedClient) throws -> Void
    ) throws {
        let server = try SteppedServer(limits: limits, users: 1)
        defer { server.remove() }
        try body(server, try server.logIn())
    }

    private func lines(_ beginning: String, of server: SteppedServer) -> [String] {
        server.lines.all.filter { $0.hasPrefix(beginning) }
    }

    @Test("a reply or a push that is too long")
    func tooLong() throws {
        try withSteppedServer(limits: ["maxReplyBytes": 1_000]) { server, phone in
            let groups = try (Int64(1)...2).map { cid in
                let control = NewAttach(type: .control, title: "Group", event: "new", userIDs: [])
                let message = NewMessage(cid: cid, attaches: [control])
                return try phone.call(MsgSendRequest(message: message)).chatID
            }
            func change(_ digit: Int) throws {
                let tablet = try server.logIn(token: phone.token)
                let value = AnyValue(Text(String(repeating: "\(digit)", count: 200)))
                let settings = NameMap(
                    (0..<100).map { (Text("\($0)\(String(repeating: "n", count: 240))"), value) }
                )
                // The settings of one chat fit into a packet, but the settings of all chats
                // together do not.
                let chats = IDMap(([ChatID(0)] + groups).map { ($0, settings) })
                let number = try phone.send(ConfigRequest(settings: SettingsChange(chats: chats)))
                server.settle()
                #expect(phone.hasReply(to: number))
                tablet.look()
                #expect(tablet.isClosed)
            }
            for digit in 0..<4 { try change(digit) }
            #expect(server.server.metrics.repliesOverLimit.count == 4)
            #expect(server.server.metrics.pushesOverLimit.count == 4)
            let beginnings = ["a reply is too long", "a push is too long"]
            for beginning in beginnings { #expect(lines(beginning, of: server).count == 1) }
            server.scheduler.advance(by: .seconds(2))
            try change(4)
            for beginning in beginnings {
                let lines = lines(beginning, of: server)
                #expect(lines.count == 2)
                #expect(lines.last?.contains("\"suppressed\": 3") == true, "\(lines)")
            }
        }
    }

    @Test("a batch that the store refuses")
    func refusedBatches() throws {
        try withSteppedServer { server, phone in
            let path = "\(server.server.configuration.dataDirectory)/tambour.db"
            let full = """
                CREATE TRIGGER full BEFORE INSERT ON message
                BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END
                """
            try SQLiteConnection(path: path, mode: .readWrite).execute(full)
            func send(_ cid: Int64) throws {
                let number = try phone.send(
                    MsgSendRequest(chatID: ChatID(0), message: NewMessage(cid: cid, text: "x"))
                )
                server.settle()
                #expect(phone.hasReply(to: number))
            }
            for cid in Int64(1)...20 { try send(cid) }
            #expect(server.server.metrics.failedBatches.count >= 20)
            #expect(lines("a batch of", of: server).count == 1)
            server.scheduler.advance(by: .seconds(2))
            try send(21)
            #expect(lines("a batch of", of: server).count == 2)
        }
    }
}
