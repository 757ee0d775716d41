@testable import tambour_spec

/// A violated property, with the first request that showed it.
struct FuzzFinding: CustomStringConvertible {
    let kind: String
    let request: FuzzRequest?
    var detail = ""
    /// A name that several findings may share. Only the first finding with a name is reported. If
    /// the name is nil, `kind` takes its place.
    var merges: String?

    var description: String {
        var text = kind
        if let request {
            text += "\n  by \(request.description)"
            text += "\n  \(request.opcode.name) \(Hex.text(request.payload.prefix(600)))"
            if request.payload.count > 600 { text += "… (\(request.payload.count) bytes)" }
        }
        return detail.isEmpty ? text : text + "\n  \(detail)"
    }
}

/// Counts of the requests and replies of a run.
struct FuzzTally {
    private(set) var sent = 0
    private(set) var findings: [FuzzFinding] = []
    private var names: Set<String> = []
    private var asked: [String: Int] = [:]
    var ok: [String: Int] = [:]
    var refusals: [String: Int] = [:]
    var counters: [String: Int] = [:]
    var slowest = 0.0

    mutating func count(_ request: FuzzRequest) {
        sent += 1
        asked[request.opcode.name, default: 0] += 1
    }

    mutating func add(_ finding: FuzzFinding) {
        guard names.insert(finding.merges ?? finding.kind).inserted else { return }
        findings.append(finding)
        print("request fuzzer: after \(sent) requests: \(finding)")
    }

    /// The opcodes for which every request was refused.
    var neverServed: [String] { asked.keys.filter { ok[$0] == nil }.sorted() }

    func report(of plan: EdgePlan, peakBytes: Int, seconds: Double) -> String {
        let served = ok.values.reduce(0, +)
        let codes = refusals.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.key) \($0.value)" }
        let rate = Int(Double(sent) / max(seconds, 0.001))
        return """
            request fuzzer: \(sent) requests in \(Int(seconds)) s (\(rate)/s), \(asked.count) opcodes, \
            \(min(plan.tried, plan.trials)) of \(plan.trials) edges (\(plan.sharpTrials) sharp), \(served) served, \
            peak \(peakBytes >> 20) MiB, slowest answer \(Int(slowest * 1_000)) ms, \
            \(findings.count) findings
            request fuzzer: refused: \(codes.joined(separator: ", "))
            request fuzzer: never served: \(neverServed.joined(separator: ", "))
            """
    }
}
