import Foundation

/// The measurements of one call of the suite.
struct Report: Codable, Sendable {
    struct Outcome: Codable, Sendable {
        let name: String
        let title: String
        let rounds: [Figures]
        let claims: [Verdict]
        /// The failed rounds with their reasons.
        let failures: [String]
    }

    struct Verdict: Codable, Sendable {
        let claim: String
        let bound: String
        let median: Double?
        let least: Double?
        let most: Double?
        /// `met`, `stretch met`, `MISSED`, `failed`, `not measured`, or the reason why it was not
        /// judged.
        let verdict: String
        /// A note if rounds differ.
        var note: String? = nil
    }

    var birthplace: Birthplace
    var outcomes: [Outcome] = []

    /// Adds the rounds of a workload and judges its claims. Strict claims use the worst round, all
    /// others the median.
    mutating func add(
        _ workload: any Workload,
        rounds: [Figures],
        failures: [String],
        isFull: Bool
    ) {
        let claims = workload.claims(isFull: isFull) + Self.nothingLost(rounds)
        outcomes.append(
            Outcome(
                name: workload.name,
                title: workload.title,
                rounds: rounds,
                claims: claims.map { Self.judge($0, rounds) },
                failures: failures
            )
        )
    }

    /// Returns the claim of every load run that no message was lost.
    private static func nothingLost(_ rounds: [Figures]) -> [Claim] {
        let names = Set(rounds.flatMap(\.keys)).filter { $0.hasSuffix(", lost") }
        return names.sorted { $0.localizedStandardCompare($1) == .orderedAscending }.map {
            .figure("\($0) messages", $0, .atMost(0), isStrict: true)
        }
    }

    private static let lostSuffix = ", lost messages"

    static func judge(_ claim: Claim, _ rounds: [Figures]) -> Verdict {
        let values = rounds.compactMap(claim.value)
        let sorted = values.filter(\.isFinite).sorted()
        let isWhole = sorted.count == values.count
        let held = values.count { $0.isFinite && claim.bound.holds($0) }
        let judged: Double? =
            if claim.isStrict, case .atMost = claim.bound {
                sorted.last
            } else if claim.isStrict { sorted.first } else { sorted.median }
        let verdict =
            if let judged, isWhole {
                if let unjudged = claim.unjudged {
                    unjudged
                } else if let stretch = claim.stretch, stretch.holds(judged) {
                    "stretch met"
                } else if claim.bound.holds(judged) {
                    "met"
                } else {
                    "MISSED"
                }
            } else if values.isEmpty { "not measured" } else { "failed" }
        let isSplit = held > 0 && held < values.count
        return Verdict(
            claim: claim.text,
            bound: claim.bound.text,
            median: isWhole ? sorted.median : nil,
            least: sorted.first,
            most: sorted.last,
            verdict: verdict,
            note: isSplit ? "met in \(held) of \(values.count) rounds" : nil
        )
    }

    /// Whether a claim was missed; a claim that could not be measured counts as missed.
    var hasMissed: Bool {
        let missed: Set = ["MISSED", "failed", "not measured"]
        return outcomes.contains { $0.claims.contains { missed.contains($0.verdict) } }
    }

    var hasFailed: Bool { outcomes.contains { !$0.failures.isEmpty } }

    // MARK: - As text

    /// An explanation for readers without background knowledge.
    private static let legend = """

        `tambour` is the messenger server; `relay (a)`, `relay (b)`, the `C reader` and msgpack-c are limits, \
        small C programs that do only the part of the same work which nobody can leave out. So 0.7 of a limit's \
        rate, or 1.5 times its time, is what may be lost on the way, and *met* says that no more was: the server is \
        not faster than a limit. Relay (a) stores one row a message, relay (b) all rows that the server stores; \
        both, like the server, flush to disk before anybody hears of a message. The C reader reads the rows of a \
        login or a page, without network. A ratio is the server's figure divided by the limit's, both taken in the \
        same round; shown are the median and the extremes of the rounds. *Window* is how many messages each sender \
        has under way; *driver-bound* marks rows in which the load generator, which shares the processors, was busy \
        for more than 0.6 of a core.


        """

    /// The number of claims that were met, and the names of the claims that were not.
    private var summary: String {
        let verdicts = outcomes.flatMap { outcome in outcome.claims.map { (outcome.name, $0) } }
        let kept: Set = ["met", "stretch met"]
        let broken = verdicts.filter { !kept.contains($0.1.verdict) }
        let list = broken.map { "\($0) \($1.claim) (\($1.verdict))" }.joined(separator: "; ")
        let failures = outcomes.filter { !$0.failures.isEmpty }.map(\.name)
        return "\n**\(verdicts.count - broken.count) of \(verdicts.count) claims met"
            + (broken.isEmpty ? "" : ". Not met: \(list)")
            + (failures.isEmpty ? "" : ". Not run to its end: \(failures.joined(separator: ", "))")
            + ".**\n"
    }

    /// Shows first the claims, for readers who read only one table, and then all measurements.
    var markdown: String {
        var text = birthplace.markdown + summary + Self.legend
        var claims = Table(["", "claim", "bound", "median", "spread", ""])
        for outcome in outcomes {
            // One row for all runs without lost messages.
            let lossless = outcome.claims.filter {
                $0.claim.hasSuffix(Self.lostSuffix) && $0.verdict == "met"
            }
            if !lossless.isEmpty {
                claims.add([
                    outcome.name, "lost messages, load runs taken together: \(lossless.count)",
                    "≤ 0", "0", "0 … 0", "met",
                ])
            }
            for verdict in outcome.claims
            where !(verdict.claim.hasSuffix(Self.lostSuffix) && verdict.verdict == "met") {
                claims.add([
                    outcome.name, verdict.claim, verdict.bound,
                    verdict.median.map(Table.number) ?? "–",
                    verdict.least.flatMap { least in
                        verdict.most.map { "\(Table.number(least)) … \(Table.number($0))" }
                    } ?? "–",
                    [verdict.verdict, verdict.note].compactMap(\.self).joined(separator: ", "),
                ])
            }
        }
        for outcome in outcomes {
            for failure in outcome.failures {
                let line = failure.replacing("\n", with: " ").replacing("|", with: "/")
                claims.add([outcome.name, "ran to its end: \(line)", "–", "–", "–", "FAILED"])
            }
        }
        text += claims.markdown
        for outcome in outcomes where !outcome.rounds.isEmpty {
            text += "\n## \(outcome.name): \(outcome.title)\n\n"
            var table = Table(["", "median of \(outcome.rounds.count)", "least", "most", ""])
            let names = Set(outcome.rounds.flatMap(\.keys)).sorted {
                $0.localizedStandardCompare($1) == .orderedAscending
            }
            for name in names {
                let values = outcome.rounds.compactMap { $0[name] }.sorted()
                guard let median = values.median, let least = values.first, let most = values.last
                else { continue }
                table.add([
                    name, Table.number(median), Table.number(least), Table.number(most),
                    outcome.isDriverBound(name) ? "driver-bound" : "",
                ])
            }
            text += table.markdown
        }
        return text
    }

    var json: Data {
        get throws { try encoded(self) }
    }

    /// Processor, memory, kernel.
    static var thisMachine: String { Birthplace.thisMachine }
}

extension Report.Outcome {
    /// The most cores that a driver may use; a busier driver measures itself as much as the server.
    private static let mostDriverCores = 0.6

    /// Returns whether a figure partly measures the driver, because the `driver cores` of the same
    /// run exceed the maximum.
    fileprivate func isDriverBound(_ name: String) -> Bool {
        let suffix = "driver cores"
        return rounds.contains { round in
            round.contains { figure, cores in
                cores > Self.mostDriverCores && figure.hasSuffix(suffix)
                    && name.hasPrefix(figure.dropLast(suffix.count))
            }
        }
    }
}

/// Returns JSON that is readable for people and programs; non-finite numbers become text.
func encoded(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: "infinity",
        negativeInfinity: "-infinity",
        nan: "not a number"
    )
    return try encoder.encode(value)
}

/// Rows of cells, padded so that the Markdown source is as readable as the rendered page.
struct Table {
    private let head: [String]
    private var rows: [[String]] = []

    init(_ head: [String]) { self.head = head }

    mutating func add(_ row: [String]) { rows.append(row) }

    var markdown: String {
        let widths = head.indices.map { column in
            max(3, ([head] + rows).map { $0[column].count }.max() ?? 0)
        }
        func line(_ cells: [String]) -> String {
            let padded = zip(cells, widths).map {
                $0 + String(repeating: " ", count: max(0, $1 - $0.count))
            }
            return "| " + padded.joined(separator: " | ") + " |\n"
        }
        return line(head) + line(widths.map { String(repeating: "-", count: $0) })
            + rows.map(line).joined()
    }

    /// Formats a number with three significant digits.
    static func number(_ value: Double) -> String {
        guard value.isFinite else { return "failed" }
        let size = abs(value)
        if size == size.rounded(), size < 1_000 { return "\(Int(value))" }
        if size >= 100 {
            let digits = Array(String(format: "%.0f", size))
            var text = ""
            for (index, digit) in digits.enumerated() {
                if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
                text.append(digit)
            }
            return value < 0 ? "-" + text : text
        }
        return String(format: size >= 10 ? "%.1f" : size >= 1 ? "%.2f" : "%.3f", value)
    }
}
