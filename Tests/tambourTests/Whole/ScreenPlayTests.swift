import Foundation
import Testing

@testable import tambour

/// Tests that two devices of an account and a fresh third device show the same, whatever the people
/// did before.
///
/// Each play depends on its seed and on the scheduling of its threads. `TAMBOUR_SEED=17` plays seed
/// 17. `TAMBOUR_RUNS` sets how many seeds to play from there. `TAMBOUR_SOAK=1` plays 2,000 seeds.
/// `ParsedScreen` lists what may differ.
@Suite("The screens of one account", .serialized)
struct ScreenPlayTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let isSoak = environment["TAMBOUR_SOAK"] == "1"
    private static let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
    private static let runs = environment["TAMBOUR_RUNS"].flatMap { Int($0) }
    /// Whether the program contains a mutant. The tests only have to notice it, so the run ends at
    /// the first difference.
    private static let isMutant = environment["TAMBOUR_MUTANT"] != nil
    private static let steps = 40
    /// If a run has at least this many plays, every act must occur in it.
    private static let manyPlays = 100
    /// The number of plays that run at the same time. A play often waits for its threads.
    private static let atOnce = 2

    /// The results of several plays.
    private struct Results: Sendable {
        var failures: [String] = []
        var plays = 0
        var played: [String: Int] = [:]
        var panelTriggers: Set<String> = []

        mutating func add(_ other: Results) {
            failures += other.failures
            plays += other.plays
            played.merge(other.played) { $0 + $1 }
            panelTriggers.formUnion(other.panelTriggers)
        }
    }

    @Test("show the same, whatever was done before with keys")
    func sequences() async throws {
        let count = Self.runs ?? (Self.seed != nil ? 1 : Self.isSoak ? 2_000 : 6)
        let first = Self.seed ?? 1
        print("screens: \(count) plays from TAMBOUR_SEED=\(first)")
        let start = ContinuousClock.now
        let results = await Self.play((0..<UInt64(count)).map { first + $0 })
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let acts = results.played.values.reduce(0, +)
        print("screens: \(results.plays) plays, \(acts) acts, \(Int(seconds)) s")
        for failure in results.failures { Issue.record("\(failure)") }
        let unknown = results.panelTriggers.subtracting(Act.triggers)
        #expect(unknown.isEmpty, "keys of panels without an act")
        if results.plays >= Self.manyPlays {
            let idle = Act.all.map(\.name).filter { results.played[$0] == nil }
            #expect(idle.isEmpty, "acts that no play contains")
        }
    }

    @Test("have an act for every command and every action of a key")
    func coverage() {
        let missing = Set(Act.required).subtracting(Act.triggers)
        #expect(missing.isEmpty, "without an act")
        let outdated = Act.triggers.filter { !$0.contains(": ") }.subtracting(Act.required)
        #expect(outdated.isEmpty, "acts of commands and actions that do not exist")
        #expect(Set(Act.all.map(\.name)).count == Act.all.count)
        // The help must contain every command.
        let help = Help.lines(KeyBindings()).joined(separator: "\n")
        for command in ScreenCommand.all { #expect(help.contains("/\(command.name) ")) }
    }

    /// Plays all seeds, a few at the same time. Stops when too many plays have failed.
    private static func play(_ seeds: [UInt64]) async -> Results {
        let enough = isMutant ? 1 : 5
        return await withTaskGroup(of: Results.self) { group in
            var results = Results()
            var rest = seeds[...]
            for seed in rest.prefix(atOnce) { group.addTask { await play(seed) } }
            rest = rest.dropFirst(atOnce)
            for await result in group {
                results.add(result)
                if results.failures.count >= enough { rest = [] }
                if let seed = rest.popFirst() { group.addTask { await play(seed) } }
            }
            return results
        }
    }

    private static func play(_ seed: UInt64) async -> Results {
        var results = Results(plays: 1)
        let play: ScreenPlay
        do {
            play = try await ScreenPlay(seed: seed)
        } catch {
            results.failures = ["TAMBOUR_SEED=\(seed): \(error)"]
            return results
        }
        do {
            try await play.run(steps: steps)
        } catch {
            let story = play.story.joined(separator: "; ")
            results.failures = ["TAMBOUR_SEED=\(seed): \(error)\n  after \(story)"]
        }
        results.played = play.played
        results.panelTriggers = play.panelTriggers
        await play.remove()
        return results
    }
}
