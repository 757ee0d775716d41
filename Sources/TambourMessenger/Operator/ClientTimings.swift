import Synchronization
import TambourProtocol

/// The durations that apps measure and report with LOG. There is one histogram for each pair of
/// span and app version. The server keeps no event, user, session or time of day. Text from a
/// client never becomes a label.
package final class ClientTimings: Sendable {
    /// The labels of one histogram.
    package struct Key: Hashable, Comparable, Sendable {
        /// A name of `LogSpan`, or `other`.
        package let span: String
        /// An `AppVersion.label`, or `other`.
        package let version: String

        package init(span: String, version: String) {
            self.span = span
            self.version = version
        }

        package static func < (left: Key, right: Key) -> Bool {
            (left.span, left.version) < (right.span, right.version)
        }
    }

    package struct Histogram: Equatable, Sendable {
        /// The number of durations in each bucket. A bucket contains durations above the previous
        /// bound, up to the bound with the same index. Durations above the last bound are in
        /// `count` only.
        package fileprivate(set) var counts = [Int](repeating: 0, count: bounds.count)
        package fileprivate(set) var count = 0
        package fileprivate(set) var sumMs: Int64 = 0
    }

    /// The upper bounds of the buckets, in milliseconds. They range from durations that feel
    /// instant to durations after which users give up.
    package static let bounds: [Int64] = [
        10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000,
    ]
    static let other = "other"

    private struct State {
        var histograms: [Key: Histogram] = [:]
        var versions: Set<String> = []

        mutating func label(of version: AppVersion?, max: Int) -> String {
            guard let label = version?.label else { return other }
            if versions.contains(label) { return label }
            guard versions.count < max else { return other }
            versions.insert(label)
            return label
        }
    }

    private let state = Mutex(State())
    private let maxVersions: Int

    init(maxVersions: Int) {
        self.maxVersions = maxVersions
    }

    /// Counts the timings of events.
    ///
    /// - Parameter version: the version that the client reported. It is nil before login, so that
    ///   strangers cannot fill the list of versions.
    func count(_ events: [LogEvent], version: AppVersion?) {
        var spans: [LogSpanReader.Span] = []
        for event in events { LogSpanReader.append(spansOf: event, to: &spans) }
        guard !spans.isEmpty else { return }
        state.withLock { state in
            let version = state.label(of: version, max: maxVersions)
            for (span, ms) in spans {
                state.histograms[Key(span: span, version: version), default: Histogram()].add(ms)
            }
        }
    }

    package var histograms: [Key: Histogram] { state.withLock { $0.histograms } }
}

extension ClientTimings.Histogram {
    fileprivate mutating func add(_ ms: Int64) {
        count += 1
        sumMs += ms
        if let index = ClientTimings.bounds.firstIndex(where: { ms <= $0 }) { counts[index] += 1 }
    }
}

extension ClientTimings {
    /// Appends the histograms in the Prometheus text format.
    func append(to text: inout String) {
        let name = "tambour_client_timing_seconds"
        text += "# HELP \(name) What apps say took them how long, by span and version.\n"
        text += "# TYPE \(name) histogram\n"
        for (key, histogram) in histograms.sorted(by: { $0.key < $1.key }) {
            let labels = "span=\"\(key.span)\",version=\"\(key.version)\""
            var sum = 0
            for (bound, count) in zip(Self.bounds, histogram.counts) {
                sum += count
                text += "\(name)_bucket{\(labels),le=\"\(Double(bound) / 1000)\"} \(sum)\n"
            }
            text += "\(name)_bucket{\(labels),le=\"+Inf\"} \(histogram.count)\n"
            text += "\(name)_sum{\(labels)} \(Double(histogram.sumMs) / 1000)\n"
            text += "\(name)_count{\(labels)} \(histogram.count)\n"
        }
    }
}
