/// The measurements of one round of a workload by name, such as `window 16, tambour, messages/s`.
typealias Figures = [String: Double]

extension Figures {
    /// Adds the results of a load run, with `prefix` before each name.
    mutating func add(_ load: LoadFigures, as prefix: String) {
        self["\(prefix), messages/s"] = load.messagesPerSecond
        self["\(prefix), deliveries/s"] = load.deliveriesPerSecond
        self["\(prefix), p50 ms"] = load.delivery.p50
        self["\(prefix), p99 ms"] = load.delivery.p99
        self["\(prefix), bytes/message"] = load.bytesPerMessage
        self["\(prefix), driver cores"] = load.driverCores
        self["\(prefix), lost"] = Double(load.lost)
        if load.unsent > 0 { self["\(prefix), due and not sent"] = Double(load.unsent) }
        if load.delivery.clamped > 0 {
            self["\(prefix), slower than two minutes"] = Double(load.delivery.clamped)
        }
        if load.endedAtCap { self["\(prefix), seconds until the cap on messages"] = load.seconds }
        if let last = load.lastDelivery {
            self["\(prefix), last p50 ms"] = last.p50
            // With fewer than a hundred values, the 99th percentile is simply the maximum.
            if last.count >= 100 { self["\(prefix), last p99 ms"] = last.p99 }
            self["\(prefix), last slowest ms"] = last.max
        }
        if let server = load.server {
            self["\(prefix), server cores"] = server.cores
            self["\(prefix), server CPU µs/message"] = server.cpuMicrosecondsPerMessage
            self["\(prefix), RSS MiB"] = server.rssMiB
            if let commits = server.commitsPerSecond {
                self["\(prefix), commits/s"] = commits
                self["\(prefix), messages/commit"] = load.messagesPerSecond / commits
            }
        }
    }
}

extension [Double] {
    /// The median of sorted values.
    var median: Double? {
        isEmpty
            ? nil : count % 2 == 1 ? self[count / 2] : (self[count / 2 - 1] + self[count / 2]) / 2
    }

    /// Returns the value that `percent` percent of the sorted values do not exceed.
    func percentile(_ percent: Int) -> Double? {
        isEmpty ? nil : self[Swift.min(count - 1, count * percent / 100)]
    }
}
