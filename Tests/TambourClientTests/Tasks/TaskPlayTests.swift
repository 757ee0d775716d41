import Foundation
import TambourClient
import Testing

/// Random tasks, lanes, outcomes, crashes and clocks. After each transaction the rows must obey the
/// rules T1 to T12. A scheduler rebuilt from the rows must equal the present one. At the end of
/// each play all tasks end, and no rows remain.
///
/// `TAMBOUR_SEED=17` plays only play 17; `TAMBOUR_SOAK=1` plays ten times as many plays.
@Suite("Whatever happens to two processes and their tasks, the rules hold")
struct TaskPlayTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let groups = 8

    private static var count: Int { environment["TAMBOUR_SOAK"] == "1" ? 30_000 : 3000 }

    @Test("in random plays", arguments: 0..<groups)
    func plays(group: Int) {
        let chosen = Self.environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
        if let chosen {
            if group == 0 { play(seed: chosen) }
            return
        }
        for number in stride(from: group, to: Self.count, by: Self.groups) {
            if !play(seed: UInt64(number)) { return }
        }
    }

    @discardableResult
    private func play(seed: UInt64) -> Bool {
        var generator = TaskMoveGenerator(seed: seed)
        let moves = generator.moves()
        guard TaskPlay.fault(in: moves, seed: seed) != nil else { return true }
        let shortest = TaskPlay.shortest(moves, seed: seed)
        let list = shortest.map { "  \($0)" }.joined(separator: "\n")
            .replacingOccurrences(of: "TambourClientTests.TaskMove.", with: "")
            .replacingOccurrences(of: "TambourClient.", with: "")
        let fault = TaskPlay.fault(in: shortest, seed: seed) ?? ""
        Issue.record("TAMBOUR_SEED=\(seed): \(fault)\n\(list)")
        return false
    }
}
