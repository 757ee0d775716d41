import Foundation
import Glibc
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("Descriptors that run out")
struct DescriptorLimitTests {
    private func value(of metric: String, in lines: [String]) -> Int? {
        lines.first { $0.hasPrefix("tambour_\(metric) ") }
            .flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
    }

    /// Connects strangers one after another. A reply shows that the server has accepted the earlier
    /// connections.
    private func arrive(_ count: Int, at address: String) throws -> [WireClient] {
        try (1...count).map { number in
            let stranger = try WireClient(address: address)
            if number.isMultiple(of: 8) { try stranger.call(PingRequest()) }
            return stranger
        }
    }

    @Test("strangers who hold them all make room for others, and administrators are answered")
    func strangers() async throws {
        // The server must not inherit descriptors that the tests have open.
        let open = (0..<200).map { _ in dup(STDERR_FILENO) }
        defer { for descriptor in open { close(descriptor) } }
        let limits = ["maxStrangersPerAddress": 1_000_000]
        try await TambourdProcess.run(limits: limits, descriptors: 256) { server in
            let admin = AdminClient(dataDirectory: server.dataDirectory)
            var tokens: [String] = []
            _ = try admin.run(.createUsers(count: 1, firstPhone: 79_990_000_001)) { line in
                tokens.append(String(line.split(separator: " ")[2]))
            }
            let strangers = try arrive(600, at: server.address)
            // The server has closed the oldest connections and serves the newest.
            try strangers[0].waitForClose()
            _ = try strangers[599].call(SessionInitRequest(deviceID: "last"))
            // A member who logs in keeps the connection while more strangers arrive.
            let member = try WireClient(address: server.address)
            _ = try member.call(SessionInitRequest(deviceID: "member"))
            _ = try member.call(LoginRequest(token: tokens[0], interactive: true))
            let more = try arrive(600, at: server.address)
            try member.call(PingRequest())
            _ = try more[599].call(SessionInitRequest(deviceID: "last of all"))

            var lines: [String] = []
            _ = try admin.run(.metrics) { lines.append($0) }
            #expect(value(of: "sessions", in: lines) == 1)
            #expect((value(of: "connections", in: lines) ?? 0) < 192)
            let made = lines.first {
                $0.hasPrefix("tambour_strangers_closed_total{short=\"descriptors\"}")
            }
            #expect(made != nil && made?.hasSuffix(" 0") == false)
            lines = []
            _ = try admin.run(.stats(sinceDays: 1)) { lines.append($0) }
            #expect(lines.count > 5)
            #expect(server.errors.contains("file descriptors are nearly exhausted"))
            withExtendedLifetime((strangers, more)) {}
        }
    }
}
