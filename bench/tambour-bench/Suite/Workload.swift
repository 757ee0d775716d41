import Foundation

/// Work that is done against Tambour and against the limits beside it, in one round.
protocol Workload: Sendable {
    /// As in `bench/README.md`: `W1`.
    var name: String { get }
    var title: String { get }
    /// Whether it is done in the first round only.
    var isOnce: Bool { get }

    /// What is promised of it, in the full form or the short one.
    func claims(isFull: Bool) -> [Claim]

    /// Does the work once on everybody.
    func round(in bench: Bench) async throws -> Figures
}

extension Workload {
    var isOnce: Bool { false }
}

/// A promise that a run keeps or breaks: a ratio of two figures of the same round.
struct Claim: Sendable {
    enum Bound: Sendable {
        case atLeast(Double)
        case atMost(Double)

        func holds(_ value: Double) -> Bool {
            switch self {
            case .atLeast(let bound): value >= bound
            case .atMost(let bound): value <= bound
            }
        }

        var text: String {
            switch self {
            case .atLeast(let bound): "≥ \(Table.number(bound))"
            case .atMost(let bound): "≤ \(Table.number(bound))"
            }
        }
    }

    let text: String
    let bound: Bound
    var stretch: Bound?
    /// The worst round counts and not the median: it must never happen.
    var isStrict = false
    /// Stands in place of the verdict where the run was too short for one.
    var unjudged: String?
    /// What is compared; nil when the round did not measure it.
    let value: @Sendable (Figures) -> Double?

    /// `ours` as a multiple of `limit`.
    static func ratio(
        _ text: String,
        _ ours: String,
        to limit: String,
        _ bound: Bound,
        stretch: Bound? = nil
    ) -> Claim {
        Claim(text: text, bound: bound, stretch: stretch) { figures in
            guard let ours = figures[ours], let limit = figures[limit], limit > 0 else {
                return nil
            }
            return ours / limit
        }
    }

    /// A figure that needs no limit beside it.
    static func figure(
        _ text: String,
        _ name: String,
        _ bound: Bound,
        stretch: Bound? = nil,
        isStrict: Bool = false,
        unjudged: String? = nil
    ) -> Claim {
        Claim(text: text, bound: bound, stretch: stretch, isStrict: isStrict, unjudged: unjudged) {
            $0[name]
        }
    }
}

/// Where the programs are, how long to measure, what to write with.
struct Bench: Sendable {
    /// `tambourd`, a release build.
    var tambourd: String
    /// The folder of the programs of `bench/limits`.
    let limits: String
    /// Databases that take long to make, kept between runs.
    var cache: URL
    /// Emptied at the end.
    let scratch: URL
    let corpus: Corpus
    /// How long each run is measured, after a second of warming up.
    let measured: Duration
    let isFull: Bool
    /// Of the round at hand, from 0 on.
    var round = 0

    /// The order of this round: nobody is always first, or always behind the same one.
    func rotated<Element>(_ all: [Element]) -> [Element] {
        all.indices.map { all[($0 + round) % all.count] }
    }

    func folder(_ name: String) throws -> URL {
        let url = scratch.appendingPathComponent("\(name)-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }
}
