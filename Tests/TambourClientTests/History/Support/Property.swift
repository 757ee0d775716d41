import Foundation
import TambourTesting
import Testing

/// The description of a violated property.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// A property of lists of steps that must hold for every list from its generator.
///
/// `TAMBOUR_SOAK=1` tries ten times as many lists, `TAMBOUR_SEED=17` tries only list 17.
struct Property<Step: Sendable> {
    /// The number of lists with `TAMBOUR_SOAK=1`; without it, a tenth of them is tried.
    let cases: Int
    let steps: (inout SeededGenerator) -> [Step]
    let check: ([Step]) throws -> Void

    func hold(sourceLocation: SourceLocation = #_sourceLocation) {
        for seed in seeds {
            var random = SeededGenerator(seed: seed)
            let list = steps(&random)
            guard let violation = violation(of: list) else { continue }
            let shortest = shrunk(list)
            Issue.record(
                """
                TAMBOUR_SEED=\(seed): \(violation)
                \(shortest.count) of \(list.count) steps suffice: \
                \(self.violation(of: shortest) ?? "")
                \(shortest.map { "  \($0)" }.joined(separator: "\n"))
                """,
                sourceLocation: sourceLocation
            )
            return
        }
    }

    private var seeds: [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["TAMBOUR_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        return (1...UInt64(environment["TAMBOUR_SOAK"] == "1" ? cases : cases / 10)).map { $0 }
    }

    private func violation(of list: [Step]) -> String? {
        do {
            try check(list)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Delta debugging: removes smaller and smaller parts while the list still violates the
    /// property.
    private func shrunk(_ list: [Step]) -> [Step] {
        var list = list
        var size = max(1, list.count / 2)
        while true {
            var start = 0
            var isShorter = false
            while start < list.count {
                var candidate = list
                candidate.removeSubrange(start..<min(start + size, list.count))
                if violation(of: candidate) != nil {
                    list = candidate
                    isShorter = true
                } else {
                    start += size
                }
            }
            if size == 1, !isShorter { return list }
            if !isShorter { size = max(1, size / 2) }
        }
    }
}
