import Dispatch
import Foundation
import Synchronization
import TambourTesting
import Testing

/// The cores of client and server, with everything between them, in one thread and driven by one
/// seed.
///
/// `TAMBOUR_SEED` plays this one seed. With `TAMBOUR_RUNS`, the tests play this number of seeds
/// instead, beginning with the same seed. `TAMBOUR_SOAK=1` plays 10,000 seeds.
@Suite("a simulated messenger", .serialized)
struct SimulationTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let replayed = (0..<UInt64(runs ?? 3)).map {
        (seed ?? Plan.first) + $0
    }
    private static let isLong = environment["TAMBOUR_SOAK"] == "1"
    private static let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
    private static let runs = environment["TAMBOUR_RUNS"].flatMap { Int($0) }
    /// Whether the tests run against a mutant. Only its detection matters, so the run stops at the
    /// first failure and does not shrink the plan.
    private static let isMutant = environment["TAMBOUR_MUTANT"] != nil

    @Test("the same seed gives the same events", arguments: replayed)
    func replay(seed: UInt64) {
        let plan = Plan(seed: seed)
        let first = Run.play(plan)
        let second = Elsewhere(seed: seed).play(plan)
        if let parted = zip(first.trace, second.trace).enumerated().first(where: { $1.0 != $1.1 }) {
            Issue.record("the plays part before event \(parted.offset)")
        }
        #expect(first.hash == second.hash)
        #expect(first.trace.count == second.trace.count)
        #expect(first.hash != Run.play(Plan(seed: seed + 1000)).hash)
    }

    @Test("whatever happens, all devices end with what the server has")
    func converge() {
        let count = Self.runs ?? (Self.seed != nil ? 1 : Self.isLong ? 10_000 : 80)
        let first = Self.seed ?? Plan.first + (Self.isLong ? 1000 : 0)
        print("simulation: \(count) seeds from TAMBOUR_SEED=\(first)")
        let start = ContinuousClock.now
        let results = Self.play((0..<UInt64(count)).map { first + $0 })
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let seedRate = String(format: "%.1f", Double(results.seeds) / seconds)
        print(
            """
            \(results.seeds) seeds, \(results.events) events in \(Int(seconds)) s: \(seedRate) \
            seeds, \(Int(Double(results.events) / seconds)) events a second
            \(results.faults.table)
            """
        )
        Self.tell(results.failures)
        guard count >= 10_000 else { return }
        for fault in Fault.allCases {
            #expect(results.faults[fault] >= 100, "\(fault.rawValue)")
        }
    }

    @Test("what once failed does so no more")
    func regressions() throws {
        let path = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Regressions/seeds.txt")
        let text = try String(contentsOf: path, encoding: .utf8)
        let seeds = text.split(separator: "\n").compactMap { UInt64($0.prefix { $0.isNumber }) }
        Self.tell(Self.play(seeds).failures)
    }

    private static func tell(_ failures: [Outcome]) {
        for failure in failures {
            print("TAMBOUR_SEED=\(failure.seed): \(failure.violations.first ?? "")")
        }
        for failure in failures.prefix(3) {
            let words = failure.violations.joined(separator: "\n  ")
            let plain = "TAMBOUR_SEED=\(failure.seed): \(words)"
            Issue.record("\(isMutant ? plain : Run.report(failure, name: "shrink"))")
        }
        #expect(failures.map(\.seed) == [])
    }

    private struct Results {
        var failures: [Outcome] = []
        var faults = FaultCounts()
        var events = 0
        var seeds = 0
    }

    /// Plays the seeds in parallel, one thread per processor, until too many have failed.
    private static func play(_ seeds: [UInt64]) -> Results {
        let results = Mutex(Results())
        let next = Atomic<Int>(0)
        let enough = isMutant ? 1 : 20
        _ = Templates.shared
        DispatchQueue.concurrentPerform(iterations: ProcessInfo.processInfo.activeProcessorCount) {
            thread in
            while results.withLock({ $0.failures.count }) < enough {
                let place = next.add(1, ordering: .relaxed).oldValue
                guard place < seeds.count else { return }
                let outcome = Run.play(Plan(seed: seeds[place]), name: "thread-\(thread)")
                results.withLock { results in
                    results.seeds += 1
                    results.events += outcome.events
                    results.faults.add(outcome.faults)
                    if !outcome.violations.isEmpty { results.failures.append(outcome) }
                }
            }
        }
        return results.withLock { $0 }
    }
}

/// Plays with a different memory layout and other descriptors, because a play must not depend on
/// addresses.
private final class Elsewhere {
    private var memory: [[UInt8]] = []
    private var descriptors: [Int32] = []

    init(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<10_000 {
            memory.append([UInt8](repeating: 1, count: 1 + random.below(2000)))
            if random.chance(500, in: 1000) { memory.remove(at: random.below(memory.count)) }
        }
        for _ in 0...random.below(50) { descriptors.append(dup(0)) }
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    func play(_ plan: Plan) -> Outcome {
        let outcome = Run.play(plan)
        // Keep the memory alive until here.
        memory = []
        return outcome
    }
}
