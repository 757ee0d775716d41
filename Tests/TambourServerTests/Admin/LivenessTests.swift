import Dispatch
import Foundation
import TambourMessenger
import TambourNet
import TambourQueues
import TambourTesting
import Testing

@testable import TambourGateway
@testable import TambourServer

/// `Server.isAlive`, on which the keep-alives for systemd's watchdog depend.
@Suite("Liveness of a server")
struct LivenessTests {
    /// The time to wait for an answer that never comes.
    private static let short = DispatchTimeInterval.milliseconds(50)
    private static let long = DispatchTimeInterval.seconds(120)

    /// Blocks a part of the server until `release`.
    private struct Obstacle {
        let gate = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)

        /// Starts `block`, and returns when it holds the part.
        init(_ block: @escaping @Sendable (_ hold: @escaping @Sendable () -> Void) -> Void) {
            let (gate, ended) = (gate, ended)
            let held = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                block {
                    held.signal()
                    gate.wait()
                }
                ended.signal()
            }
            held.wait()
        }

        func release() {
            gate.signal()
            ended.wait()
        }
    }

    @Test("a server is alive unless its engine or its lane hangs")
    func hanging() throws {
        let server = try TestServer(lanes: 1)
        defer { server.remove() }
        #expect(server.server.isAlive(within: Self.long))
        let engine = Obstacle { hold in
            try? server.server.messenger.write { _ in hold() }
        }
        #expect(!server.server.isAlive(within: Self.short))
        engine.release()
        #expect(server.server.isAlive(within: Self.long))
        let lane = Obstacle { hold in
            let done = DispatchSemaphore(value: 0)
            server.server.gateway.lanes[0].queue.async {
                hold()
                done.signal()
            }
            done.wait()
        }
        #expect(!server.server.isAlive(within: Self.short))
        lane.release()
        #expect(server.server.isAlive(within: Self.long))
    }

    @Test("a server is alive while commands wait for a rewrite of its store")
    func rewriting() throws {
        let server = try TestServer()
        defer { server.remove() }
        let engine = Obstacle { hold in
            try? server.server.messenger.write { _ in hold() }
        }
        let rewritten = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            _ = try? server.server.messenger.vacuum()
            rewritten.signal()
        }
        let deadline = ContinuousClock.now + .seconds(120)
        while !server.server.messenger.isVacuuming, ContinuousClock.now < deadline {
            sched_yield()
        }
        #expect(server.server.isAlive(within: Self.short))
        engine.release()
        rewritten.wait()
        #expect(!server.server.messenger.isVacuuming)
        #expect(server.server.isAlive(within: Self.long))
    }

    @Test("root is refused in the directory of another user", .enabled(if: geteuid() == 0))
    func owner() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        try #require(chown(directory, 65_534, 65_534) == 0)
        let failure = #expect(throws: DataDirectory.Failure.self) {
            _ = try DataDirectory(directory)
        }
        #expect(failure?.description.contains("tambourd") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    }
}
