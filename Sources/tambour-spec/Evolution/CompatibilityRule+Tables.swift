/// The rules for framing, names, limits, errors and the table of roles.
extension CompatibilityRule {
    // MARK: Framing and names

    static let framing = [
        CompatibilityRule(
            "version-removed",
            .version,
            .removed,
            "clients send it in every header"
        ),
        CompatibilityRule(
            "answer-version",
            .framing,
            .changed(.written),
            "clients were promised answers under the old one"
        ),
    ]

    static let names = [
        CompatibilityRule(
            "state-removed",
            .state,
            .removed,
            "clients go through it"
        ),
        CompatibilityRule(
            "capability-removed",
            .capability,
            .removed,
            "clients name it and count on what it brings; keep it and say in its text what became of it"
        ),
        CompatibilityRule(
            "feature-removed",
            .feature,
            .removed,
            "a name is never used again, so it must stay to be remembered; say in its text what became of it"
        ),
        CompatibilityRule(
            "feature-takes-served",
            .feature,
            .changed(.opcodes),
            "clients that name the feature use the opcode whether it is on or off; make it a feature of its own",
            where: \.takesServedOpcode
        ),
    ]

    // MARK: Limits

    static let limits = [
        CompatibilityRule(
            "limit-removed",
            .limit,
            .removed,
            "clients keep to it, and operators override it by its name"
        ),
        CompatibilityRule(
            "limit-lowered",
            .limit,
            .changed(.value),
            "clients of today reach up to the old value",
            where: { $0.was(.change) == "wider" && $0.falls(.value) }
        ),
        CompatibilityRule(
            "limit-raised",
            .limit,
            .changed(.value),
            "clients of today bear no more than the old value",
            where: { $0.was(.change) == "narrower" && !$0.falls(.value) }
        ),
        CompatibilityRule(
            "limit-changed",
            .limit,
            .changed(.value),
            "clients of today count on the number itself",
            where: { $0.was(.change) == "never" }
        ),
        CompatibilityRule(
            "limit-unit",
            .limit,
            .changed(.unit),
            "the same number would mean something else"
        ),
        CompatibilityRule(
            "limit-max",
            .limit,
            .changed(.max),
            "what operators wrote into their files of limits would be refused",
            where: { limit in
                guard let becomes = limit.new?.number(.max) else { return false }
                return becomes < limit.old?.number(.max) ?? .max
            }
        ),
        CompatibilityRule(
            "limit-freed",
            .limit,
            .changed(.change),
            "how a limit may change was promised with it",
            where: { $0.was(.change) != "any" }
        ),
    ]

    // MARK: Errors

    static let errors = [
        CompatibilityRule(
            "error-removed",
            .error,
            .removed,
            "clients know what to do about it; stop answering it and say so in its text"
        ),
        CompatibilityRule(
            "error-harder",
            .error,
            .changed(.class),
            "clients carry on after it and would find the connection closed",
            where: { $0.becomes(.class) == "hard" }
        ),
        CompatibilityRule(
            "error-retry",
            .error,
            .changed(.retry),
            "clients of today go on doing what they were told",
            where: { $0.was(.retry) != "never" }
        ),
        CompatibilityRule(
            "error-message",
            .error,
            .changed(.message),
            "clients read this text by machine"
        ),
        CompatibilityRule(
            "error-without-parent",
            .error,
            .added,
            "any old opcode may answer it or close with it, so its name must extend that of an older error of the same class: clients look for the longest part they know",
            where: {
                ($0.becomes(.common) == "true" || $0.becomes(.class) == "hard") && !$0.hasParent
            }
        ),
        CompatibilityRule(
            "error-common",
            .error,
            .changed(.common),
            "clients of today expect it of the opcodes that list it and of no other",
            where: { $0.becomes(.common) == "true" && !$0.hasParent }
        ),
        CompatibilityRule(
            "opcode-error-hard",
            .opcodeError,
            .added,
            "clients of today carry on after every error of this opcode",
            where: { added in
                let code = added.new?.lastWord ?? ""
                return added.after["error \(code)"]?[.class] == "hard"
            }
        ),
    ]

    // MARK: Roles

    static let roles = [
        CompatibilityRule(
            "role-bit-removed",
            .roleBit,
            .removed,
            "chats and administrators have it, and clients set it"
        ),
        CompatibilityRule(
            "role-bit-renumbered",
            .roleBit,
            .changed(.number),
            "administrators would have other rights than they were given"
        ),
        CompatibilityRule(
            "role-cell-removed",
            .roleCell,
            .removed,
            "clients count on what becomes of it"
        ),
        CompatibilityRule(
            "role-cell-narrowed",
            .roleCell,
            .changed(.text),
            "people of today may do it, and their clients offer it",
            where: \.isNarrowed
        ),
    ]
}
