/// The random generator SplitMix64. The same seed produces the same numbers on every platform.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a random number from 0 to `bound - 1`. If `bound` is 1 or less, returns 0 and
    /// consumes no random number.
    package mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: next() % UInt64(bound))
    }

    package mutating func from(_ low: Int64, to high: Int64) -> Int64 {
        low + Int64(truncatingIfNeeded: next() % UInt64(high - low + 1))
    }

    package mutating func int(_ range: Range<Int>) -> Int {
        range.lowerBound + below(range.count)
    }

    /// Returns true with the probability `numerator / denominator`.
    package mutating func chance(_ numerator: Int, in denominator: Int = 100) -> Bool {
        below(denominator) < numerator
    }

    /// Returns one of the values. The array must not be empty.
    package mutating func pick<Value>(_ values: [Value]) -> Value { values[below(values.count)] }

    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}
