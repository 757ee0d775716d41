import Synchronization
import TambourProtocol

/// The waiting times of requests inside the server. A wait lasts from the read of the request's
/// bytes to the start of its work.
package final class QueueTimes: Sendable {
    /// The place where the work of a request is done.
    package enum Place: Int, CaseIterable, Sendable {
        case lane, engine, reader, login
    }

    package struct Histogram: Equatable, Sendable {
        /// The number of waits in each bucket. A wait counts only in the bucket with the smallest
        /// bound that it does not exceed. Waits above the last bound are in `count` only.
        package fileprivate(set) var counts = [Int](repeating: 0, count: boundsUs.count)
        package fileprivate(set) var count = 0
        package fileprivate(set) var sumUs: Int64 = 0
    }

    /// The upper bounds of the buckets, in microseconds.
    package static let boundsUs: [Int64] = [
        100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000, 1_000_000,
        5_000_000,
    ]

    /// One histogram with its lock. Few threads write to the histogram of a place, so the lock is
    /// usually free.
    private final class Guarded: Sendable {
        let histogram = Mutex(Histogram())
    }

    private let members = Place.allCases.map { _ in Guarded() }
    private let strangers = Place.allCases.map { _ in Guarded() }

    package init() {}

    /// Counts one request.
    package func record(_ place: Place, isStranger: Bool, _ waitUs: Int64) {
        let guarded = (isStranger ? strangers : members)[place.rawValue]
        guarded.histogram.withLock { $0.add(waitUs) }
    }

    /// Counts one request of a subject.
    func record(_ place: Place, _ subject: WorkSubject, _ waitUs: Int64) {
        if case .address = subject {
            record(place, isStranger: true, waitUs)
        } else {
            record(place, isStranger: false, waitUs)
        }
    }

    package func histogram(_ place: Place, isStranger: Bool) -> Histogram {
        (isStranger ? strangers : members)[place.rawValue].histogram.withLock { $0 }
    }

    /// Appends the histograms in the Prometheus text format.
    func append(to text: inout String) {
        let name = "tambour_queue_seconds"
        text += "# HELP \(name) From reading a request to the start of its work, by place.\n"
        text += "# TYPE \(name) histogram\n"
        for place in Place.allCases {
            for isStranger in [false, true] {
                let histogram = histogram(place, isStranger: isStranger)
                let who = isStranger ? "stranger" : "member"
                let labels = "place=\"\(place)\",who=\"\(who)\""
                var sum = 0
                for (bound, count) in zip(Self.boundsUs, histogram.counts) {
                    sum += count
                    text += "\(name)_bucket{\(labels),le=\"\(Double(bound) / 1e6)\"} \(sum)\n"
                }
                text += "\(name)_bucket{\(labels),le=\"+Inf\"} \(histogram.count)\n"
                text += "\(name)_sum{\(labels)} \(Double(histogram.sumUs) / 1e6)\n"
                text += "\(name)_count{\(labels)} \(histogram.count)\n"
            }
        }
    }
}

extension QueueTimes.Histogram {
    fileprivate mutating func add(_ waitUs: Int64) {
        count &+= 1
        sumUs &+= waitUs
        if let index = QueueTimes.boundsUs.firstIndex(where: { waitUs <= $0 }) {
            counts[index] += 1
        }
    }
}
