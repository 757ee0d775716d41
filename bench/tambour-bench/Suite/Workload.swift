import Foundation

/// Work that Tambour and the limits beside it perform in one round.
protocol Workload: Sendable {
    /// The name in `bench/README.md`: `W1`.
    var name: String { get }
    var title: String { get }
    /// Whether it runs in the first round only.
    var isOnce: Bool { get }

    /// Returns its claims, for the full form or the short one.
    func claims(isFull: Bool) -> [Claim]

    /// Runs the work once on every server and limit.
    func round(in bench: Bench) async throws -> Figures
}

extension Workload {
    var isOnce: Bool { false }
}

/// A claim that a run meets or misses: a ratio of two figures of the same round.
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
    /// Whether the worst round counts instead of the median, because it must never happen.
    var isStrict = false
    /// Replaces the verdict if the run was too short for one.
    var unjudged: String?
    /// Returns the compared value; nil when the round did not measure it.
    let value: @Sendable (Figures) -> Double?

    /// A claim about `ours` as a multiple of `limit`.
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

    /// A claim about a figure without a limit.
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

/// The locations of programs and folders, and the duration of measurements.
struct Bench: Sendable {
    /// `tambourd`, a release build.
    var tambourd: String
    /// The folder of the programs of `bench/limits`.
    let limits: String
    /// Databases that take long to create, kept between runs.
    var cache: URL
    /// Emptied at the end.
    let scratch: URL
    let corpus: Corpus
    /// How long each run is measured, after a second of warm-up.
    let measured: Duration
    let isFull: Bool
    /// The current round, from 0 on.
    var round = 0

    /// Returns the order of this round, so that no element is always first, or always after the
    /// same one.
    func rotated<Element>(_ all: [Element]) -> [Element] {
        all.indices.map { all[($0 + round) % all.count] }
    }

    func folder(_ name: String) throws -> URL {
        let url = scratch.appendingPathComponent("\(name)-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }
}
