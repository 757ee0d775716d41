import Foundation

/// What a whole call of the suite measured.
struct Report: Codable, Sendable {
    struct Outcome: Codable, Sendable {
        let name: String
        let title: String
        let rounds: [Figures]
        let claims: [Verdict]
    }

    struct Verdict: Codable, Sendable {
        let claim: String
        let bound: String
        let median: Double?
        let least: Double?
        let most: Double?
        /// `met`, `stretch met`, `MISSED` or `not measured`.
        let verdict: String
    }

    var date: String
    var machine: String
    var command: String
    var corpus: String
    var outcomes: [Outcome] = []

    /// Adds the rounds of a workload and judges its claims by their medians.
    mutating func add(_ workload: any Workload, rounds: [Figures]) {
        let verdicts = workload.claims.map { Self.judge($0, rounds) }
        outcomes.append(
            Outcome(name: workload.name, title: workload.title, rounds: rounds, claims: verdicts)
        )
    }

    static func judge(_ claim: Claim, _ rounds: [Figures]) -> Verdict {
        let values = rounds.compactMap(claim.value).sorted()
        guard let median = values.median else {
            return Verdict(
                claim: claim.text,
                bound: claim.bound.text,
                median: nil,
                least: nil,
                most: nil,
                verdict: "not measured"
            )
        }
        let verdict =
            if let stretch = claim.stretch, stretch.holds(median) {
                "stretch met"
            } else if claim.bound.holds(median) { "met" } else { "MISSED" }
        return Verdict(
            claim: claim.text,
            bound: claim.bound.text,
            median: median,
            least: values.first,
            most: values.last,
            verdict: verdict
        )
    }

    var hasMissed: Bool {
        outcomes.contains { $0.claims.contains { $0.verdict == "MISSED" } }
    }

    // MARK: - As text

    /// The claims first, for whoever reads one table; then everything that was measured.
    var markdown: String {
        var text = "Machine: \(machine)\nCommand: `\(command)`\nTexts: \(corpus)\n\n"
        var claims = Table(["", "claim", "bound", "median", "spread", ""])
        for outcome in outcomes {
            for verdict in outcome.claims {
                claims.add([
                    outcome.name, verdict.claim, verdict.bound,
                    verdict.median.map(Table.number) ?? "–",
                    verdict.least.flatMap { least in
                        verdict.most.map { "\(Table.number(least)) … \(Table.number($0))" }
                    } ?? "–",
                    verdict.verdict,
                ])
            }
        }
        text += claims.markdown
        for outcome in outcomes {
            text += "\n## \(outcome.name): \(outcome.title)\n\n"
            var table = Table(["", "median of \(outcome.rounds.count)", "least", "most"])
            let names = Set(outcome.rounds.flatMap(\.keys)).sorted {
                $0.localizedStandardCompare($1) == .orderedAscending
            }
            for name in names {
                let values = outcome.rounds.compactMap { $0[name] }.sorted()
                guard let median = values.median, let least = values.first, let most = values.last
                else { continue }
                table.add([name, Table.number(median), Table.number(least), Table.number(most)])
            }
            text += table.markdown
        }
        return text
    }

    var json: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            return try encoder.encode(self)
        }
    }

    /// Processor, memory, kernel.
    static var thisMachine: String {
        let cpu = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?
            .split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":").last?.trimmingCharacters(in: .whitespaces)
        let release = try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)
        let memory = ProcessInfo.processInfo.physicalMemory >> 30
        return
            "\(ProcessInfo.processInfo.activeProcessorCount) × \(cpu ?? "unknown processor"), "
            + "\(memory) GiB, Linux \(release?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "?")"
    }
}

extension [Double] {
    /// Of sorted values.
    var median: Double? {
        isEmpty
            ? nil : count % 2 == 1 ? self[count / 2] : (self[count / 2 - 1] + self[count / 2]) / 2
    }
}

/// Rows of cells, padded so that the source reads as well as the page.
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

    /// Three digits that mean something.
    static func number(_ value: Double) -> String {
        let size = abs(value)
        if size == size.rounded(), size < 1_000 { return "\(Int(value))" }
        if size >= 100 {
            let digits = Array("\(Int(size.rounded()))")
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
