import Histogram

/// Recorded latencies, in microseconds with three significant digits.
struct LatencySamples {
    /// The longest recorded latency: two minutes, in microseconds. A longer latency is recorded
    /// with this value and counted in `clamped`.
    private static let longest: UInt64 = 120_000_000

    fileprivate var histogram = Histogram<UInt64>(
        highestTrackableValue: LatencySamples.longest,
        numberOfSignificantValueDigits: .three
    )
    fileprivate var clamped: UInt64 = 0

    mutating func record(nanoseconds: UInt64, count: UInt64 = 1) {
        let microseconds = max(1, nanoseconds / 1_000)
        if microseconds > Self.longest { clamped += count }
        histogram.record(min(microseconds, Self.longest), count: count)
    }
}

/// Percentiles of a latency, in milliseconds.
struct Latency: Codable, Sendable {
    var p50 = 0.0
    var p90 = 0.0
    var p99 = 0.0
    var p999 = 0.0
    var max = 0.0
    var count: UInt64 = 0
    /// The number of values, out of `count`, that exceeded two minutes and are recorded as two
    /// minutes.
    var clamped: UInt64 = 0

    init(_ samples: LatencySamples) {
        count = samples.histogram.totalCount
        clamped = samples.clamped
        guard count > 0 else { return }
        func at(_ percentile: Double) -> Double {
            Double(samples.histogram.valueAtPercentile(percentile)) / 1_000
        }
        (p50, p90, p99, p999) = (at(50), at(90), at(99), at(99.9))
        max = Double(samples.histogram.max) / 1_000
    }
}

/// The results of a run of pairs or of a group.
struct LoadFigures: Codable, Sendable {
    /// The measured time, shorter than requested if the run reached its maximum number of messages
    /// first.
    var seconds: Double
    var endedAtCap: Bool
    /// Messages that were acknowledged and delivered to all receivers.
    var messages: Int
    var messagesPerSecond: Double
    var deliveriesPerSecond: Double
    /// The time from when a message was due until it reached a receiver.
    var delivery: Latency
    /// The time from when a message was due until it reached its last receiver; groups only.
    var lastDelivery: Latency?
    /// Bytes on the sockets of all clients, in both directions, per message.
    var bytesPerMessage: Double
    /// Processor cores used by the driver.
    var driverCores: Double
    var server: ServerFigures?
    /// Messages sent but not delivered to all receivers when the run stopped waiting.
    var lost = 0
    /// Messages that were due but not sent, because too many were in flight; open loop only.
    var unsent = 0
    /// All messages of the run, including the warm-up.
    var sent = 0
}

/// The resources a server used during a run.
struct ServerFigures: Codable, Sendable {
    var cores: Double
    var cpuMicrosecondsPerMessage: Double
    var rssMiB: Double
    /// Nil if the server does not report it.
    var commitsPerSecond: Double?
}
