import Foundation

/// The measurements of a whole comparison, and the facts that a reader needs to judge them.
struct PeersReport: Codable, Sendable {
    struct Server: Codable, Sendable {
        let name: String
        let version: String
        let durability: String
        /// The facts that were verified at the end of the last successful round.
        let verified: String?
        let unfair: [String]
        /// The time and the reason of each failure.
        let failures: [String]
    }

    let date: String
    let machine: String
    let command: String
    let corpus: String
    let servers: [Server]
    let absent: [String]
    /// Other servers that ran on the machine during the comparison.
    let bystanders: [String]
    let rounds: [Figures]

    /// The lines of the table: the title, and the name of the figure without the prefix `SERVER, `.
    private static let lines: [(title: String, figure: String)] =
        ["W1 window 1", "W1 window 16"].flatMap { run in
            [
                ("\(run): messages/s", "\(run), messages/s"),
                ("\(run): p50, ms", "\(run), p50 ms"),
                ("\(run): p99, ms", "\(run), p99 ms"),
                ("\(run): server CPU, µs/message", "\(run), server CPU µs/message"),
                ("\(run): bytes/message", "\(run), bytes/message"),
                ("\(run): driver, cores", "\(run), driver cores"),
            ]
        } + [
            ("W2 group of 100: deliveries/s", "W2, deliveries/s"),
            ("W2 group of 100: last member p50, ms", "W2, last p50 ms"),
            ("W4 return, 5 new in 200 chats: p50, ms", "W4, p50 ms"),
            ("W4 return: server CPU, ms", "W4, server CPU ms"),
            ("W4 return: driver CPU, ms", "W4, driver CPU ms"),
            ("W4 return: bytes in", "W4, bytes in"),
            ("W5 page of 50 in 100,000: pages/s", "W5, per second"),
            ("W5 page: server CPU, ms", "W5, server CPU ms"),
            ("W5 page: driver CPU, ms", "W5, driver CPU ms"),
            ("W5 page: bytes", "W5, bytes in"),
        ]

    /// Figures for which a larger value is better, and the claimed ratio for each peer.
    private static let ratios: [(title: String, figure: String, claimed: [String: Double])] = [
        ("W1 window 1: messages/s", "W1 window 1, messages/s", [:]),
        (
            "W1 window 16: messages/s", "W1 window 16, messages/s",
            ["prosody": 40, "ejabberd": 40]
        ),
        ("W2: deliveries/s", "W2, deliveries/s", [:]),
        ("W4: returns/s", "W4, per second", [:]),
        ("W5: pages/s", "W5, per second", ["prosody": 50]),
    ]

    /// Tambour's figures as multiples of each peer's, computed per round.
    var claims: [Report.Verdict] {
        Self.ratios.flatMap { ratio in
            servers.dropFirst().compactMap { peer in
                let claim = Claim.ratio(
                    "\(ratio.title), of \(peer.name)",
                    "\(servers[0].name), \(ratio.figure)",
                    to: "\(peer.name), \(ratio.figure)",
                    .atLeast(ratio.claimed[peer.name] ?? 0)
                )
                let verdict = Report.judge(claim, rounds)
                guard ratio.claimed[peer.name] == nil else { return verdict }
                guard verdict.median != nil else { return nil }
                return Report.Verdict(
                    claim: verdict.claim,
                    bound: "–",
                    median: verdict.median,
                    least: verdict.least,
                    most: verdict.most,
                    verdict: ""
                )
            }
        }
    }

    var markdown: String {
        var text = "Machine: \(machine)\nCommand: `\(command)`\nTexts: \(corpus)\n\n"
        var table = Table(
            ["median of \(rounds.count)"] + servers.map { "\($0.name) \($0.version)" }
        )
        if servers.contains(where: { !$0.failures.isEmpty }) {
            table.add(["failed"] + servers.map(\.failed))
        }
        for line in Self.lines {
            table.add(
                [line.title]
                    + servers.map { server in
                        let values = rounds.compactMap { $0["\(server.name), \(line.figure)"] }
                        return values.sorted().median.map(Table.number)
                            ?? (server.failures.isEmpty ? "none" : "failed")
                    }
            )
        }
        text += table.markdown
        for name in absent { text += "\n\(name) is not installed.\n" }
        if !bystanders.isEmpty {
            text += "\nRan beside it, and took from everybody: "
            text += bystanders.joined(separator: ", ") + ".\n"
        }

        text += "\nTambour as a multiple of each:\n\n"
        var multiples = Table(["", "claim", "median", "spread", ""])
        for claim in claims {
            multiples.add([
                claim.claim,
                claim.bound,
                claim.median.map(Table.number) ?? "–",
                claim.least.flatMap { least in
                    claim.most.map { "\(Table.number(least)) … \(Table.number($0))" }
                } ?? "–",
                claim.verdict,
            ])
        }
        text += multiples.markdown

        text += "\nWhat a message has gone through when its receiver gets it:\n\n"
        for server in servers {
            text += "- \(server.name): \(server.durability). "
            text += "Seen at the end of a round: \(server.verified ?? "nothing").\n"
        }
        text += "\nWhat is unfair, and for or against whom:\n\n"
        for server in servers {
            for line in server.unfair { text += "- \(server.name): \(line).\n" }
        }
        let lost = servers.flatMap { server in
            rounds.flatMap { round in
                round.filter { $0.key.hasPrefix("\(server.name), ") && $0.key.hasSuffix(", lost") }
                    .filter { $0.value > 0 }
                    .map { "\($0.key): \(Table.number($0.value))" }
            }
        }
        if !lost.isEmpty { text += "\nLost:\n\n" + lost.map { "- \($0)\n" }.joined() }
        return text
    }

    var json: Data {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            return try encoder.encode(self)
        }
    }
}

extension PeersReport.Server {
    /// The failures, formatted for a table cell.
    fileprivate var failed: String {
        guard !failures.isEmpty else { return "" }
        let why = failures.joined(separator: "; ").split(whereSeparator: \.isNewline)
        return "failed: "
            + why.joined(separator: " ").replacingOccurrences(of: "|", with: "/").prefix(200)
    }
}
