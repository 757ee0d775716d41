import Foundation
import Synchronization
import TambourServer
import TambourTesting
import Testing

@testable import tambourd

/// What `tambourd` reports to systemd.
@Suite("Reports to systemd")
struct ServiceManagerTests {
    /// A socket that receives reports, as systemd has one for each unit.
    private final class ReportSocket: Sendable {
        let path: String
        private let socket: Int32

        init(at path: String) throws {
            self.path = path
            socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            let path = path.hasPrefix("@") ? "\0\(path.dropFirst())" : path
            let status = UnixSocket.address(path) { [socket] in bind(socket, $0, $1) }
            try #require(status == 0)
        }

        deinit { close(socket) }

        /// Returns the first line of the next report; nil if none arrives in time.
        func next(within seconds: Int = 60) -> String? {
            var time = timeval(tv_sec: seconds, tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, size)
            var bytes = [UInt8](repeating: 0, count: 1000)
            let count = recv(socket, &bytes, bytes.count, 0)
            guard count > 0 else { return nil }
            let text = String(decoding: bytes[..<count], as: UTF8.self)
            return text.split(separator: "\n").first.map(String.init)
        }

        /// Returns the next report that is not a keep-alive.
        func nextChange() -> String? {
            while let report = next() {
                if report != "WATCHDOG=1" { return report }
            }
            return nil
        }
    }

    @Test("a server reports when it is ready, alive, reloading and stopping")
    func wholeLife() async throws {
        let data = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(data) }
        let reports = try ReportSocket(at: "\(data)/notify")
        let child = try ChildProcess(
            TambourdProcess.program(),
            ["serve", "--data", "\(data)/var", "--listen", "127.0.0.1:0"],
            environment: ["NOTIFY_SOCKET": reports.path, "WATCHDOG_USEC": "400000"]
        )
        try #require(reports.next() == "READY=1", "\(child.errors)")
        // The listener was there before the report.
        #expect(await child.line(after: "listening tcp ") != nil)
        try #require(reports.next() == "WATCHDOG=1")
        try #require(reports.next() == "WATCHDOG=1")
        child.signal(SIGHUP)
        try #require(reports.nextChange() == "RELOADING=1")
        #expect(reports.nextChange() == "READY=1")
        child.signal(SIGTERM)
        #expect(reports.nextChange() == "STOPPING=1")
        #expect(try await child.exitStatus(within: .seconds(120)) == 0)
    }

    @Test("a server that hangs sends no keep-alive")
    func hanging() throws {
        let name = "@tambour-\(UUID())"
        let reports = try ReportSocket(at: name)
        let environment = ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "4000"]
        let manager = try #require(ServiceManager(environment: environment, processID: 1))
        let questions = Atomic(0)
        manager.watch { _ in
            // The server answers the fourth question.
            if questions.add(1, ordering: .relaxed).newValue < 4 { return false }
            return true
        }
        #expect(reports.next() == "WATCHDOG=1")
        #expect(questions.load(ordering: .relaxed) >= 4)
        withExtendedLifetime(manager) {}
    }

    @Test(
        "a watchdog of another process, a timeout of 0 and a socket of an unknown kind are ignored",
        arguments: [
            ["WATCHDOG_USEC": "4000", "WATCHDOG_PID": "2"], ["WATCHDOG_USEC": "0"],
            ["WATCHDOG_USEC": "-1"], ["WATCHDOG_USEC": "99999999999999999999"], [:],
        ]
    )
    func noWatchdog(_ variables: [String: String]) throws {
        let name = "@tambour-\(UUID())"
        let reports = try ReportSocket(at: name)
        let environment = variables.merging(["NOTIFY_SOCKET": name]) { $1 }
        let manager = try #require(ServiceManager(environment: environment, processID: 1))
        #expect(manager.watchdogMicroseconds == nil)
        manager.reportReady()
        #expect(reports.next() == "READY=1")
        for socket in ["", "vsock:2:1", "/none/notify", "@\(String(repeating: "a", count: 108))"] {
            let environment = ["NOTIFY_SOCKET": socket]
            #expect(ServiceManager(environment: environment, processID: 1) == nil)
        }
    }
}
