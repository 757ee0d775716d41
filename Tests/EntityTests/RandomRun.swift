import Foundation
import TambourTesting
import Testing

/// An error that a test has found in a random case.
struct Fault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Tests one property with random cases. Each case depends only on its seed.
///
/// `TAMBOUR_SEED=17` plays only case 17, `TAMBOUR_SOAK=1` plays many more cases.
enum RandomRun {
    private static let environment = ProcessInfo.processInfo.environment
    private static let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) }

    /// Whether the run plays all cases, not only the one in `TAMBOUR_SEED`.
    static var isWhole: Bool { seed == nil }

    static func play<Case, Step: CustomStringConvertible>(
        count: Int,
        soak: Int,
        make: (inout SeededGenerator) -> (Case, [Step]),
        check: (Case, [Step]) throws -> Void
    ) {
        let total = environment["TAMBOUR_SOAK"] == "1" ? soak : count
        let seeds = seed.map { $0...$0 } ?? 1...UInt64(total)
        for seed in seeds {
            var random = SeededGenerator(seed: seed)
            let (subject, steps) = make(&random)
            guard fault(subject, steps, check) != nil else { continue }
            let shortest = shortest(steps) { fault(subject, $0, check) != nil }
            let found = fault(subject, shortest, check) ?? "it hides when shortened"
            Issue.record(
                """
                TAMBOUR_SEED=\(seed): \(found)
                \(subject)
                \(shortest.map { "  \($0)" }.joined(separator: "\n"))
                """
            )
            return
        }
    }

    private static func fault<Case, Step>(
        _ subject: Case,
        _ steps: [Step],
        _ check: (Case, [Step]) throws -> Void
    ) -> String? {
        do {
            try check(subject, steps)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Returns a short list of steps that still fails (delta debugging). Removes smaller and
    /// smaller pieces, as long as the rest fails.
    private static func shortest<Step>(
        _ steps: [Step],
        fails: ([Step]) -> Bool
    ) -> [Step] {
        var steps = steps
        var size = max(1, steps.count / 2)
        while true {
            var start = 0
            var hasShrunk = false
            while start < steps.count {
                var rest = steps
                rest.removeSubrange(start..<min(start + size, steps.count))
                if fails(rest) {
                    steps = rest
                    hasShrunk = true
                } else {
                    start += size
                }
            }
            if size > 1 { size /= 2 } else if !hasShrunk { return steps }
        }
    }
}
