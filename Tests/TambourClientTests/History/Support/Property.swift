import Foundation
import Testing

/// A generator whose numbers follow from its seed alone.
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    /// A number from 0 up to `bound`, which is left out.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// What a property says is wrong.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// A property of lists of steps: it holds for every list that its generator makes.
///
/// `TAMBOUR_SOAK=1` tries ten times as many lists, `TAMBOUR_SEED=17` number 17 alone.
struct Property<Step: Sendable> {
    /// How many lists in the long form; the short form tries a tenth.
    let cases: Int
    let steps: (inout SplitMix64) -> [Step]
    let check: ([Step]) throws -> Void

    func hold(sourceLocation: SourceLocation = #_sourceLocation) {
        for seed in seeds {
            var random = SplitMix64(seed: seed)
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

    /// Delta debugging: leaves out ever smaller parts for as long as the property stays violated.
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
