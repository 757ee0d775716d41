import Foundation

/// One run of a test with random input. `TAMBOUR_SEED` repeats an earlier run. `TAMBOUR_SOAK=1`
/// makes the run long.
package struct RandomRun {
    package let seed: UInt64
    package let count: Int
    package var random: SeededGenerator

    package init(_ name: String, count: Int, soak: Int) {
        let environment = ProcessInfo.processInfo.environment
        seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
        self.count = environment["TAMBOUR_SOAK"] == "1" ? soak : count
        random = SeededGenerator(seed: seed)
        // Print the seed at once, so that it is known even if the process crashes.
        print("\(name): \(self.count) rounds, TAMBOUR_SEED=\(seed)")
    }
}
