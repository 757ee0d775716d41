import Foundation
import TambourProtocol
import TambourTesting
import Testing

/// The server has stored every command that it acknowledged, even if it is killed while commands
/// are in flight.
///
/// The short form plays a few kills, `TAMBOUR_SOAK=1` plays 300. `TAMBOUR_SEED` repeats the kills,
/// although thread timing still varies.
@Suite("Nothing acknowledged is lost or doubled, whatever the command", .serialized)
struct CommandCrashTests {
    private static let environment = ProcessInfo.processInfo.environment
    /// `TAMBOUR_KILLS` sets the number of kills.
    private static let kills =
        environment["TAMBOUR_KILLS"].flatMap { Int($0) }
        ?? (environment["TAMBOUR_SOAK"] == "1" ? 300 : 6)
    private static let seed =
        environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000)

    /// Commands that the test does not play, with the reason.
    private static let exceptions: [Opcode: String] = [:]

    @Test("by kill -9 under a load of all commands")
    func kill() async throws {
        // Make password checks fast: their cost has nothing to do with commits.
        let limits = ["loginRefusalDelayMs": 1, "passwordHashLogRounds": 4]
        let arguments = [
            "--login-codes", "fixed:\(CommandWorld.code)", "--log-level", "error",
            "--registration", "invite", "--user-invitations", "1000",
        ]
        let start = ContinuousClock.now
        try await TambourdProcess.run(limits: limits, arguments: arguments) { server in
            let world = CommandWorld(server, seed: Self.seed)
            defer { world.remove() }
            do {
                try await blocking { try world.setUp() }
                try await world.cycle(with: Self.played)
                while world.kills < Self.kills {
                    try await world.cycle()
                    if world.kills % 10 == 0 {
                        print("\(world.kills) kills, \(Self.total(world)) acknowledged")
                    }
                }
                try await world.finish()
            } catch {
                Issue.record("TAMBOUR_SEED=\(Self.seed), after kill \(world.kills): \(error)")
            }
            Self.report(world, ContinuousClock.now - start)
            Self.checkAllArePlayed(world)
        }
    }

    /// All commands of the specification except `exceptions`. A new command must be played or added
    /// to `exceptions`.
    private static let played = Set(
        OpInfo.table.compactMap { $0 }.filter { $0.kind == .command }.map(\.opcode)
    ).subtracting(exceptions.keys)

    private static func checkAllArePlayed(_ world: CommandWorld) {
        #expect(!played.isEmpty)
        let missing = played.subtracting(world.acknowledged.keys).map(\.description).sorted()
        #expect(missing.isEmpty, "never acknowledged: \(missing)")
        let needless = exceptions.keys.filter { world.acknowledged[$0] != nil }
        #expect(needless.isEmpty, "played and excused: \(needless)")
    }

    private static func total(_ world: CommandWorld) -> Int {
        world.acknowledged.values.reduce(0, +)
    }

    private static func report(_ world: CommandWorld, _ duration: Duration) {
        let counts = world.acknowledged.sorted { $0.value > $1.value }
            .map { "\($0.key) \($0.value)" }
        print(
            """
            \(world.kills) kills in \(duration.components.seconds) s, TAMBOUR_SEED=\(seed); \
            \(world.pushed) changes pushed; in flight at kills: \(world.inFlight.stored) stored, \
            \(world.inFlight.notStored) not; \(total(world)) commands acknowledged: \
            \(counts.joined(separator: ", "))
            """
        )
    }
}
