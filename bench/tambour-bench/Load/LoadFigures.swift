import Histogram

/// Latencies as they are taken, in microseconds of three digits.
struct LatencySamples {
    /// Two minutes: what takes longer is entered as this and counted.
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

/// Percentiles of a latency, milliseconds.
struct Latency: Codable, Sendable {
    var p50 = 0.0
    var p90 = 0.0
    var p99 = 0.0
    var p999 = 0.0
    var max = 0.0
    var count: UInt64 = 0
    /// Of `count`, those that took longer than two minutes and stand as two minutes.
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

/// What a run of pairs or of a group came to.
struct LoadFigures: Codable, Sendable {
    /// How long it was measured: less than asked for when the cap on messages ended it.
    var seconds: Double
    var endedAtCap: Bool
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
    var lost = 0
    /// Due and not even sent, for want of room among those on their way; open loop only.
    var unsent = 0
    /// Every message of the run, warm-up included.
    var sent = 0
}

/// What a server used during a run.
struct ServerFigures: Codable, Sendable {
    var cores: Double
    var cpuMicrosecondsPerMessage: Double
    var rssMiB: Double
    /// nil when the server does not say.
    var commitsPerSecond: Double?
}
