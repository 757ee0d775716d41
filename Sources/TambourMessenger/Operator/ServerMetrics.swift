import Synchronization
package import TambourProtocol

/// A number that only increases. Any thread may add to it.
package final class Counter: Sendable {
    private let value = Atomic<Int>(0)

    package init() {}

    package func add(_ amount: Int) {
        value.add(amount, ordering: .relaxed)
    }

    package var count: Int { value.load(ordering: .relaxed) }
}

/// The outcome of a request for a preview of a text with a link.
package enum LinkPreviewOutcome: String, Sendable {
    /// The lookup found a preview, found nothing to show, or failed.
    case found, nothing, failed
    /// The cache had the answer.
    case kept
    /// Too many lookups wait or run, or the server is stopping.
    case busy
}

/// The server's metrics. `tambourd admin metrics` prints them.
package final class ServerMetrics: Sendable {
    package let startedMs: Int64
    package let connectionsOpened = Counter()
    package let connectionsClosed = Counter()
    /// Live connections, logged in or not.
    package var connectionCount: Int { connectionsOpened.count - connectionsClosed.count }
    package let logins = Counter()
    package let slowReadersClosed = Counter()
    package let framesRefused = Counter()
    package let commits = Counter()
    package let committedCommands = Counter()
    package let failedBatches = Counter()
    package let rerunBatches = Counter()
    package let pushes = Counter()
    /// The number of bytes in reply payloads, before compression.
    package let replyBytes = Counter()
    package let repliesOverLimit = Counter()
    package let pushesOverLimit = Counter()
    package let bytesIn = Counter()
    /// Connections that the server closed before login, because few file descriptors were left.
    package let strangersClosedForRoom = Counter()
    /// Connections that the server closed before login, because their address had too many
    /// connections.
    package let strangersClosedForAddress = Counter()
    package let connectionsRefused = Counter()
    package let acceptPauses = Counter()
    package let passwordsHashed = Counter()
    /// Requests for a login code whose phone may not register.
    package let codesWithheld = Counter()
    package let timings: ClientTimings
    package let queueTimes = QueueTimes()

    private let requests = Mutex<[UInt16: Int]>([:])
    private let refusals = Mutex<[String: Int]>([:])
    private let logEvents = Mutex<[String: Int]>([:])
    private let handshakes = Mutex<[String: Int]>([:])
    private let failedHandshakes = Mutex<[String: Int]>([:])
    private let linkPreviews = Mutex<[String: Int]>([:])

    private let codeRuns: @Sendable () -> [CodeRunOutcome: Int]

    private static let unknownOpcode = UInt16.max

    package init(
        startedMs: Int64,
        limits: Limits = .standard,
        codeRuns: @escaping @Sendable () -> [CodeRunOutcome: Int] = { [:] }
    ) {
        self.startedMs = startedMs
        self.codeRuns = codeRuns
        timings = ClientTimings(maxVersions: limits.maxTelemetryVersions)
    }

    /// Counts a request. Unknown opcodes share one counter, so that a stranger cannot create 65,536
    /// counters.
    package func countRequest(_ opcode: Opcode) {
        let number = opcode.info == nil ? Self.unknownOpcode : opcode.rawValue
        requests.withLock { $0[number, default: 0] += 1 }
    }

    package func countRefusal(_ code: RequestError.Code) {
        refusals.withLock { $0[code.rawValue, default: 0] += 1 }
    }

    package func countLinkPreview(_ outcome: LinkPreviewOutcome) {
        linkPreviews.withLock { $0[outcome.rawValue, default: 0] += 1 }
    }

    /// Counts a completed TLS handshake.
    package func countHandshake(isResumed: Bool) {
        handshakes.withLock { $0[isResumed ? "resumed" : "full", default: 0] += 1 }
    }

    /// Counts a failed TLS handshake by its reason. The set of reasons must be small.
    package func countHandshake(failed reason: String) {
        failedHandshakes.withLock { $0[reason, default: 0] += 1 }
    }

    /// Counts telemetry events. Unknown types share one counter, because a type that the client
    /// chooses could contain any text.
    ///
    /// - Parameter version: the app version that the client reported; nil before login.
    package func countLog(_ events: [LogEvent], version: AppVersion?) {
        guard !events.isEmpty else { return }
        logEvents.withLock { counts in
            for event in events {
                let type = LogType(name: event.type ?? .empty)
                let name = if case .other = type { ClientTimings.other } else { String(type.name) }
                counts[name, default: 0] += 1
            }
        }
        timings.count(events, version: version)
    }

    /// The number of requests by opcode number; for tests.
    package var requestCounts: [UInt16: Int] { requests.withLock { $0 } }
    package var refusalCounts: [String: Int] { refusals.withLock { $0 } }
    package var logEventCounts: [String: Int] { logEvents.withLock { $0 } }
    package var handshakeCounts: [String: Int] { handshakes.withLock { $0 } }
    package var failedHandshakeCounts: [String: Int] { failedHandshakes.withLock { $0 } }
    package var linkPreviewCounts: [String: Int] { linkPreviews.withLock { $0 } }

    /// Returns the metrics in the Prometheus text format, version 0.0.4.
    ///
    /// - Parameter gauges: current values from other parts of the server.
    package func prometheusText(gauges: [Gauge]) -> String {
        var text = ""
        func metric(_ name: String, _ kind: String, _ help: String) {
            text += "# HELP tambour_\(name) \(help)\n# TYPE tambour_\(name) \(kind)\n"
        }
        func counter(_ name: String, _ help: String, _ counter: Counter) {
            metric(name, "counter", help)
            text += "tambour_\(name) \(counter.count)\n"
        }
        func labelled(_ name: String, _ help: String, _ label: String, _ counts: [(String, Int)]) {
            metric(name, "counter", help)
            for (value, count) in counts.sorted(by: { $0.0 < $1.0 }) {
                text += "tambour_\(name){\(label)=\"\(Self.escaped(value))\"} \(count)\n"
            }
        }
        counter("connections_opened_total", "Accepted connections.", connectionsOpened)
        counter("connections_closed_total", "Ended connections.", connectionsClosed)
        counter("logins_total", "Answered LOGIN requests.", logins)
        counter(
            "slow_readers_closed_total",
            "Connections closed for not reading.",
            slowReadersClosed
        )
        counter("frames_refused_total", "Frames that broke the framing.", framesRefused)
        counter("received_bytes_total", "Bytes read from clients.", bytesIn)
        counter("pushes_total", "Pushes handed to sessions.", pushes)
        counter("reply_bytes_total", "Bytes of replies before compression.", replyBytes)
        counter("commits_total", "Committed batches.", commits)
        counter("committed_commands_total", "Commands in committed batches.", committedCommands)
        counter("failed_batches_total", "Batches that were rolled back.", failedBatches)
        counter("rerun_batches_total", "Batches run again one by one.", rerunBatches)
        counter("passwords_hashed_total", "Passwords hashed by scrypt.", passwordsHashed)
        counter(
            "codes_withheld_total",
            "Login codes not sent because the phone may not register.",
            codesWithheld
        )
        counter("replies_over_limit_total", "Replies too long to send.", repliesOverLimit)
        counter(
            "pushes_over_limit_total",
            "Pushes too long to send; each closed a session.",
            pushesOverLimit
        )
        labelled(
            "strangers_closed_total",
            "Connections without a login that had to make room, by what was short.",
            "short",
            [
                ("descriptors", strangersClosedForRoom.count),
                ("address", strangersClosedForAddress.count),
            ]
        )
        counter(
            "connections_refused_total",
            "Connections closed at the door for want of descriptors.",
            connectionsRefused
        )
        counter(
            "accept_pauses_total",
            "Times that accepting paused for want of descriptors or memory.",
            acceptPauses
        )
        labelled(
            "requests_total",
            "Requests by opcode.",
            "opcode",
            requestCounts.map { (Opcode(rawValue: $0.key).name ?? "unknown", $0.value) }
        )
        labelled(
            "refusals_total",
            "Error replies by code.",
            "code",
            refusalCounts.map { ($0.key, $0.value) }
        )
        labelled(
            "log_events_total",
            "Telemetry events by type.",
            "type",
            logEventCounts.map { ($0.key, $0.value) }
        )
        labelled(
            "link_previews_total",
            "Previews of links by what became of them.",
            "outcome",
            linkPreviewCounts.map { ($0.key, $0.value) }
        )
        labelled(
            "code_program_runs_total",
            "Runs of the program that delivers login codes by what became of the code.",
            "outcome",
            codeRuns().map { ($0.key.rawValue, $0.value) }
        )
        labelled(
            "tls_handshakes_total",
            "Completed TLS handshakes by kind.",
            "kind",
            handshakeCounts.map { ($0.key, $0.value) }
        )
        labelled(
            "tls_handshakes_failed_total",
            "Failed TLS handshakes by reason.",
            "reason",
            failedHandshakeCounts.map { ($0.key, $0.value) }
        )
        timings.append(to: &text)
        queueTimes.append(to: &text)
        for gauge in gauges {
            metric(gauge.name, "gauge", gauge.help)
            for (labels, value) in gauge.samples {
                text += "tambour_\(gauge.name)\(labels) \(value)\n"
            }
        }
        return text
    }

    /// A metric whose value is read when the metrics are printed.
    package struct Gauge {
        let name: String
        let help: String
        let samples: [(labels: String, value: String)]

        package init(_ name: String, _ help: String, _ value: Int) {
            self.name = name
            self.help = help
            samples = [("", "\(value)")]
        }

        package init(_ name: String, _ help: String, each label: String, _ values: [Double]) {
            self.name = name
            self.help = help
            samples = values.enumerated().map { ("{\(label)=\"\($0)\"}", "\($1)") }
        }

        /// - Parameter values: pairs of a value of the label and a value of the gauge.
        package init(_ name: String, _ help: String, by label: String, _ values: [(String, Int)]) {
            self.name = name
            self.help = help
            samples = values.map {
                ("{\(label)=\"\(ServerMetrics.escaped($0))\"}", "\($1)")
            }
        }

        /// - Parameter features: the counts of each lane.
        package init(_ name: String, _ help: String, features: [[String: FeatureCount]]) {
            self.name = name
            self.help = help
            var sums: [String: FeatureCount] = [:]
            for lane in features {
                sums.merge(lane) { FeatureCount(on: $0.on + $1.on, off: $0.off + $1.off) }
            }
            samples = sums.sorted { $0.key < $1.key }.flatMap { feature, count in
                [("on", count.on), ("off", count.off)].map { answer, value in
                    ("{feature=\"\(feature)\",answer=\"\(answer)\"}", "\(value)")
                }
            }
        }
    }

    private static func escaped(_ value: String) -> String {
        var escaped = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
