import Foundation
import TambourTesting
import Testing

/// Acknowledged means stored, even if the server is killed or loses power under load.
///
/// The short form plays a few cycles; `TAMBOUR_SOAK=1` plays 200 of each kind. `TAMBOUR_SEED`
/// repeats the messages, the time of each cut and the lost bytes. The machine's timing still
/// decides which requests share a commit.
@Suite("Nothing acknowledged is lost, doubled or reordered", .serialized)
struct CrashTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let isSoak = environment["TAMBOUR_SOAK"] == "1"
    private static let seed =
        environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000)

    @Test("by kill -9")
    func kill() async throws {
        try await Self.play(.kill, Self.isSoak ? 200 : 6)
    }

    @Test("by power cuts that lose what was not synced")
    func powerCut() async throws {
        try await Self.play(.powerCut, Self.isSoak ? 200 : 6)
    }

    @Test("by power cuts while the data directory is made")
    func firstStart() async throws {
        var generator = SeededGenerator(seed: Self.seed)
        let all = Array(1...90)
        let operations = Self.isSoak ? all : Array(all.shuffled(using: &generator).prefix(2))
        for operation in operations {
            do {
                let world = try await CrashWorld(
                    seed: Self.seed &+ UInt64(operation),
                    firstCut: operation
                )
                defer { world.remove() }
                try await world.finish()
            } catch {
                Issue.record("TAMBOUR_SEED=\(Self.seed), operation \(operation): \(error)")
            }
        }
    }

    @Test("by SIGTERM, which answers what it took, empties the log and ends with 0")
    func stop() async throws {
        try await Self.play(.stop, Self.isSoak ? 40 : 2)
    }

    /// Proves that these tests can fail. A switch of debug builds makes the server run SQLite with
    /// `synchronous = NORMAL`. If the power-cut layer ignored some syncs instead, the test would
    /// prove only that the layer works.
    @Test("unless commits are not synced: with synchronous = NORMAL something is lost")
    func normalLoses() async throws {
        let world = try await CrashWorld(seed: Self.seed, synchronous: "NORMAL")
        defer { world.remove() }
        do {
            for _ in 0..<(Self.isSoak ? 40 : 20) { try await world.cycle(.powerCut) }
            Issue.record("TAMBOUR_SEED=\(Self.seed): NORMAL has lost nothing")
        } catch let failure as CrashWorld.Failure {
            #expect(failure.isLoss, "TAMBOUR_SEED=\(Self.seed): \(failure)")
            print("synchronous = NORMAL: \(failure)")
        }
    }

    private static func play(_ ending: CrashWorld.Ending, _ cycles: Int) async throws {
        let world = try await CrashWorld(seed: seed)
        do {
            for _ in 0..<cycles { try await world.cycle(ending) }
            try await world.finish()
            world.remove()
        } catch {
            Issue.record("TAMBOUR_SEED=\(seed): \(error); it is all in \(world.directory.path)")
        }
        print(
            """
            \(ending): \(world.cycles) cycles, TAMBOUR_SEED=\(seed); acknowledged: \
            \(world.acknowledgements) messages, \(world.otherAcknowledgements) edits, removals and \
            marks; \(world.pushesChecked) pushes looked up, \(world.repeated) sent again; \
            cut before listening \(world.cutsBeforeListening), while stopping \
            \(world.cutsWhileStopping)
            """
        )
        #expect(world.acknowledgements > 0)
    }
}
