import Histogram

/// Percentiles of a latency, milliseconds.
struct Latency: Codable, Sendable {
    var p50 = 0.0
    var p90 = 0.0
    var p99 = 0.0
    var p999 = 0.0
    var max = 0.0
    var count: UInt64 = 0

    init(_ histogram: Histogram<UInt64>) {
        count = histogram.totalCount
        guard count > 0 else { return }
        func at(_ percentile: Double) -> Double {
            Double(histogram.valueAtPercentile(percentile)) / 1_000
        }
        (p50, p90, p99, p999) = (at(50), at(90), at(99), at(99.9))
        max = Double(histogram.max) / 1_000
    }

    /// A histogram of microseconds up to two minutes with three digits.
    static func histogram() -> Histogram<UInt64> {
        Histogram<UInt64>(
            highestTrackableValue: 120_000_000,
            numberOfSignificantValueDigits: .three
        )
    }
}

/// What a run of pairs or of a group came to.
struct LoadFigures: Codable, Sendable {
    var seconds: Double
    /// Messages that were acknowledged and reached everybody.
    var messages: Int
    var messagesPerSecond: Double
    var deliveriesPerSecond: Double
    /// From the moment a message was due to be sent until it reached a receiver.
    var delivery: Latency
    /// The same until it reached the last one; groups only.
    var lastDelivery: Latency?
    /// On both sockets, both ways, per message.
    var bytesPerMessage: Double
    /// Of the driver itself, cores.
    var driverCores: Double
    var server: ServerFigures?
    /// Sent and not delivered to everybody when the run gave up waiting.
    var lost: Int
    /// Every message of the run, warm-up included.
    var sent: Int
}

/// What a server used during a run.
struct ServerFigures: Codable, Sendable {
    var cores: Double
    var cpuMicrosecondsPerMessage: Double
    var rssMiB: Double
}
