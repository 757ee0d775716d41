import Foundation

/// Work that Tambour and its limits perform in one round.
protocol Workload: Sendable {
    /// The name in `bench/README.md`, such as `W1`.
    var name: String { get }
    var title: String { get }
    /// Whether the workload runs in the first round only.
    var isOnce: Bool { get }

    /// Returns the workload's claims, for the full form or the short form.
    func claims(isFull: Bool) -> [Claim]

    /// Runs the work once on every server and limit.
    func round(in bench: Bench) async throws -> Figures
}

extension Workload {
    var isOnce: Bool { false }
}

/// A claim that a run meets or misses, such as a ratio of two figures of the same round.
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
    /// Whether the worst round decides instead of the median, because no round may miss the claim.
    var isStrict = false
    /// The text that replaces the verdict if the run was too short to judge; otherwise nil.
    var unjudged: String?
    /// Returns the compared value; nil if the round did not measure it.
    let value: @Sendable (Figures) -> Double?

    /// Creates a claim about `ours` as a multiple of `limit`.
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

    /// Creates a claim about a single figure.
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
    /// The folder with the programs of `bench/limits`.
    let limits: String
    /// The folder of databases that take long to create; it is kept between runs.
    var cache: URL
    /// The scratch folder, which is emptied at the end.
    let scratch: URL
    let corpus: Corpus
    /// The measured duration of each run, after a second of warm-up.
    let measured: Duration
    let isFull: Bool
    /// The current round, starting at 0.
    var round = 0

    /// Returns the elements rotated by the round number, so that no element is always first.
    func rotated<Element>(_ all: [Element]) -> [Element] {
        all.indices.map { all[($0 + round) % all.count] }
    }

    func folder(_ name: String) throws -> URL {
        let url = scratch.appendingPathComponent("\(name)-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }
}
