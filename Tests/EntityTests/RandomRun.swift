import Foundation
import TambourTesting
import Testing

/// What a random case found wrong.
struct Fault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Random cases of one property, each made from its seed alone.
///
/// `TAMBOUR_SEED=17` plays case 17 and nothing else, `TAMBOUR_SOAK=1` plays the long form.
enum RandomRun {
    private static let environment = ProcessInfo.processInfo.environment
    private static let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) }

    /// Whether all cases are played.
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

    /// Delta debugging: leaves out ever smaller pieces for as long as the rest fails.
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
