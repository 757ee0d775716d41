import ArgumentParser
import Foundation
import Synchronization
import TambourNet
import TambourProtocol
import TambourTLS
import TambourTesting

/// Measures how long a member waits while many strangers open TLS connections at once.
///
/// Each storm opens all its connections before it completes the first handshake, from several
/// addresses, because the server limits the strangers of one address. The member sends one PING
/// after the other while a storm lasts. The time of a PING is at least its wait in the server.
struct HandshakesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "handshakes",
        abstract: "Says how long a PING waits while many clients open TLS connections.",
        discussion: "Ends with 1 if the 99th percentile of the PINGs is above --most."
    )

    @Option(help: "The program of the server.")
    var tambourd = ".build/release/tambourd"

    @Option(help: "Handshakes at once.")
    var count = 2000

    @Option(help: "PINGs to measure; there are as many storms as they need.")
    var pings = 200

    @Option(help: "The time that 99 of 100 PINGs may take, milliseconds.")
    var most = 50.0

    @Option(help: "Where the server's data goes, a folder on a disk.")
    var scratch = ".build/bench/handshakes"

    private static let threads = 4

    func run() async throws {
        #if TLS
            let folder = URL(fileURLWithPath: scratch)
            try? FileManager.default.removeItem(at: folder)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let authority = try TestAuthority()
            let pair = try authority.issue("server", ["DNS:localhost"])
            let limits = folder.appendingPathComponent("limits.yaml")
            try Unhurried.file().write(to: limits, atomically: true, encoding: .utf8)
            let server = try ChildProcess(
                URL(fileURLWithPath: tambourd),
                [
                    "serve", "--data", folder.path, "--limits", limits.path, "--log-level", "error",
                    "--listen", "127.0.0.1:0", "--listen", "tls://127.0.0.1:0",
                    "--tls-certificate", pair.certificate, "--tls-key", pair.key,
                    "--login-codes", "fixed:111111",
                ]
            )
            guard let plain = await server.line(after: "listening tcp "),
                let secure = await server.line(after: "listening tls ")
            else { throw BenchError("the server does not listen: \(server.errors)") }
            defer { server.signal(SIGTERM) }
            let accounts = try TambourServer.makeUsers(
                1,
                firstPhone: 79_990_000_001,
                program: tambourd,
                directory: folder
            )
            let member = try WireClient(address: plain)
            _ = try member.call(accounts[0].hello)
            _ = try member.call(accounts[0].loginRequest())

            var times: [Double] = []
            var storms = 0
            var seconds = 0.0
            while times.count < pings {
                let storm = Storm(secure, try authority.pem(), count: count / Self.threads)
                let start = ContinuousClock.now
                storm.start(threads: Self.threads)
                while !storm.isOver {
                    let sent = ContinuousClock.now
                    try member.call(PingRequest())
                    times.append((ContinuousClock.now - sent) / .milliseconds(1))
                }
                try storm.check()
                seconds += (ContinuousClock.now - start) / .seconds(1)
                storms += 1
            }
            let counters = try ServerCounters(dataDirectory: folder.path).all()
            let full = counters["tambour_tls_handshakes_total{kind=\"full\"}"] ?? 0
            times.sort()
            let (p50, p99) = (times[times.count / 2], times[times.count * 99 / 100])
            print("storms of \(count) handshakes: \(storms), in \(format(seconds)) s")
            print("full handshakes: \(Int(full))")
            print("PINGs: \(times.count); p50 / p99: \(format(p50)) / \(format(p99)) ms")
            if p99 > most { throw ExitCode.failure }
        #else
            throw ValidationError("this program was built without TLS; build it with: --traits TLS")
        #endif
    }

    private func format(_ value: Double) -> String { String(format: "%.1f", value) }
}

#if TLS
    /// Many TLS connections, opened at once on several threads.
    private final class Storm: Sendable {
        private let address: String
        private let authority: String
        private let count: Int
        private let running = Atomic(0)
        private let failure = Mutex<(any Error)?>(nil)

        /// - Parameter count: the number of connections on each thread.
        init(_ address: String, _ authority: String, count: Int) {
            (self.address, self.authority, self.count) = (address, authority, count)
        }

        var isOver: Bool { running.load(ordering: .acquiring) == 0 }

        func start(threads: Int) {
            running.store(threads, ordering: .relaxed)
            for number in 0..<threads {
                Thread.detachNewThread { [self] in
                    do { try open(from: "127.0.0.\(number + 2)") } catch {
                        failure.withLock { $0 = error }
                    }
                    running.subtract(1, ordering: .releasing)
                }
            }
        }

        private func open(from source: String) throws {
            // Without a session to resume, each handshake is a full one.
            let connections = try (0..<count).map { _ in
                let layer = try TLSClient(.authorities(pem: authority))
                    .makeLayer(host: "localhost") { _ in }
                return (try WireClient(address: address, source: source, layer: layer), layer)
            }
            for (connection, layer) in connections {
                while layer.isOpening { try connection.waitForLayer() }
            }
        }

        func check() throws {
            if let error = failure.withLock({ $0 }) { throw error }
        }
    }
#endif
