import Dispatch
import Foundation
import Logging
import Synchronization
import TambourNet
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

@Suite("The admin socket")
struct AdminSocketTests {
    @Test("is its owner's alone")
    func mode() throws {
        try withServer { server in
            let attributes = try FileManager.default.attributesOfItem(
                atPath: "\(server.dataDirectory)/admin.sock"
            )
            #expect((attributes[.posixPermissions] as? Int) == 0o600)
        }
    }

    /// An administrator who connects and sends the test's commands.
    private final class Visitor {
        private let socket: Int32

        init(_ server: TestServer) throws {
            socket = try #require(UnixSocket.connect("\(server.dataDirectory)/admin.sock"))
            UnixSocket.setTimeouts(socket, seconds: 60)
        }

        deinit { close(socket) }

        func say(_ text: String) { UnixSocket.write(socket, text) }

        /// Whether the connection is open and no answer has arrived.
        var isUnanswered: Bool {
            var byte: UInt8 = 0
            return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0
        }

        func answer() -> [String] {
            var reader = UnixSocket.LineReader(socket)
            var lines: [String] = []
            while let line = reader.next() { lines.append(line) }
            return lines
        }
    }

    @Test("a silent connection keeps nobody waiting")
    func silent() throws {
        try withServer { server in
            let silent = try Visitor(server)
            let slow = try Visitor(server)
            slow.say("metr")
            // A server that handled connections one by one would close the silent ones before it
            // sent this answer.
            #expect(try server.admin(.metrics).contains { $0.hasPrefix("tambour_connections ") })
            #expect(silent.isUnanswered && slow.isUnanswered)
            slow.say("ics\n")
            #expect(slow.answer().last == "=")
            #expect(silent.isUnanswered)
        }
    }

    @Test("a connection that does not take its answer keeps nobody waiting")
    func deaf() throws {
        try withServer { server in
            _ = try server.admin(.createUsers(count: 8_000, firstPhone: 79_990_500_000))
            let deaf = try Visitor(server)
            deaf.say("users\n")
            for _ in 0..<3 { _ = try server.admin(.metrics) }
            #expect(deaf.answer().count == 8_001)
        }
    }

    @Test("the oldest silent connection makes room")
    func bound() throws {
        try withServer(limits: ["maxAdminConnections": 3]) { server in
            let silent = try (0..<3).map { _ in try Visitor(server) }
            #expect(try server.admin(.clock).count == 1)
            #expect(silent[0].answer().first?.hasPrefix("!") == true)
            #expect(silent[1].isUnanswered && silent[2].isUnanswered)
        }
    }

    @Test("what is no command, too long or not ended is refused")
    func nonsense() throws {
        try withServer { server in
            let visitors = try (0..<3).map { _ in try Visitor(server) }
            visitors[0].say("nonsense\n")
            visitors[1].say(String(repeating: "x", count: 41_000))
            visitors[2].say("metrics\nmetrics\n")
            for visitor in visitors[..<2] {
                #expect(visitor.answer() == ["!not an admin command", "="])
            }
            #expect(visitors[2].answer().count { $0 == "=" } == 1)
        }
    }
}

@Suite("An acceptor without descriptors")
struct ExhaustedAcceptorTests {
    @Test("asks the system once and then pauses, whatever waits at the door")
    func pauses() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let path = "\(directory)/door"
        let queue = DispatchQueue(label: "test acceptor")
        let attempts = Atomic<Int>(0)
        let warned = DispatchSemaphore(value: 0)
        let acceptor = Acceptor(
            descriptor: try UnixSocket.listen(path),
            queue: queue,
            pauseWhenExhausted: .seconds(1000)
        ) { _ in
            attempts.add(1, ordering: .relaxed)
            return .failed(EMFILE)
        }
        acceptor.start {
            warned.signal()
        } onAccept: { _, _ in
            Issue.record("nothing can be accepted")
        }
        let visitors = try (0..<5).map { _ in try #require(UnixSocket.connect(path)) }
        defer { for visitor in visitors { close(visitor) } }
        #expect(warned.wait(timeout: .now() + 120) == .success)
        // If the dispatch source were not suspended, it would fire between two of these blocks.
        for _ in 0..<1000 { queue.sync {} }
        #expect(attempts.load(ordering: .relaxed) == 1)
        #expect(acceptor.exhaustedCount == 1)
        acceptor.stop()
    }
}
