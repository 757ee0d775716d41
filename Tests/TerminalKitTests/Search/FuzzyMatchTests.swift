import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that the search finds the best match of each candidate, and puts the most likely candidate
/// first.
struct FuzzyMatchTests {
    @Test(
        "case, accents and forms do not matter",
        arguments: [
            ("jose", "José Ángel"), ("JOSÉ", "jose"), ("strasse", "Straße"), ("oeuvre", "Œuvre"),
            ("lodz", "Łódź"), ("елка", "Ёлка"), ("αθηνα", "Αθήνα"), ("istanbul", "İstanbul"),
            ("nguyen", "Nguyễn"), ("e\u{301}te", "ete"), ("nino", "Nin\u{303}o"), ("שלום", "שָׁלוֹם"),
        ]
    )
    func folding(query: String, name: String) {
        #expect(FuzzyMatch(query, in: name) != nil)
    }

    @Test("what is not there in this order does not match")
    func misses() {
        #expect(FuzzyMatch("ba", in: "ab") == nil)
        #expect(FuzzyMatch("abc", in: "ab") == nil)
        #expect(FuzzyMatch("al zz", in: "alice") == nil)
        #expect(FuzzyMatch("", in: "anything")?.score == 0)
        #expect(FuzzyMatch("x", in: "") == nil)
    }

    @Test("the matched clusters are told")
    func ranges() {
        #expect(FuzzyMatch("bd", in: "Bob Dylan")?.ranges == [0..<1, 4..<5])
        #expect(FuzzyMatch("team", in: "the a-team")?.ranges == [6..<10])
        #expect(FuzzyMatch("ssb", in: "Fußball")?.ranges == [2..<4])
        #expect(FuzzyMatch("dev tam", in: "Tambour dev")?.ranges == [0..<3, 8..<11])
    }

    @Test(
        "word starts and consecutive hits come first",
        arguments: [
            ("ann", ["Ann", "Joanna", "Abnormal pinion"]), ("bd", ["Bob Dylan", "abide"]),
            ("tam", ["Tambour", "Team Amsterdam", "Kotamobile"]), ("fb", ["FooBar", "foobar"]),
        ]
    )
    func order(query: String, names: [String]) {
        let ranked = FuzzyMatch.rank(query, names.reversed().map { FoldedText($0) })
        #expect(ranked.map { Array(names.reversed())[$0.index] } == names)
    }

    @Test("equals stay in their order, the shorter first")
    func ties() {
        let names = ["chat one", "chat two", "chat"].map { FoldedText($0) }
        #expect(FuzzyMatch.rank("chat", names).map(\.index) == [2, 0, 1])
    }

    @Test("no other way to match scores higher")
    func optimality() {
        Property<Unicode.Scalar>(plays: 400, soak: 10_000) { random in
            (0..<random.int(1..<14)).map { _ in random.pick(["a", "b", "B", " ", "c"]) }
        } failure: { scalars, seed in
            var random = SeededGenerator(seed: seed &+ 1)
            let name = FoldedText(String(String.UnicodeScalarView(scalars)))
            let query: [Unicode.Scalar] = (0..<random.int(1..<5)).map { _ in
                random.pick(["a", "b"])
            }
            let alignment = FuzzyAlignment(query, in: name)
            let found = alignment.best()
            let expected = Self.everyAlignment(query, name.scalars).map {
                Self.score($0, alignment)
            }
            .max()
            if found?.score != expected { return "\(String(describing: found)) for \(query)" }
            guard let found else { return nil }
            if found.positions.map({ name.scalars[$0] }) != query { return "\(found)" }
            if Self.score(found.positions, alignment) != found.score { return "\(found)" }
            return nil
        }.check()
    }

    private static func everyAlignment(
        _ query: [Unicode.Scalar],
        _ name: [Unicode.Scalar]
    ) -> [[Int]] {
        query.reduce([[]]) { alignments, scalar in
            alignments.flatMap { alignment in
                name.indices.filter { $0 > alignment.last ?? -1 && name[$0] == scalar }.map {
                    alignment + [$0]
                }
            }
        }
    }

    private static func score(_ positions: [Int], _ alignment: FuzzyAlignment) -> Int {
        let steps = zip(positions, positions.dropFirst()).map(FuzzyAlignment.transition)
        return positions.reduce(0) { $0 + FuzzyAlignment.hit + alignment.bonus(at: $1) }
            + steps.reduce(0, +)
    }
}
