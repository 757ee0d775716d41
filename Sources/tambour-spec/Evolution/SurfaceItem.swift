/// One promise of a release, in flat form for the rules.
struct SurfaceItem: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case framing, version, state, capability, feature, limit, error
        case enumeration, value, object, field
        case roleBit, roleCell
        case entity, entityField
        case opcode, opcodeState, opcodeError, effect, range, known
        case requirement
    }

    /// A property of a thing; its kind determines which of these it has.
    enum Fact: String, CaseIterable, Sendable {
        case since, written
        case number, name, direction, kind, idempotency, key, capability, form
        case type, presence, `default`, limit, limitBytes, limitItems, duplicates, checkedBy
        case change, unit, value, max
        case `class`, retry, common, message
        case open, fallback, opcodes, level, text
        case from, through, to, when
        case replacement, sunset
    }

    /// Who reads the thing.
    struct Flow: OptionSet, Sendable {
        let rawValue: Int
        /// Clients send it: what they send today must stay readable.
        static let toServer = Flow(rawValue: 1)
        /// The server sends it: today's clients must be able to read it.
        static let toClient = Flow(rawValue: 2)
        static let both: Flow = [.toServer, .toClient]
    }

    var kind: Kind
    /// Identifies the thing across all releases.
    var id: String
    /// The name for people.
    var title: String
    /// The id of the thing it belongs to; when that was added or removed, its parts are not
    /// compared.
    var owner: String?
    var facts: [Fact: String]
    var flow = Flow.both
    var doc: String
    /// The file that declares it, relative to `protocol-spec/`.
    var file: String

    subscript(fact: Fact) -> String? { facts[fact] }
    func number(_ fact: Fact) -> Int? { facts[fact].flatMap { Int($0) } }
}

/// A surface as a list of things that can be found by id.
struct SurfaceIndex: Sendable {
    let version: Int
    let ranges: [Surface.Range]
    private(set) var items: [SurfaceItem] = []
    private var positions: [String: Int] = [:]
    private let flows: [String: SurfaceItem.Flow]

    init(_ surface: Surface) {
        version = surface.version
        ranges = surface.idRanges
        flows = Self.flows(of: surface)
        addFraming(surface)
        for limit in surface.limits {
            add(
                .limit,
                "limit \(limit.name)",
                [
                    .value: "\(limit.value)", .max: limit.max.map { "\($0)" },
                    .change: limit.change, .unit: limit.unit, .since: "\(limit.since)",
                ],
                doc: limit.reason,
                file: "limits.yaml"
            )
        }
        for error in surface.errors {
            add(
                .error,
                "error \(error.code)",
                [
                    .class: error.class, .retry: error.retry, .common: "\(error.common)",
                    .message: error.message, .since: "\(error.since)",
                ],
                doc: error.when,
                file: "errors.yaml"
            )
        }
        for type in surface.enums { add(type) }
        for type in surface.structs {
            let id = add(
                .object,
                type.name,
                [.since: "\(type.since)"],
                doc: type.doc,
                file: "types.yaml"
            )
            add(
                type.fields,
                of: id,
                titled: type.name,
                flow: flows[type.name] ?? .both,
                file: "types.yaml"
            )
        }
        add(surface.roles)
        for entity in surface.entities ?? [] { add(entity) }
        for family in surface.families { add(family) }
        let files = Dictionary(
            surface.families.flatMap { family in
                family.opcodes.map { ($0.name, "opcodes/\(family.name).yaml") }
            }
        ) { first, _ in first }
        for requirement in surface.requirements {
            add(
                .requirement,
                requirement.id,
                [.level: requirement.level, .text: requirement.text],
                title: "requirement \(requirement.id)",
                doc: requirement.text,
                file: requirement.chapter.map { "prose/\($0).md" }
                    ?? requirement.opcode.flatMap { files[$0] } ?? "prose"
            )
        }
    }

    subscript(id: String) -> SurfaceItem? { positions[id].map { items[$0] } }

    // MARK: Adding

    @discardableResult
    private mutating func add(
        _ kind: SurfaceItem.Kind,
        _ id: String,
        _ facts: [SurfaceItem.Fact: String?],
        title: String? = nil,
        owner: String? = nil,
        flow: SurfaceItem.Flow = .both,
        doc: String,
        file: String
    ) -> String {
        positions[id] = items.count
        items.append(
            SurfaceItem(
                kind: kind,
                id: id,
                title: title ?? id,
                owner: owner,
                facts: facts.compactMapValues(\.self),
                flow: flow,
                doc: doc,
                file: file
            )
        )
        return id
    }

    private mutating func addFraming(_ surface: Surface) {
        let file = "protocol.yaml"
        let written = "\(surface.framing.written)"
        add(.framing, "header version of answers", [.written: written], doc: "", file: file)
        for version in surface.framing.accepted {
            add(.version, "header version \(version)", [:], doc: "", file: file)
        }
        for range in surface.idRanges {
            add(
                .range,
                "range \(range.name)",
                [.from: "\(range.from)", .through: "\(range.through)"],
                doc: "",
                file: file
            )
        }
        for (kind, entries) in [
            (SurfaceItem.Kind.state, surface.states),
            (.capability, surface.capabilities + (surface.dialects ?? [])),
            (.feature, surface.features),
        ] {
            for entry in entries {
                add(
                    kind,
                    "\(kind.rawValue) \(entry.name)",
                    [
                        .since: "\(entry.since)",
                        .opcodes: entry.opcodes.map { $0.joined(separator: " ") },
                    ],
                    doc: entry.doc,
                    file: file
                )
            }
        }
    }

    private mutating func add(_ type: Surface.Enumeration) {
        let flow = flows[type.name] ?? .both
        add(
            .enumeration,
            type.name,
            [.open: "\(type.open)", .since: "\(type.since)"],
            flow: flow,
            doc: type.doc,
            file: "types.yaml"
        )
        for value in type.values {
            add(
                .value,
                "\(type.name).\(value.value)",
                [.capability: value.capability, .fallback: value.fallback],
                owner: type.name,
                flow: flow,
                doc: value.doc,
                file: "types.yaml"
            )
        }
    }

    private mutating func add(
        _ fields: [Surface.Field],
        of owner: String,
        as role: String = "field",
        titled title: String,
        flow: SurfaceItem.Flow,
        file: String
    ) {
        for field in fields {
            let presence =
                field.required == true
                ? "required" : field.default == nil ? "optional" : "default"
            add(
                .field,
                "\(owner) \(role) \(field.key)",
                [
                    .type: field.type, .presence: presence, .default: field.default?.text,
                    .limit: field.limit, .limitBytes: field.limitBytes,
                    .limitItems: field.limitItems?.names.joined(separator: " "),
                    .duplicates: field.duplicates, .checkedBy: field.checkedBy,
                    .capability: field.capability ?? field.dialect,
                    .form: field.inDialect?.sorted { $0.key < $1.key }
                        .map { "\($0.key) \($0.value)" }.joined(separator: "; "),
                    .replacement: field.deprecated?.replacement,
                    .sunset: field.deprecated.map { "\($0.sunset)" }, .since: "\(field.since)",
                ],
                title: "\(title).\(field.key)",
                owner: owner,
                flow: flow,
                doc: field.doc,
                file: file
            )
        }
    }

    private mutating func add(_ roles: Surface.Roles) {
        let file = "roles.yaml"
        for (what, bits) in [("permission", roles.permissions), ("option", roles.options)] {
            for bit in bits {
                add(
                    .roleBit,
                    "\(what) \(bit.name)",
                    [.number: "\(bit.bit)", .since: "\(bit.since)"],
                    doc: bit.doc,
                    file: file
                )
            }
        }
        for action in roles.actions {
            for (kind, row) in action.cells.sorted(by: { $0.key < $1.key }) {
                for (role, cell) in row.sorted(by: { $0.key < $1.key }) {
                    add(
                        .roleCell,
                        "\(action.name) by \(role) in \(kind)",
                        [.text: cell],
                        doc: action.doc,
                        file: file
                    )
                }
            }
        }
    }

    private mutating func add(_ entity: Surface.Entity) {
        let file = "entities.yaml"
        let id = add(
            .entity,
            "entity \(entity.name)",
            [.text: entity.rules, .since: "\(entity.since)"],
            doc: entity.doc,
            file: file
        )
        for field in entity.fields {
            add(
                .entityField,
                "\(id) field \(field.name)",
                [.type: field.type, .since: "\(field.since)"],
                title: "entity \(entity.name).\(field.name)",
                owner: id,
                doc: field.doc,
                file: file
            )
        }
    }

    private mutating func add(_ family: Surface.Family) {
        let file = "opcodes/\(family.name).yaml"
        for opcode in family.opcodes {
            // Opcodes are identified by number, because the number is what travels.
            let id = add(
                .opcode,
                "opcode \(opcode.opcode)",
                [
                    .number: "\(opcode.opcode)", .name: opcode.name,
                    .direction: opcode.direction.rawValue, .kind: opcode.kind,
                    .idempotency: opcode.idempotency, .key: opcode.key,
                    .capability: opcode.capability, .replacement: opcode.deprecated?.replacement,
                    .sunset: opcode.deprecated.map { "\($0.sunset)" },
                    .since: "\(opcode.since)",
                ],
                title: opcode.name,
                doc: opcode.doc,
                file: file
            )
            for state in opcode.states {
                add(
                    .opcodeState,
                    "\(id) state \(state)",
                    [:],
                    title: "\(opcode.name) in the state \(state)",
                    owner: id,
                    doc: "",
                    file: file
                )
            }
            for code in opcode.errors {
                add(
                    .opcodeError,
                    "\(id) error \(code)",
                    [:],
                    title: "\(opcode.name): error \(code)",
                    owner: id,
                    doc: "",
                    file: file
                )
            }
            for effect in opcode.effects {
                add(
                    .effect,
                    "\(id) effect \(effect.push)",
                    [.to: effect.to, .when: effect.when],
                    title: "\(opcode.name): push \(effect.push)",
                    owner: id,
                    doc: "To \(effect.to), when \(effect.when).",
                    file: file
                )
            }
            for (role, fields, flow) in [
                ("request", opcode.request, SurfaceItem.Flow.toServer),
                ("reply", opcode.reply, .toClient), ("push", opcode.push, .toClient),
            ] {
                add(
                    fields ?? [],
                    of: id,
                    as: role,
                    titled: "\(opcode.name) \(role)",
                    flow: flow,
                    file: file
                )
            }
        }
        for known in family.known {
            add(
                .known,
                "known opcode \(known.opcode)",
                [
                    .number: "\(known.opcode)", .name: known.name,
                    .direction: known.direction.rawValue,
                ],
                title: "known opcode \(known.opcode) \(known.name)",
                doc: "",
                file: file
            )
        }
    }

    // MARK: Who reads what

    /// Returns the directions in which each struct and enum travels.
    private static func flows(of surface: Surface) -> [String: SurfaceItem.Flow] {
        let types = Dictionary(surface.structs.map { ($0.name, $0.fields) }) { first, _ in first }
        let opcodes = surface.families.flatMap(\.opcodes)
        // Every opcode may be answered with an error.
        var flows: [String: SurfaceItem.Flow] = ["ErrorReply": .toClient]
        for (fields, flow) in [
            (opcodes.flatMap { $0.request ?? [] }, SurfaceItem.Flow.toServer),
            (
                opcodes.flatMap { ($0.reply ?? []) + ($0.push ?? []) }
                    + (types["ErrorReply"] ?? []),
                .toClient
            ),
        ] {
            var open = fields
            var seen: Set<String> = []
            while let field = open.popLast() {
                for name in WireType(field.type)?.mentioned ?? [] where seen.insert(name).inserted {
                    flows[name, default: []].insert(flow)
                    open += types[name] ?? []
                }
            }
        }
        return flows
    }
}
