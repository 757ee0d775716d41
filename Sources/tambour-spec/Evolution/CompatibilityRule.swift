/// A kind of change that breaks existing clients, and the reason why it does.
///
/// A change that no rule rejects is allowed.
struct CompatibilityRule: Sendable {
    enum Change: Hashable, Sendable {
        case added, removed
        case changed(Promise.Fact)
    }

    /// An item before and after the change. `old` is nil if the item was added. `new` is nil if the
    /// item was removed.
    struct Case: Sendable {
        var old: Promise?
        var new: Promise?
        var before: Promises
        var after: Promises
        /// Whether a note declares that the meaning of the item is unchanged.
        var isReworded = false

        /// Whether clients of the old release send the item.
        var isSent: Bool { old?.flow.contains(.toServer) == true }
        /// Whether clients of the old release receive the item.
        var isReceived: Bool { old?.flow.contains(.toClient) == true }

        func was(_ fact: Promise.Fact) -> String? { old?[fact] }
        func becomes(_ fact: Promise.Fact) -> String? { new?[fact] }

        /// Whether a number has become smaller.
        func falls(_ fact: Promise.Fact) -> Bool {
            guard let was = old?.number(fact), let becomes = new?.number(fact) else { return false }
            return becomes < was
        }
    }

    /// A unique name, for tests and messages.
    let name: String
    let kind: Promise.Kind
    let change: Change
    let reason: String
    /// The condition of the rule. A rule without a condition rejects every change of this kind.
    let applies: @Sendable (Case) -> Bool

    init(
        _ name: String,
        _ kind: Promise.Kind,
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
        Promise.Kind.state, .capability, .feature, .limit, .error, .enumeration, .object,
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
