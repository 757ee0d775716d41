import Foundation

/// SplitMix64: the same seed gives the same run everywhere.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }
}

/// One run of a test over random input. `TAMBOUR_SEED` repeats a run, `TAMBOUR_SOAK=1` makes it long.
struct RandomRun {
    let seed: UInt64
    let count: Int
    var random: SeededRandom

    init(_ name: String, count: Int, soak: Int) {
        let environment = ProcessInfo.processInfo.environment
        seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
        self.count = environment["TAMBOUR_SOAK"] == "1" ? soak : count
        random = SeededRandom(seed: seed)
        // A crash leaves no other trace of the seed.
        print("\(name): \(self.count) rounds, TAMBOUR_SEED=\(seed)")
    }
}
