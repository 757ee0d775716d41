import TambourNet
import TambourProtocol
import Testing

@testable import TambourGateway
@testable import TambourMessenger
@testable import TambourServer

/// The order in which strangers make room, and the cost of keeping that order.
@Suite("The lines of strangers")
struct StrangerLinesTests {
    private static let address = PeerAddress("10.0.0.1")

    /// Runs `body` with empty lines, and a function that makes sessions without connections.
    private func withLines(
        limits: [String: Int] = [:],
        _ body: (Strangers, _ session: () -> Session) throws -> Void
    ) throws {
        let server = try SteppedServer()
        defer { server.remove() }
        let gateway = LaneGateway(
            lane: server.server.gateway.lanes[0],
            shared: server.server.gateway.shared,
            rules: .none
        )
        try body(Strangers(limits: try Limits(overrides: limits))) { Session(gateway: gateway) }
    }

    @Test("a first LOGIN under way goes after all others, of an address and of everybody")
    func loggingInGoesLast() throws {
        let limits = ["maxStrangersPerAddress": 2, "strangerGraceMs": 10]
        try withLines(limits: limits) { strangers, session in
            let sessions = (0..<6).map { _ in session() }
            func enter(_ index: Int, atMs time: Int64) -> [Int] {
                let leaving = strangers.entered(
                    sessions[index],
                    id: UInt64(index),
                    address: Self.address,
                    stage: .silent,
                    nowMs: time
                )
                return leaving.compactMap { gone in sessions.firstIndex { $0 === gone } }
            }
            #expect(enter(0, atMs: 0) == [])
            strangers.moved(0, to: .loggingIn)
            #expect(enter(1, atMs: 0) == [])
            #expect(enter(2, atMs: 100) == [1])
            #expect(enter(3, atMs: 105) == [0], "nobody else is old enough")
            #expect(enter(4, atMs: 200) == [2])
            strangers.moved(3, to: .loggingIn)
            #expect(strangers.takeOldest(nowMs: 300) === sessions[4])
            #expect(strangers.takeOldest(nowMs: 300) === sessions[3])
            #expect(strangers.takeOldest(nowMs: 300) == nil)
        }
    }

    @Test("a LOGIN after a refused one protects nobody")
    func laterLogins() throws {
        try withLines { strangers, session in
            let sessions = (0..<2).map { _ in session() }
            for (id, session) in sessions.enumerated() {
                _ = strangers.entered(
                    session,
                    id: UInt64(id),
                    address: Self.address,
                    stage: .talking,
                    nowMs: 0
                )
            }
            strangers.moved(1, to: .loggingIn)
            strangers.moved(0, to: .loggingIn)
            strangers.refused(0)
            strangers.moved(0, to: .loggingIn)
            #expect(strangers.takeOldest(nowMs: 0) === sessions[0])
        }
    }

    @Test(
        "a move costs the same among a hundred and among a thousand",
        arguments: [100, 1000]
    )
    func moves(crowd: Int) throws {
        try withLines(limits: ["maxStrangersPerAddress": 10_000]) { strangers, session in
            let session = session()
            for id in 0..<crowd {
                _ = strangers.entered(
                    session,
                    id: UInt64(id),
                    address: Self.address,
                    stage: .talking,
                    nowMs: 0
                )
            }
            var moves = 0
            for id in 0..<crowd {
                for _ in 0..<10 {
                    strangers.moved(UInt64(id), to: .talking)
                    strangers.moved(UInt64(id), to: .loggingIn)
                    moves += 2
                }
            }
            #expect(strangers.looks <= 3 * moves)
            #expect(strangers.count == crowd)
        }
    }
}
