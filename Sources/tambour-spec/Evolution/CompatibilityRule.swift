/// One way to break existing clients, with the reason.
///
/// Every change that no rule refuses is allowed.
struct CompatibilityRule: Sendable {
    enum Change: Hashable, Sendable {
        case added, removed
        case changed(SurfaceItem.Fact)
    }

    /// A thing before and after; `old` is nil when it was added, `new` when it was removed.
    struct Case: Sendable {
        var old: SurfaceItem?
        var new: SurfaceItem?
        var before: SurfaceIndex
        var after: SurfaceIndex
        /// Whether a note declares the meaning unchanged.
        var isReworded = false

        /// Whether clients of the old release send it.
        var isSent: Bool { old?.flow.contains(.toServer) == true }
        /// Whether clients of the old release receive it.
        var isReceived: Bool { old?.flow.contains(.toClient) == true }

        func was(_ fact: SurfaceItem.Fact) -> String? { old?[fact] }
        func becomes(_ fact: SurfaceItem.Fact) -> String? { new?[fact] }

        /// Whether a number has become smaller.
        func falls(_ fact: SurfaceItem.Fact) -> Bool {
            guard let was = old?.number(fact), let becomes = new?.number(fact) else { return false }
            return becomes < was
        }
    }

    /// A unique name, for tests and messages.
    let name: String
    let kind: SurfaceItem.Kind
    let change: Change
    let reason: String
    /// The condition of the rule; without one, every such change is refused.
    let applies: @Sendable (Case) -> Bool

    private init(
        _ name: String,
        _ kind: SurfaceItem.Kind,
        _ change: Change,
        _ reason: String,
        where applies: @escaping @Sendable (Case) -> Bool = { _ in true }
    ) {
        self.name = name
        self.kind = kind
        self.change = change
        self.reason = reason
        self.applies = applies
    }

    static let table: [CompatibilityRule] =
        framing + names + limits + errors + types + fields + roles + entities + opcodes
        + requirements
        + releases

    // MARK: Framing and names

    private static let framing = [
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

    private static let names = [
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

    private static let limits = [
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

    private static let errors = [
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

    // MARK: Types

    private static let types = [
        CompatibilityRule(
            "enum-removed",
            .enumeration,
            .removed,
            "fields of clients have this type"
        ),
        CompatibilityRule(
            "enum-closed",
            .enumeration,
            .changed(.open),
            "what clients send beside the listed values was let through, and would be refused",
            where: { $0.becomes(.open) == "false" }
        ),
        CompatibilityRule(
            "enum-opened",
            .enumeration,
            .changed(.open),
            "clients of today refuse values they do not know",
            where: { $0.becomes(.open) == "true" && $0.isReceived }
        ),
        CompatibilityRule(
            "value-removed",
            .value,
            .removed,
            "clients send it or look for it; stop writing it and say so in its text"
        ),
        CompatibilityRule(
            "value-added-to-closed",
            .value,
            .added,
            "clients of today refuse values they do not know; send it in a new field that needs a capability",
            where: { added in
                guard let type = added.new?.owner.flatMap({ added.before[$0] }) else {
                    return false
                }
                return type[.open] == "false" && type.flow.contains(.toClient)
            }
        ),
        CompatibilityRule(
            "value-capability",
            .value,
            .changed(.capability),
            "clients of today get it, or something else, by what they named so far"
        ),
        CompatibilityRule(
            "value-fallback",
            .value,
            .changed(.fallback),
            "clients that cannot read it know the old one in its place"
        ),
        CompatibilityRule(
            "struct-removed",
            .object,
            .removed,
            "fields of clients have this type"
        ),
    ]

    // MARK: Fields

    private static let fields = [
        CompatibilityRule(
            "field-removed-from-server",
            .field,
            .removed,
            "clients send it, and what they mean by it would be skipped; deprecate it first",
            where: { $0.isSent && !$0.isPastSunset }
        ),
        CompatibilityRule(
            "field-removed-from-clients",
            .field,
            .removed,
            "clients read it; deprecate it first",
            where: { $0.isReceived && !$0.isPastSunset }
        ),
        CompatibilityRule(
            "field-added-required",
            .field,
            .added,
            "the other side may be older and not send it; make it optional or give it a default",
            where: { $0.becomes(.presence) == "required" }
        ),
        CompatibilityRule(
            "field-type-from-clients",
            .field,
            .changed(.type),
            "what clients send as the old type would be refused or read as something else",
            where: { $0.isSent && !$0.typeIsReadAlike(.toServer) }
        ),
        CompatibilityRule(
            "field-type-to-clients",
            .field,
            .changed(.type),
            "clients of today read the old type",
            where: { $0.isReceived && !$0.typeIsReadAlike(.toClient) }
        ),
        CompatibilityRule(
            "field-made-required",
            .field,
            .changed(.presence),
            "the other side may be older and leave it out",
            where: { $0.becomes(.presence) == "required" }
        ),
        CompatibilityRule(
            "field-no-longer-sure",
            .field,
            .changed(.presence),
            "clients count on its being there",
            where: { $0.becomes(.presence) == "optional" && $0.isReceived }
        ),
        CompatibilityRule(
            "field-default",
            .field,
            .changed(.default),
            "to an older side its absence means what it meant",
            // A required field was never absent; whether it may now be absent is for other rules.
            where: { $0.was(.presence) != "required" }
        ),
        CompatibilityRule(
            "field-limit",
            .field,
            .changed(.limit),
            "clients of today send more",
            where: { $0.isSent && $0.narrows(.limit) }
        ),
        CompatibilityRule(
            "field-limit-bytes",
            .field,
            .changed(.limitBytes),
            "clients of today send more",
            where: { $0.isSent && $0.narrows(.limitBytes) }
        ),
        CompatibilityRule(
            "field-limit-items",
            .field,
            .changed(.limitItems),
            "clients of today send more",
            where: { $0.isSent && $0.narrows(.limitItems) }
        ),
        CompatibilityRule(
            "field-duplicates",
            .field,
            .changed(.duplicates),
            "clients of today may name a thing twice",
            where: { $0.isSent && $0.becomes(.duplicates) == "refused" }
        ),
        CompatibilityRule(
            "field-checked-by",
            .field,
            .changed(.checkedBy),
            "clients of today send values that are then refused",
            where: {
                $0.isSent && ($0.becomes(.checkedBy) == nil || $0.was(.checkedBy) == "skipped")
            }
        ),
        CompatibilityRule(
            "field-sunset",
            .field,
            .changed(.sunset),
            "clients were told that they have until then",
            where: { $0.falls(.sunset) }
        ),
        CompatibilityRule(
            "field-capability",
            .field,
            .changed(.capability),
            "clients of today get it, or go without it, by what they named so far; a new meaning is a new field"
        ),
        CompatibilityRule(
            "field-form",
            .field,
            .changed(.form),
            "clients that speak the dialect read it as it is",
            where: \.changesKnownForm
        ),
    ]

    // MARK: Opcodes

    private static let opcodes = [
        CompatibilityRule(
            "opcode-renumbered",
            .opcode,
            .removed,
            "clients send or expect the old number",
            where: \.isServedElsewhere
        ),
        CompatibilityRule(
            "opcode-removed",
            .opcode,
            .removed,
            "clients send or expect it; deprecate it first",
            where: { !$0.isServedElsewhere && !$0.isPastSunset }
        ),
        CompatibilityRule(
            "opcode-renamed",
            .opcode,
            .changed(.name),
            "its name is that of its types, its documents and its handler everywhere"
        ),
        CompatibilityRule(
            "opcode-direction",
            .opcode,
            .changed(.direction),
            "clients send it or wait for it as it was",
            // Allowing clients to send what they receive takes nothing from them.
            where: { $0.was(.direction) != "serverToClient" || $0.becomes(.direction) != "both" }
        ),
        CompatibilityRule(
            "opcode-kind",
            .opcode,
            .changed(.kind),
            "clients take the answer to a command for a promise that what they asked for is stored",
            where: { $0.was(.kind) == OpcodeEntry.Kind.command.rawValue }
        ),
        CompatibilityRule(
            "opcode-retries",
            .opcode,
            .changed(.idempotency),
            "clients repeat it after a lost reply as they were told they may",
            where: \.isLessRepeatable
        ),
        CompatibilityRule(
            "opcode-key",
            .opcode,
            .changed(.key),
            "clients count on what makes two requests one"
        ),
        CompatibilityRule(
            "opcode-capability",
            .opcode,
            .changed(.capability),
            "clients of today get it, or go without it, by what they named so far"
        ),
        CompatibilityRule(
            "opcode-sunset",
            .opcode,
            .changed(.sunset),
            "clients were told that they have until then",
            where: { $0.falls(.sunset) }
        ),
        CompatibilityRule(
            "opcode-number",
            .opcode,
            .added,
            "its number is neither one of our own nor was it known under this name and direction: it may mean something else in the wild",
            where: { !$0.hasOwnNumber }
        ),
        CompatibilityRule(
            "push-added",
            .opcode,
            .added,
            "clients of today have never seen this push; let it need a capability that is new in this release",
            where: { $0.becomes(.direction) != "clientToServer" && !$0.needsNewCapability }
        ),
        CompatibilityRule(
            "opcode-state-removed",
            .opcodeState,
            .removed,
            "clients send it then"
        ),
        CompatibilityRule(
            "effect-removed",
            .effect,
            .removed,
            "other clients are no longer told what was done"
        ),
        CompatibilityRule(
            "effect-to",
            .effect,
            .changed(.to),
            "clients count on being told, and by other words others may be; if they mean the same, a note says `reworded`",
            where: { $0.changesWords(.to) }
        ),
        CompatibilityRule(
            "effect-when",
            .effect,
            .changed(.when),
            "clients count on being told, and by other words it may be at other times; if they mean the same, a note says `reworded`",
            where: { $0.changesWords(.when) }
        ),
        CompatibilityRule(
            "known-removed",
            .known,
            .removed,
            "the number means something in the wild and would become free",
            where: { known in
                known.old?[.number].map { known.after["opcode \($0)"] == nil } ?? true
            }
        ),
        CompatibilityRule(
            "known-renamed",
            .known,
            .changed(.name),
            "what a number means in the wild does not change"
        ),
        CompatibilityRule(
            "known-direction",
            .known,
            .changed(.direction),
            "who sends a number in the wild does not change"
        ),
        CompatibilityRule(
            "range-removed",
            .range,
            .removed,
            "numbers were given out by it"
        ),
        CompatibilityRule(
            "range-from",
            .range,
            .changed(.from),
            "numbers beside it mean something in the wild, and those in it are told apart by it"
        ),
        CompatibilityRule(
            "range-through",
            .range,
            .changed(.through),
            "numbers beside it mean something in the wild, and those in it are told apart by it"
        ),
    ]

    // MARK: Roles

    private static let roles = [
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

    // MARK: Entities

    private static let entities = [
        CompatibilityRule(
            "entity-removed",
            .entity,
            .removed,
            "devices hold such entities, and changes of them that they made offline"
        ),
        CompatibilityRule(
            "entity-rules-changed",
            .entity,
            .changed(.text),
            "devices of today decide by it what a change becomes before the server hears of it"
        ),
        CompatibilityRule(
            "entity-field-removed",
            .entityField,
            .removed,
            "devices hold values of it"
        ),
        CompatibilityRule(
            "entity-field-type",
            .entityField,
            .changed(.type),
            "devices hold values of it"
        ),
    ]

    // MARK: Requirements and releases

    private static let requirements = [
        CompatibilityRule(
            "requirement-removed",
            .requirement,
            .removed,
            "what was promised by this id is promised for ever"
        ),
        CompatibilityRule(
            "requirement-level",
            .requirement,
            .changed(.level),
            "MUST to SHOULD breaks a promise, SHOULD to MUST makes a new one: say it under a new id"
        ),
        CompatibilityRule(
            "requirement-reworded",
            .requirement,
            .changed(.text),
            "other words may promise something else: give that a new id; if they mean the same, a note says `reworded`",
            where: { $0.changesWords(.text) }
        ),
        CompatibilityRule(
            "requirement-on-clients",
            .requirement,
            .added,
            "clients of today cannot keep what was never asked of them; what binds the server, say of the server",
            where: { Wording.bindsClients($0.becomes(.text) ?? "") }
        ),
    ]

    /// The rules that keep `since` correct.
    private static let releases = [
        SurfaceItem.Kind.state, .capability, .feature, .limit, .error, .enumeration, .object,
        .field, .roleBit, .entity, .entityField,
        .opcode,
    ].flatMap { kind in
        [
            CompatibilityRule(
                "since-of-added-\(kind.rawValue)",
                kind,
                .added,
                "the newest release does not have it: `since` must be the release that is being written",
                where: { added in
                    added.new?.number(.since).map { $0 != added.after.version } ?? false
                }
            ),
            CompatibilityRule(
                "since-of-\(kind.rawValue)",
                kind,
                .changed(.since),
                "a release that is out has it since then"
            ),
        ]
    }
}
