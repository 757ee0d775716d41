import Foundation
import TambourProtocol
import Testing

/// What a client kept, with what a login brought it, is what a fresh client gets at that moment.
///
/// Each sequence comes from its number alone: `TAMBOUR_SEED=17` plays number 17 and nothing else,
/// `TAMBOUR_SOAK=1` plays 2,000 instead of 150. Which writes these sequences guard is listed in
/// `Tests/mutants/README.md`.
@Suite("Delta equals fresh")
struct DeltaEqualsFreshTests {
    @Test("state kept from old logins plus deltas equals a full login, whatever happened between")
    func sequences() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["TAMBOUR_SEED"].flatMap { UInt64($0) }
        let isSoak = environment["TAMBOUR_SOAK"] == "1"
        let seeds = seed.map { [$0] } ?? Array(1...(isSoak ? 2_000 : 150))
        var total = SyncSequence.Counts()
        for seed in seeds {
            do {
                let sequence = try SyncSequence(seed: seed)
                try sequence.run()
                total.add(sequence.counts)
            } catch {
                Issue.record("TAMBOUR_SEED=\(seed): \(error)")
                return
            }
        }
        let accepted = SyncSequence.mutating.map { "\($0.rawValue): \(total.accepted[$0] ?? 0)" }
        print(
            "delta equals fresh: \(seeds.count) sequences, \(total.steps) steps, "
                + "\(total.logins) logins, \(total.chats) chats (\(total.bigChats) big), "
                + "\(total.restarts) restarts, \(total.refused) refusals; accepted "
                + accepted.joined(separator: ", ")
        )
        #expect(total.steps >= 60 * seeds.count)
        #expect(total.logins >= 3 * seeds.count)
        guard seed == nil else { return }
        #expect(total.bigChats > 0)
        for opcode in SyncSequence.mutating {
            #expect(
                total.accepted[opcode, default: 0] * 2_000 >= 500 * seeds.count,
                "opcode \(opcode.rawValue) is too rare"
            )
        }
    }
}
