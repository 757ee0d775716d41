/// Writes the changes of a release as Markdown. Lists what was added, changed, deprecated and
/// removed, by subject.
struct ReleaseNotes {
    private let check: CompatibilityCheck
    private let notes: [ChangeNote]

    /// - Parameter notes: The reasons for the changes, from the notes of every release after
    ///   `before`.
    init(from before: Specification, to after: Specification, notes: [ChangeNote] = []) {
        check = CompatibilityCheck(from: before, to: after)
        self.notes = notes
    }

    private enum Verb: String, CaseIterable {
        case added = "Added"
        case changed = "Changed"
        case deprecated = "Deprecated"
        case removed = "Removed"
    }

    func text() -> String {
        var entries: [String: [Verb: [String]]] = [:]
        for difference in check.differences() {
            let subject = subject(of: difference.item)
            switch (difference.old, difference.new) {
            case (nil, let new?): entries[subject, default: [:]][.added, default: []] += added(new)
            case (let old?, nil):
                entries[subject, default: [:]][.removed, default: []].append("- \(name(old))")
            default:
                for fact in difference.facts {
                    let (verb, line) = changed(fact, of: difference)
                    entries[subject, default: [:]][verb, default: []].append(line)
                }
            }
        }
        var sections = [
            "# Release \(check.after.version)",
            "What changed in the protocol since release \(check.before.version).",
        ]
        if entries.isEmpty { sections.append("Nothing.") }
        if !notes.isEmpty {
            sections.append("## Why")
            sections += notes.map { note in
                "**\(note.touches.joined(separator: ", "))** (\(audience(note)))\n\n\(note.text)"
            }
        }
        for subject in subjects {
            guard let verbs = entries[subject] else { continue }
            sections.append("## \(subject)")
            for verb in Verb.allCases {
                guard let lines = verbs[verb] else { continue }
                sections.append("### \(verb.rawValue)")
                sections.append(lines.joined(separator: "\n"))
            }
        }
        return sections.joined(separator: "\n\n") + "\n"
    }

    // MARK: Subjects

    /// The headings in order: each family of opcodes, then the shared items.
    private var subjects: [String] {
        var families: [String] = []
        for item in check.after.items + check.before.items where item.kind == .opcode {
            let family = subject(of: item)
            if !families.contains(family) { families.append(family) }
        }
        return ["Handshake"] + families
            + ["Objects", "Entities", "Roles", "Limits", "Errors", "Requirements"]
    }

    private func subject(of item: Promise) -> String {
        switch item.kind {
        case .framing, .version, .range, .state, .capability, .feature: "Handshake"
        case .limit: "Limits"
        case .error: "Errors"
        case .requirement: "Requirements"
        case .roleBit, .roleCell: "Roles"
        case .entity, .entityField: "Entities"
        case .enumeration, .value, .object: "Objects"
        case .field where item.origin.file == "types.yaml": "Objects"
        default:
            "Opcodes: \(item.origin.file.split(separator: "/").last?.prefix { $0 != "." } ?? "")"
        }
    }

    private func audience(_ note: ChangeNote) -> String {
        switch note.audience {
        case .client: "for clients"
        case .server: "for servers"
        case .both: "for clients and servers"
        }
    }

    // MARK: Lines

    private func name(_ item: Promise) -> String {
        switch item.kind {
        case .opcode: "`\(item.title)` (\(item[.number] ?? ""))"
        case .limit, .error, .capability, .feature, .state:
            "\(item.kind.rawValue) `\(item.lastWord)`"
        case .framing, .version, .range, .requirement, .known, .opcodeState, .opcodeError,
            .effect:
            item.title
        default: "`\(item.title)`"
        }
    }

    /// Returns the line of an added item, followed by the lines of its parts.
    private func added(_ item: Promise) -> [String] {
        let head = [name(item) + traits(of: item), item.doc].filter { !$0.isEmpty }
        let parts = check.after.items.filter { $0.owner == item.id }
        return ["- " + head.joined(separator: ": ")]
            + parts.flatMap { part in added(part).map { "    \($0)" } }
    }

    private func changed(
        _ fact: Promise.Fact,
        of difference: CompatibilityCheck.Difference
    ) -> (Verb, String) {
        let item = difference.item
        let was = difference.old?[fact] ?? "none"
        let becomes = difference.new?[fact] ?? "none"
        switch fact {
        case .replacement: return (.deprecated, "- \(name(item)): use `\(becomes)` instead")
        case .sunset: return (.deprecated, "- \(name(item)): may be gone in release \(becomes)")
        case .text: return (.changed, "- \(name(item)) reads: \(becomes)")
        default: return (.changed, "- \(name(item)): \(fact.rawValue) \(was) → \(becomes)")
        }
    }

    /// Returns the details of an item that are shown in parentheses after its name.
    private func traits(of item: Promise) -> String {
        let traits: [String?] =
            switch item.kind {
            case .field:
                [
                    item[.type].map { "`\($0)`" },
                    item[.default].map { "`\($0)` unless given" } ?? item[.presence],
                    item[.limit].map { "at most `\($0)` units" },
                    item[.limitBytes].map { "at most `\($0)` bytes" },
                    item[.limitItems].map { "at most `\($0)` items" },
                    item[.capability].map { "only with the capability `\($0)`" },
                ]
            case .opcode:
                [
                    item[.direction], item[.idempotency],
                    item[.capability].map { "only with the capability `\($0)`" },
                ]
            case .limit: ["\(item[.value] ?? "") \(item[.unit] ?? "")"]
            case .error: [item[.class], "retry \(item[.retry] ?? "")"]
            case .enumeration: [item[.open] == "true" ? "open" : "closed"]
            case .requirement: [item[.level]]
            case .roleBit: [item[.number]]
            case .roleCell, .entity: [item[.text]]
            case .entityField: [item[.type]]
            default: []
            }
        let present = traits.compactMap(\.self)
        return present.isEmpty ? "" : " (\(present.joined(separator: ", ")))"
    }
}
