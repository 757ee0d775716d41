/// Compares two specifications with the rules of `CompatibilityRule.table`.
struct CompatibilityCheck {
    /// A change that breaks clients of the old release.
    struct Breakage: Sendable {
        var rule: CompatibilityRule
        var item: Promise
        /// The change, for example "removed" or "type int → text".
        var what: String

        var text: String { "\(item.title): \(what): \(rule.reason)" }
    }

    /// Any change, compatible or not.
    struct Difference: Sendable {
        var old: Promise?
        var new: Promise?
        /// The changed facts; empty if the item was added or removed.
        var facts: [Promise.Fact] = []

        var item: Promise {
            guard let item = new ?? old else { preconditionFailure("of two nothings") }
            return item
        }

        /// Whether the wording of a normative text has changed.
        var changesWords: Bool {
            let texts: Set<Promise.Fact> = [.text, .to, .when]
            return facts.contains { fact in
                texts.contains(fact)
                    && Wording.words(old?[fact] ?? "") != Wording.words(new?[fact] ?? "")
            }
        }
    }

    let before: Promises
    let after: Promises
    /// The rules by kind and change.
    private let rules: [Subject: [CompatibilityRule]]
    /// The items of which a note says that only their wording has changed, not their meaning: ids
    /// of requirements and names of opcodes.
    private let reworded: Set<String>

    private struct Subject: Hashable {
        var kind: Promise.Kind
        var change: CompatibilityRule.Change
    }

    init(
        from before: Specification,
        to after: Specification,
        reworded: Set<String> = []
    ) {
        self.init(from: Promises(of: before), to: Promises(of: after), reworded: reworded)
    }

    init(
        from before: Promises,
        to after: Promises,
        reworded: Set<String> = []
    ) {
        self.before = before
        self.after = after
        self.reworded = reworded
        rules = Dictionary(grouping: CompatibilityRule.table) {
            Subject(kind: $0.kind, change: $0.change)
        }
    }

    /// Returns the removed or changed items in the order of the old specification, followed by the
    /// added items.
    ///
    /// If an item was added or removed, the items that it contains are not listed separately.
    func differences() -> [Difference] {
        var result: [Difference] = []
        for old in before.items {
            if let owner = old.owner, after[owner] == nil { continue }
            guard let new = after[old.id] else {
                result.append(Difference(old: old))
                continue
            }
            let facts = Promise.Fact.allCases.filter { old[$0] != new[$0] }
            if !facts.isEmpty { result.append(Difference(old: old, new: new, facts: facts)) }
        }
        for new in after.items where before[new.id] == nil {
            if let owner = new.owner, before[owner] == nil { continue }
            result.append(Difference(new: new))
        }
        return result
    }

    func breakages() -> [Breakage] {
        differences().flatMap { difference in
            changes(of: difference).flatMap { change, what in
                let rules = rules[Subject(kind: difference.item.kind, change: change)] ?? []
                let subject = CompatibilityRule.Case(
                    old: difference.old,
                    new: difference.new,
                    before: before,
                    after: after,
                    isReworded: reworded.contains(subject(of: difference.item))
                )
                return rules.filter { $0.applies(subject) }.map {
                    Breakage(rule: $0, item: difference.old ?? difference.item, what: what)
                }
            }
        }
    }

    private func changes(
        of difference: Difference
    ) -> [(change: CompatibilityRule.Change, what: String)] {
        guard let old = difference.old else { return [(.added, "added")] }
        guard let new = difference.new else { return [(.removed, "removed")] }
        return difference.facts.map { fact in
            (.changed(fact), "\(fact.rawValue) \(old[fact] ?? "none") → \(new[fact] ?? "none")")
        }
    }
}

extension CompatibilityCheck {
    /// Reports the differences between a specification and a release that break clients of the
    /// release. Each problem contains the place of the change.
    ///
    /// - Parameters:
    ///   - earlier: The releases before `release`. The names and numbers of their removed items
    ///     cannot be reused either.
    ///   - reworded: The items of which a note says that only their wording has changed.
    static func problems(
        of specification: Specification,
        against release: Specification,
        after earlier: [Specification] = [],
        reworded: Set<String> = []
    ) -> [Problem] {
        let check = CompatibilityCheck(from: release, to: specification, reworded: reworded)
        let broken = check.breakages().map { breakage in
            Problem(
                origin: check.after.origin(of: breakage.item),
                text: "release \(release.version) is broken: \(breakage.text)"
            )
        }
        return broken
            + check.reused(from: earlier.map { Promises(of: $0) }).map { item, version in
                Problem(
                    origin: check.after.origin(of: item),
                    text:
                        "\(item.title): was something else in release \(version), and is never used again"
                )
            }
    }

    /// Returns the added items whose name or number an earlier release used. Old clients may still
    /// use such a name or number with its former meaning.
    ///
    /// An error, state or effect of an opcode may return, because its meaning has not changed.
    private func reused(from earlier: [Promises]) -> [(item: Promise, version: Int)] {
        let added = after.items.filter {
            before[$0.id] == nil
                && ![.opcodeError, .opcodeState, .effect, .known].contains($0.kind)
        }
        return added.compactMap { item in
            earlier.last { $0[item.id] != nil || $0.hasOpcode(named: item[.name], like: item) }
                .map { (item, $0.version) }
        }
    }
}

extension Promises {
    fileprivate func hasOpcode(named name: String?, like item: Promise) -> Bool {
        item.kind == .opcode && items.contains { $0.kind == .opcode && $0[.name] == name }
    }
}
