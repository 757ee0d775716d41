import Foundation
import Testing

@testable import tambour_spec

/// Tests the rules of compatibility with the real specification and with the trials of `Trials`.
@Suite("Compatibility with releases")
struct CompatibilityTests {
    @Test("holds for what is committed")
    func isCompatible() throws {
        let problems = Releases(root: Repository.root).problems(
            of: try Repository.specification()
        )
        #expect(problems.isEmpty, "\(problems.map(\.description).joined(separator: "\n"))")
    }

    @Test("is broken by exactly what breaks it", arguments: Trials.all)
    func trial(_ trial: Trial) throws {
        var changed = trial.release
        changed.version += 1
        trial.change(&changed)
        let check = CompatibilityCheck(
            from: trial.before,
            to: Promises(of: changed),
            reworded: trial.reworded
        )
        let found = Set(
            check.breakages().map { Broken(title: $0.item.title, rule: $0.rule.name) }
        )
        let missing = trial.breaks.subtracting(found).map(\.description).sorted()
        let excess = found.subtracting(trial.breaks).map(\.description).sorted()
        #expect(missing.isEmpty, "not refused")
        #expect(excess.isEmpty, "refused without need")
        #expect(trial.things > 0, "nothing was tried")
    }

    /// A trial fails if the table lacks a rule that the trial names. So at least one trial must
    /// name each rule.
    @Test("needs every rule of the table")
    func everyRule() {
        let needed = Set(Trials.all.flatMap { $0.breaks.map(\.rule) })
        let rules = CompatibilityRule.table.map(\.name)
        #expect(Set(rules).subtracting(needed) == [], "no trial needs them")
        #expect(Set(rules).count == rules.count)

        var lines = Trials.all.map { trial in
            let refused = Set(trial.breaks.map(\.title)).count
            return
                "\(trial.testDescription): \(trial.things) tried, "
                + (refused == 0 ? "accepted" : "\(refused) refused")
        }
        let tried = Trials.all.map(\.things).reduce(0, +)
        lines.append("\(tried) changes tried, \(rules.count) rules")
        print(lines.joined(separator: "\n"))
    }

    @Test("says where, what and why")
    func message() throws {
        var specification = Trials.next
        let index = try #require(specification.structs.firstIndex { $0.name == "Chat" })
        let field = try #require(
            specification.structs[index].fields.firstIndex { $0.key == "title" }
        )
        specification.structs[index].fields[field].type = .int
        let problems = CompatibilityCheck.problems(of: specification, against: Trials.old)
        let line = specification.structs[index].fields[field].origin.line
        #expect(
            problems.map(\.description) == [
                "protocol-spec/types.yaml:\(line): release 1 is broken: Chat.title: type text → int: "
                    + "clients of today read the old type"
            ]
        )
        specification.structs[index].fields.remove(at: field)
        let removed = CompatibilityCheck.problems(of: specification, against: Trials.old)
        #expect(removed.map(\.origin) == [specification.structs[index].origin])
    }

    @Test("takes another text under an old id for another requirement")
    func reusedIDs() throws {
        let requirements = Trials.old.requirements
        let promises = Trials.promises
        var noticed = 0
        var tried = 0
        for old in requirements {
            for new in requirements where new.id != old.id {
                tried += 1
                let reused = CompatibilityRule.Case(
                    old: promises[old.id],
                    new: promises[new.id],
                    before: promises,
                    after: promises
                )
                if reused.changesWords(.text) { noticed += 1 }
            }
        }
        print("\(noticed) of \(tried) swapped texts are noticed")
        #expect(noticed == tried)
    }

    @Test("takes no requirement of today for one on clients")
    func bindsServers() {
        let binding = Trials.old.requirements.filter { Wording.bindsClients($0.text) }
        #expect(binding.map(\.id) == [])
    }
}
