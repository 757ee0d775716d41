/// The promises of a specification, in order and by id.
///
/// Examples, flows, rate limits and costs are not promises. Requirements and edge cases are
/// promises.
struct Promises: Sendable {
    let version: Int
    let ranges: [Specification.IDRange]
    private(set) var items: [Promise] = []
    private var positions: [String: Int] = [:]
    private let flows: [String: Promise.Flow]

    init(of specification: Specification) {
        version = specification.version
        ranges = specification.idRanges
        flows = Self.flows(of: specification)
        addHandshake(specification)
        for limit in specification.limits {
            add(
                .limit,
                "limit \(limit.name)",
                [
                    .value: "\(limit.value)", .max: limit.max.map { "\($0)" },
                    .change: limit.change.rawValue, .unit: limit.unit, .since: "\(limit.since)",
                ],
                doc: limit.reason,
                limit.origin
            )
        }
        for error in specification.errors {
            add(
                .error,
                "error \(error.code)",
                [
                    .class: error.errorClass.rawValue, .retry: error.retry.rawValue,
                    .common: "\(error.isCommon)", .message: error.message,
                    .since: "\(error.since)",
                ],
                doc: error.when,
                error.origin
            )
        }
        for type in specification.enums { add(type) }
        for type in specification.structs {
            let facts: [Promise.Fact: String?] = [.since: "\(type.since)"]
            let id = add(.object, type.name, facts, doc: type.doc, type.origin)
            add(type.fields, of: id, titled: type.name, flow: flows[type.name] ?? .both)
        }
        add(specification.roles)
        for entity in specification.entities { add(entity) }
        for family in specification.families { add(family) }
        for requirement in specification.requirements {
            add(
                .requirement,
                requirement.id,
                [.level: requirement.level.rawValue, .text: requirement.text],
                title: "requirement \(requirement.id)",
                doc: requirement.text,
                requirement.origin
            )
        }
    }

    subscript(id: String) -> Promise? { positions[id].map { items[$0] } }

    /// Returns the place of a promise in this specification. If the specification does not contain
    /// the promise, returns the place of the promise's owner. If there is no owner either, returns
    /// the file.
    func origin(of item: Promise) -> Origin {
        let found = self[item.id] ?? item.owner.flatMap { self[$0] }
        return found?.origin ?? Origin(file: item.origin.file, line: 0)
    }

    // MARK: Adding

    @discardableResult
    private mutating func add(
        _ kind: Promise.Kind,
        _ id: String,
        _ facts: [Promise.Fact: String?],
        title: String? = nil,
        owner: String? = nil,
        flow: Promise.Flow = .both,
        doc: String,
        _ origin: Origin
    ) -> String {
        positions[id] = items.count
        items.append(
            Promise(
                kind: kind,
                id: id,
                title: title ?? id,
                owner: owner,
                facts: facts.compactMapValues(\.self),
                flow: flow,
                doc: doc,
                origin: origin
            )
        )
        return id
    }

    private mutating func addHandshake(_ specification: Specification) {
        let file = Origin(file: "protocol.yaml", line: 0)
        let written = "\(specification.writtenVersion)"
        add(.framing, "header version of answers", [.written: written], doc: "", file)
        for version in specification.acceptedVersions {
            add(.version, "header version \(version)", [:], doc: "", file)
        }
        for range in specification.idRanges {
            add(
                .range,
                "range \(range.name)",
                [.from: "\(range.from)", .through: "\(range.through)"],
                doc: "",
                file
            )
        }
        for state in specification.states { add(.state, state) }
        for gate in specification.gates { add(.capability, gate) }
        for feature in specification.features {
            add(
                .feature,
                feature.documented,
                [.opcodes: feature.opcodes.joined(separator: " ")]
            )
        }
    }

    private mutating func add(
        _ kind: Promise.Kind,
        _ entry: Specification.Documented,
        named id: String? = nil,
        _ facts: [Promise.Fact: String?] = [:]
    ) {
        add(
            kind,
            id ?? "\(kind.rawValue) \(entry.name)",
            facts.merging([.since: "\(entry.since)"]) { $1 },
            doc: entry.doc,
            entry.origin
        )
    }

    private mutating func add(_ type: EnumType) {
        let flow = flows[type.name] ?? .both
        add(
            .enumeration,
            type.name,
            [.open: "\(type.isOpen)", .since: "\(type.since)"],
            flow: flow,
            doc: type.doc,
            type.origin
        )
        for value in type.values {
            add(
                .value,
                "\(type.name).\(value.value)",
                [.capability: value.capability, .fallback: value.fallback],
                owner: type.name,
                flow: flow,
                doc: value.doc,
                type.origin
            )
        }
    }

    private mutating func add(
        _ fields: [Field],
        of owner: String,
        as role: String = "field",
        titled title: String,
        flow: Promise.Flow
    ) {
        for field in fields {
            let presence =
                field.isRequired
                ? "required" : field.defaultValue == nil ? "optional" : "default"
            let forms = field.forms.sorted { $0.dialect < $1.dialect }
                .map { "\($0.dialect) \($0.text)" }
            add(
                .field,
                "\(owner) \(role) \(field.key)",
                [
                    .type: field.type.yaml, .presence: presence,
                    .default: field.defaultValue?.text,
                    .limit: field.limitUnits, .limitBytes: field.limitBytes,
                    .limitItems: joined(field.limitItems, " "),
                    .duplicates: field.duplicates?.rawValue,
                    .checkedBy: field.anyCheck == .reader ? nil : field.anyCheck.rawValue,
                    .capability: field.capability, .form: joined(forms, "; "),
                    .replacement: field.deprecated?.replacement,
                    .sunset: field.deprecated.map { "\($0.sunset)" }, .since: "\(field.since)",
                ],
                title: "\(title).\(field.key)",
                owner: owner,
                flow: flow,
                doc: field.doc,
                field.origin
            )
        }
    }

    /// Joins the words; returns nil for an empty list, because an empty list promises nothing.
    private func joined(_ words: [String], _ separator: String) -> String? {
        words.isEmpty ? nil : words.joined(separator: separator)
    }

    private mutating func add(_ roles: RoleSpecification) {
        for (what, bits) in [("permission", roles.permissions), ("option", roles.options)] {
            for bit in bits {
                add(
                    .roleBit,
                    bit.documented,
                    named: "\(what) \(bit.name)",
                    [.number: "\(bit.bit)"]
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
                        doc: action.documented.doc,
                        action.documented.origin
                    )
                }
            }
        }
    }

    private mutating func add(_ entity: EntitySpecification) {
        add(.entity, entity.documented, [.text: entity.rules])
        let id = "entity \(entity.name)"
        for field in entity.fields {
            let entry = field.documented
            add(
                .entityField,
                "\(id) field \(entry.name)",
                [.type: field.type.yaml, .since: "\(entry.since)"],
                title: "entity \(entity.name).\(entry.name)",
                owner: id,
                doc: entry.doc,
                entry.origin
            )
        }
    }

    private mutating func add(_ family: Specification.Family) {
        for opcode in family.opcodes {
            add(opcode)
        }
        for known in family.known {
            add(
                .known,
                "known opcode \(known.number)",
                [
                    .number: "\(known.number)", .name: known.name,
                    .direction: known.direction.rawValue,
                ],
                title: "known opcode \(known.number) \(known.name)",
                doc: "",
                known.origin
            )
        }
    }

    private mutating func add(_ opcode: OpcodeEntry) {
        // Opcodes are identified by their numbers, because packets contain the numbers.
        let id = add(
            .opcode,
            "opcode \(opcode.number)",
            [
                .number: "\(opcode.number)", .name: opcode.name,
                .direction: opcode.direction.rawValue, .kind: opcode.kind?.rawValue,
                .idempotency: opcode.idempotency?.rawValue, .key: opcode.key,
                .capability: opcode.capability, .replacement: opcode.deprecated?.replacement,
                .sunset: opcode.deprecated.map { "\($0.sunset)" },
                .since: "\(opcode.since)",
            ],
            title: opcode.name,
            doc: opcode.doc,
            opcode.origin
        )
        for state in opcode.states {
            add(
                .opcodeState,
                "\(id) state \(state)",
                [:],
                title: "\(opcode.name) in the state \(state)",
                owner: id,
                doc: "",
                opcode.origin
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
                opcode.origin
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
                opcode.origin
            )
        }
        for (role, type, flow) in [
            ("request", opcode.request, Promise.Flow.toServer),
            ("reply", opcode.reply, .toClient), ("push", opcode.push, .toClient),
        ] {
            let fields = type?.fields ?? []
            add(fields, of: id, as: role, titled: "\(opcode.name) \(role)", flow: flow)
        }
    }

    // MARK: Who reads what

    /// Returns the directions in which each struct and enum travels.
    private static func flows(of specification: Specification) -> [String: Promise.Flow] {
        let types = Dictionary(specification.structs.map { ($0.name, $0.fields) }) { $1 }
        let opcodes = specification.families.flatMap(\.opcodes)
        // The server may answer every opcode with an error.
        var flows: [String: Promise.Flow] = ["ErrorReply": .toClient]
        for (fields, flow) in [
            (opcodes.flatMap { $0.request?.fields ?? [] }, Promise.Flow.toServer),
            (
                opcodes.flatMap { ($0.reply?.fields ?? []) + ($0.push?.fields ?? []) }
                    + (types["ErrorReply"] ?? []),
                .toClient
            ),
        ] {
            var open = fields
            var seen: Set<String> = []
            while let field = open.popLast() {
                for name in field.type.mentioned where seen.insert(name).inserted {
                    flows[name, default: []].insert(flow)
                    open += types[name] ?? []
                }
            }
        }
        return flows
    }
}

extension DefaultValue {
    /// The value as release notes and messages show it.
    fileprivate var text: String {
        switch self {
        case .bool(let bool): "\(bool)"
        case .int(let int): "\(int)"
        case .string(let string): "\"\(string)\""
        case .emptyList: "[]"
        case .emptyMap: "{}"
        }
    }
}
