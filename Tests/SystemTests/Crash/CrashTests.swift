import Foundation
import Testing

/// Acknowledged means stored: servers that are killed and cut off under load.
///
/// The short form plays a few cycles; `TAMBOUR_SOAK=1` plays 200 of each. `TAMBOUR_SEED` replays.
@Suite("Nothing acknowledged is lost, doubled or reordered", .serialized)
struct CrashTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let isSoak = environment["TAMBOUR_SOAK"] != nil
    private static let cycles = isSoak ? 200 : 5
    private static let seed =
        environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000)

    @Test("by kill -9")
    func kill() async throws {
        try await Self.play(.kill)
    }

    @Test("by power cuts that lose what was not synced")
    func powerCut() async throws {
        try await Self.play(.powerCut)
    }

    private static func play(_ ending: CrashWorld.Ending) async throws {
        let world = try await CrashWorld(seed: seed)
        defer { world.remove() }
        do {
            for _ in 0..<cycles { try await world.cycle(ending) }
        } catch {
            Issue.record("TAMBOUR_SEED=\(seed): \(error)")
        }
        if isSoak {
            print("\(ending): \(world.cuts) cuts, \(world.acknowledgements) acknowledged messages")
        }
        #expect(world.acknowledgements > 0)
    }

    /// The proof that the cycles can fail: with `synchronous = NORMAL` commits are not synced.
    @Test("and with synchronous = NORMAL something is", .enabled(if: isSoak))
    func normalLoses() async throws {
        let world = try await CrashWorld(seed: Self.seed, synchronous: "NORMAL")
        defer { world.remove() }
        await #expect(throws: CrashWorld.Failure.self) {
            for _ in 0..<40 { try await world.cycle(.powerCut) }
        }
    }
}
