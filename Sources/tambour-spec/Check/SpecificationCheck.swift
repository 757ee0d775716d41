/// The rules for the contents of well-formed YAML.
///
/// Each function checks the rules of one subject; larger subjects have their own file.
struct SpecificationCheck {
    let specification: Specification
    var problems: [Problem] = []

    init(_ specification: Specification) {
        self.specification = specification
    }

    static func problems(of specification: Specification) -> [Problem] {
        var check = SpecificationCheck(specification)
        check.checkLimits()
        check.checkNames()
        check.checkErrors()
        check.checkTypes()
        check.checkOpcodes()
        check.checkCosts()
        check.problems += specification.roles.problems(in: specification)
        check.problems += specification.entities.problems(in: specification)
        check.checkRequirements()
        check.checkFlows()
        check.problems += ExampleCheck.problems(of: specification)
        return check.problems
    }

    mutating func complain(_ origin: Origin, _ text: String) {
        problems.append(Problem(origin: origin, text: text))
    }

    mutating func unique(_ names: [(String, Origin)], _ what: String) {
        var seen: Set<String> = []
        for (name, origin) in names where !seen.insert(name).inserted {
            complain(origin, "\(what) \(name) is there twice")
        }
    }

    mutating func documented(_ doc: String, since: Int, _ what: String, _ origin: Origin) {
        if doc.last != "." { complain(origin, "\(what): the text must end with a full stop") }
        if since < 1 || since > specification.version {
            complain(
                origin,
                "\(what): since \(since) is not a release up to \(specification.version)"
            )
        }
    }

    // MARK: Limits, capabilities, errors

    private mutating func checkLimits() {
        unique(specification.limits.map { ($0.name, $0.origin) }, "limit")
        for limit in specification.limits {
            documented(limit.reason, since: limit.since, limit.name, limit.origin)
            if limit.value < 1 || limit.value > limit.max ?? .max {
                complain(limit.origin, "\(limit.name): \(limit.value) is out of range")
            }
        }
    }

    private mutating func checkNames() {
        // Capabilities and dialects must not have the same name, because fields refer to both with
        // the same key.
        unique(specification.gates.map { ($0.name, $0.origin) }, "capability or dialect")
        unique(specification.features.map { ($0.documented.name, $0.documented.origin) }, "feature")
        for (what, entries, most) in [
            ("capability", specification.capabilities, CapabilitiesSource.firstDialect),
            ("dialect", specification.dialects.map(\.documented), CapabilitiesSource.mostDialects),
            ("feature", specification.features.map(\.documented), UInt64.bitWidth),
        ] {
            if entries.count > most {
                complain(entries[most].origin, "\(what) \(entries[most].name): more than \(most)")
            }
            for entry in entries {
                documented(entry.doc, since: entry.since, entry.name, entry.origin)
                if entry.name.wholeMatch(of: /[a-z][a-z0-9-]{0,63}/) == nil {
                    complain(
                        entry.origin,
                        "\(what) \(entry.name): a name is lower-case letters, digits and hyphens"
                    )
                }
            }
        }
        checkFeatures()
        checkDialects()
        unique(specification.states.map { ($0.name, $0.origin) }, "state")
        if !specification.acceptedVersions.contains(specification.writtenVersion) {
            complain(
                Origin(file: "protocol.yaml", line: 0),
                "the version written is not one that is read"
            )
        }
    }

    private mutating func checkFeatures() {
        unique(
            specification.features.flatMap { feature in
                feature.opcodes.map { ($0, feature.documented.origin) }
            },
            "the feature of"
        )
        for feature in specification.features {
            for name in feature.opcodes {
                // Only queries and commands are checked after LOGIN, which determines the enabled
                // features.
                let kind = specification.opcode(named: name)?.kind
                if kind != .query, kind != .command {
                    complain(
                        feature.documented.origin,
                        "feature \(feature.name): \(name) is no query and no command"
                    )
                }
            }
        }
    }

    private mutating func checkDialects() {
        let numbers = Set(
            specification.families.flatMap { $0.opcodes.map(\.number) + $0.known.map(\.number) }
        )
        for (index, dialect) in specification.dialects.enumerated() {
            let (name, origin) = (dialect.name, dialect.documented.origin)
            let before = specification.dialects[..<index]
            if let base = dialect.base, !before.contains(where: { $0.name == base }) {
                complain(origin, "dialect \(name): its base \(base) is not declared before it")
            }
            unique(
                dialect.movedOpcodes.map { ("\($0)", origin) },
                "dialect \(name): the moved number"
            )
            for number in dialect.movedOpcodes where !numbers.contains(number) {
                complain(origin, "dialect \(name): nobody knows the moved number \(number)")
            }
        }
    }

    private mutating func checkErrors() {
        unique(specification.errors.map { ($0.code, $0.origin) }, "error")
        unique(specification.errors.map { ($0.swiftName, $0.origin) }, "error name")
        let answered = Set(specification.families.flatMap(\.opcodes).flatMap(\.errors))
        for error in specification.errors {
            documented(error.when, since: error.since, error.code, error.origin)
            if !error.isCommon, !answered.contains(error.code) {
                complain(error.origin, "\(error.code): no opcode answers it")
            }
            if error.isCommon, answered.contains(error.code) {
                complain(error.origin, "\(error.code): is common, opcodes do not list it")
            }
        }
    }
}
