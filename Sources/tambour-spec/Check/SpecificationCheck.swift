/// The rules that the YAML must keep besides being well-formed.
///
/// Each function contains the rules of one subject.
struct SpecificationCheck {
    let specification: Specification
    private(set) var problems: [Problem] = []

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
        // Fields refer to both by the same key.
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
                // Other requests are checked before LOGIN decides which features are on.
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

    // MARK: Types

    /// The variable names used by generated readers and writers.
    private static let taken: Set<String> = [
        "reader", "writer", "fieldCount", "fieldsSeen", "fieldName", "wireKey", "item", "self",
    ]

    private mutating func checkTypes() {
        let payloads = specification.families.flatMap(\.opcodes).flatMap {
            [$0.request, $0.reply, $0.push].compactMap { $0 }
        }
        unique(
            specification.enums.map { ($0.name, $0.origin) }
                + (specification.structs + payloads).map { ($0.name, $0.origin) },
            "type"
        )
        for type in specification.enums {
            documented(type.doc, since: type.since, type.name, type.origin)
            unique(type.values.map { ($0.value, type.origin) }, "\(type.name): value")
            unique(type.values.map { ($0.swiftName, type.origin) }, "\(type.name): name")
            for value in type.values {
                documented(value.doc, since: type.since, "\(type.name).\(value.value)", type.origin)
                check(value, of: type)
            }
        }
        for type in specification.structs + payloads {
            documented(type.doc, since: type.since, type.name, type.origin)
            check(type)
        }
        problems += FieldLimitCheck(specification).problems()
        problems += BoundsCheck.problems(of: specification)
        checkRecursion()
    }

    private mutating func check(_ value: EnumType.Value, of type: EnumType) {
        let place = "\(type.name).\(value.value)"
        guard let capability = value.capability else {
            if value.fallback != nil {
                complain(type.origin, "\(place): a fallback goes with a capability")
            }
            return
        }
        check(capability: capability, place, type.origin)
        // A closed enumeration is only sent by clients, so there is nobody to hide a value from.
        if !type.isOpen {
            complain(type.origin, "\(place): a closed enumeration has no capabilities")
        }
        guard let name = value.fallback else { return }
        guard let fallback = type.values.first(where: { $0.value == name }) else {
            return complain(type.origin, "\(place): unknown fallback \(name)")
        }
        if fallback.capability != nil {
            complain(type.origin, "\(place): the fallback \(name) needs a capability itself")
        }
    }

    private mutating func checkCopy(_ copy: Field, of type: StructType, _ place: String) {
        var fields = type.properties
        for (depth, key) in copy.copyOf.enumerated() {
            guard let field = fields.first(where: { $0.key == key }) else {
                return complain(copy.origin, "\(place): a copy of \(key), which is not there")
            }
            if depth == copy.copyOf.count - 1 {
                if field.type != copy.type {
                    complain(copy.origin, "\(place): of another type than what it copies")
                }
            } else if case .named(let name) = field.type {
                fields = specification.structType(named: name)?.properties ?? []
            }
        }
        if copy.capability == nil || !copy.isOptional {
            complain(copy.origin, "\(place): a copy is for one dialect or capability")
        }
        if type.role == .request { complain(copy.origin, "\(place): nobody reads a copy") }
    }

    private mutating func checkForms(of field: Field, in type: StructType, _ place: String) {
        let origin = field.origin
        unique(field.forms.map { ($0.dialect, origin) }, "\(place): the form in")
        if !field.forms.isEmpty, type.role == .request {
            complain(origin, "\(place): the server sends no requests to write otherwise")
        }
        let most = [field.limitBytes, field.limitUnits].compactMap(\.self)
            .compactMap { specification.limit(named: $0)?.value }.min()
        for form in field.forms {
            if !specification.isDialect(form.dialect) {
                complain(origin, "\(place): unknown dialect \(form.dialect)")
            }
            let fits =
                switch form.change {
                case .absent: true
                case .words: field.type == .string || field.type == .list(.string)
                case .prefix: field.type == .text
                case .leavesOut(let key, _): isNumber(key, ofItemsIn: field.type)
                }
            if !fits {
                complain(origin, "\(place): \(form.text) does not fit the type in \(form.dialect)")
            }
            switch form.change {
            case .words(let words):
                for (word, said) in words where said.utf8.count > most ?? .max {
                    complain(origin, "\(place): \(said) for \(word) is over the limit")
                }
            case .absent where field.isRequired:
                let names = specification.dialects(in: form.dialect).map(\.name)
                let isCopied = type.fields.contains { copy in
                    copy.copyOf.first == field.key && names.contains { $0 == copy.capability }
                }
                if !isCopied {
                    complain(
                        origin,
                        "\(place): is required, and nothing stands for it in \(form.dialect)"
                    )
                }
            default: break
            }
        }
    }

    private func isNumber(_ key: String, ofItemsIn type: WireType) -> Bool {
        guard case .list(.named(let name)) = type,
            let field = specification.structType(named: name)?.properties.first(where: {
                $0.key == key
            }), !field.isOptional
        else { return false }
        return [.int, .chatID, .userID, .messageID].contains(field.type)
    }

    private mutating func check(capability: String, _ place: String, _ origin: Origin) {
        if !specification.gates.contains(where: { $0.name == capability }) {
            complain(origin, "\(place): unknown capability \(capability)")
        }
    }

    private mutating func check(_ type: StructType) {
        if type.fields.count > 64 { complain(type.origin, "\(type.name): more than 64 fields") }
        unique(
            type.fields.flatMap { field in ([field.key] + field.aliases).map { ($0, field.origin) }
            },
            "\(type.name): key"
        )
        unique(type.properties.map { ($0.swiftName, $0.origin) }, "\(type.name): property")
        for field in type.fields {
            let place = "\(type.name).\(field.key)"
            documented(field.doc, since: field.since, place, field.origin)
            if field.since < type.since { complain(field.origin, "\(place): older than its type") }
            if field.isRequired, field.since > type.since {
                complain(field.origin, "\(place): a later field cannot be required")
            }
            if field.key.utf8.count > 31 {
                complain(field.origin, "\(place): a key has at most 31 bytes")
            }
            if Self.taken.contains(field.swiftName) {
                complain(
                    field.origin,
                    "\(place): the property name is taken; give another one by swift:"
                )
            }
            for name in field.type.mentioned
            where specification.structType(named: name) == nil
                && specification.enumType(named: name) == nil
            {
                complain(field.origin, "\(place): unknown type \(name)")
            }
            for limit in field.limitNames
            where specification.limit(named: limit) == nil {
                complain(field.origin, "\(place): unknown limit \(limit)")
            }
            if field.isCopy { checkCopy(field, of: type, place) }
            checkForms(of: field, in: type, place)
            if let capability = field.capability {
                check(capability: capability, place, field.origin)
                if !field.isOptional {
                    complain(
                        field.origin,
                        "\(place): only an optional field can need a capability"
                    )
                }
                if type.role == .request {
                    complain(field.origin, "\(place): the server sends no requests to keep it from")
                }
            }
            if type.role != .object, field.isRequired,
                Projection(specification: specification).mayBeLeftOut(field.type)
            {
                complain(field.origin, "\(place): may have to be left out and is required")
            }
            checkDefault(field, place)
            check(field.deprecated, place, field.origin) { replacement in
                type.fields.contains { $0.key == replacement && $0.key != field.key }
            }
            let secrets = ["token", "phone", "verifyCode", "password"]
            // An object declares for each of its own fields whether it is a secret.
            let isObject = specification.structs.contains { .named($0.name) == field.type }
            if secrets.contains(field.key), !field.isSensitive, !isObject {
                complain(field.origin, "\(place): must be sensitive")
            }
        }
    }

    private mutating func check(
        _ deprecation: Deprecation?,
        _ place: String,
        _ origin: Origin,
        exists: (String) -> Bool
    ) {
        guard let deprecation else { return }
        if !exists(deprecation.replacement) {
            complain(origin, "\(place): there is no \(deprecation.replacement) to replace it")
        }
        if deprecation.since < 1 || deprecation.since > specification.version
            || deprecation.sunset <= deprecation.since
        {
            complain(
                origin,
                "\(place): is deprecated in a release, and served for one more at least"
            )
        }
    }

    private mutating func checkDefault(_ field: Field, _ place: String) {
        guard let value = field.defaultValue else { return }
        if field.isRequired { complain(field.origin, "\(place): required and with a default") }
        let fits =
            switch (value, field.type) {
            case (.bool, .bool), (.int, .int), (.int, .ms), (.string, .text), (.string, .string):
                true
            case (.emptyList, .list), (.emptyList, .packed(.list)): true
            case (.emptyMap, .map), (.emptyMap, .names): true
            default: false
            }
        if !fits { complain(field.origin, "\(place): the default does not fit the type") }
    }

    /// Checks that a struct contains itself only packed or in a list.
    private mutating func checkRecursion() {
        func direct(_ type: StructType) -> [String] {
            type.fields.compactMap { field in
                if case .named(let name) = field.type { name } else { nil }
            }
        }
        for type in specification.structs {
            var open = direct(type)
            var seen: Set<String> = []
            while let name = open.popLast() {
                if name == type.name {
                    complain(
                        type.origin,
                        "\(type.name): holds itself; it must be packed or in a list"
                    )
                    break
                }
                if seen.insert(name).inserted {
                    open += specification.structType(named: name).map(direct) ?? []
                }
            }
        }
    }

    // MARK: Opcodes

    private mutating func checkOpcodes() {
        let served = specification.families.flatMap(\.opcodes)
        let known = specification.families.flatMap(\.known)
        unique(
            served.map { ("\($0.number)", $0.origin) } + known.map { ("\($0.number)", $0.origin) },
            "opcode"
        )
        unique(
            served.map { ($0.name, $0.origin) } + known.map { ($0.name, $0.origin) },
            "opcode name"
        )
        for (number, origin) in served.map({ ($0.number, $0.origin) })
            + known.map({ ($0.number, $0.origin) })
        where !specification.idRanges.contains(where: { $0.from <= number && number <= $0.through })
        {
            complain(origin, "opcode \(number) is outside every range")
        }
        unique(
            specification.idRanges.map { ($0.name, Origin(file: "protocol.yaml", line: 0)) },
            "range"
        )
        for opcode in served { check(opcode) }
    }

    private mutating func check(_ opcode: OpcodeEntry) {
        let origin = opcode.origin
        documented(opcode.doc, since: opcode.since, opcode.name, origin)
        let fromClient = opcode.direction != .serverToClient
        if (opcode.request != nil) != fromClient || (opcode.reply != nil) != fromClient {
            complain(
                origin,
                "\(opcode.name): a request has a request and a reply, a push has neither"
            )
        }
        if (opcode.push != nil) != (opcode.direction != .clientToServer) {
            complain(origin, "\(opcode.name): a push, and only a push, has \"push\"")
        }
        if fromClient != (opcode.kind != nil && opcode.idempotency != nil && !opcode.states.isEmpty)
        {
            complain(
                origin,
                "\(opcode.name): a request, and only a request, has kind, idempotency and states"
            )
        }
        if (opcode.idempotency == .keyed) != (opcode.key != nil) {
            complain(origin, "\(opcode.name): keyed goes with \"key\"")
        }
        if let capability = opcode.capability {
            check(capability: capability, opcode.name, origin)
            if opcode.push == nil {
                complain(origin, "\(opcode.name): only a push can need a capability")
            }
        }
        for state in opcode.states where !specification.states.contains(where: { $0.name == state })
        {
            complain(origin, "\(opcode.name): unknown state \(state)")
        }
        unique(opcode.errors.map { ($0, origin) }, "\(opcode.name): error")
        for code in opcode.errors where !specification.errors.contains(where: { $0.code == code }) {
            complain(origin, "\(opcode.name): unknown error \(code)")
        }
        let names = Set(specification.families.flatMap(\.opcodes).map(\.name))
        check(opcode.deprecated, opcode.name, origin) { $0 != opcode.name && names.contains($0) }
        unique(opcode.effects.map { ($0.push, origin) }, "\(opcode.name): effect")
        for effect in opcode.effects where specification.opcode(named: effect.push)?.push == nil {
            complain(origin, "\(opcode.name): unknown push \(effect.push)")
        }
    }

    // MARK: Requirements and flows

    private mutating func checkRequirements() {
        unique(specification.requirements.map { ($0.id, $0.origin) }, "requirement")
        for requirement in specification.requirements {
            if ChapterParser.norms(in: requirement.text) > 1 {
                complain(
                    requirement.origin,
                    "\(requirement.id): says MUST or SHOULD more than once"
                )
            }
            if !Requirement.isID(requirement.id) {
                complain(requirement.origin, "\(requirement.id): an id looks like FRM-04")
            }
            if requirement.text.last != ".", requirement.text.last != "`" {
                complain(
                    requirement.origin,
                    "\(requirement.id): the text must end with a full stop"
                )
            }
        }
        for chapter in specification.chapters { problems += chapter.unnumbered }
        let opcodes = specification.families.flatMap(\.opcodes)
        for opcode in opcodes {
            for edge in opcode.edges {
                if let level = ChapterParser.level(of: edge.then), level != edge.level {
                    complain(edge.origin, "\(edge.id): the text says \(level.rawValue)")
                }
            }
        }
        for (text, origin) in opcodes.flatMap(Self.prose(of:))
        where ChapterParser.level(of: text) != nil {
            complain(origin, "a normative sentence belongs into an edge, with an id: \(text)")
        }
        for (text, origin) in sharedProse where ChapterParser.level(of: text) != nil {
            complain(origin, "a normative sentence belongs into a chapter, with an id: \(text)")
        }
    }

    /// The documentation of things that opcodes share.
    private var sharedProse: [(String, Origin)] {
        var prose: [(String, Origin)] = []
        for type in specification.structs {
            prose.append((type.doc, type.origin))
            for field in type.fields {
                prose.append((field.doc, field.origin))
                if let why = field.why { prose.append((why, field.origin)) }
            }
        }
        for type in specification.enums {
            prose.append((type.doc, type.origin))
            prose += type.values.map { ($0.doc, type.origin) }
        }
        prose += specification.errors.map { ($0.when, $0.origin) }
        prose += specification.limits.map { ($0.reason, $0.origin) }
        prose += specification.features.map { ($0.documented.doc, $0.documented.origin) }
        prose += specification.gates.map { ($0.doc, $0.origin) }
        return prose
    }

    /// Returns the documentation of an opcode without its edge cases.
    private static func prose(of opcode: OpcodeEntry) -> [(String, Origin)] {
        let fields = [opcode.request, opcode.reply, opcode.push].compactMap(\.self)
            .flatMap(\.fields)
        return [(opcode.doc, opcode.origin)] + opcode.effects.map { ($0.when, opcode.origin) }
            + fields.flatMap { field in
                [field.doc, field.why].compactMap(\.self).map { ($0, field.origin) }
            }
    }

    private mutating func checkFlows() {
        unique(specification.flows.map { ($0.name, $0.origin) }, "flow")
        for flow in specification.flows {
            if flow.doc.last != "." { complain(flow.origin, "the text must end with a full stop") }
            var connected: Set<String> = []
            for step in flow.steps {
                switch step.action {
                case .note: break
                case .connect(let device), .login(let device): connected.insert(device)
                case .disconnect(let device):
                    if connected.remove(device) == nil {
                        complain(step.origin, "\(device) is not connected")
                    }
                case .silence(let device): check(device, connected, step.origin)
                case .push(let name, let device, let value, _):
                    check(device, connected, step.origin)
                    guard let type = specification.opcode(named: name)?.push else {
                        complain(step.origin, "unknown push \(name)")
                        continue
                    }
                    check(value, has: type, step.origin)
                case .request(let name, let device, let value, let answer, _):
                    check(device, connected, step.origin)
                    guard let opcode = specification.opcode(named: name),
                        let request = opcode.request, let reply = opcode.reply
                    else {
                        complain(step.origin, "unknown request \(name)")
                        continue
                    }
                    check(value, has: request, step.origin)
                    switch answer {
                    case .reply(let value): check(value, has: reply, step.origin)
                    case .error(let code):
                        let isCommon = specification.errors.contains {
                            $0.code == code && $0.isCommon
                        }
                        if !isCommon, !opcode.errors.contains(code) {
                            complain(step.origin, "\(name) does not answer \(code)")
                        }
                    }
                }
            }
        }
    }

    private mutating func check(_ device: String, _ connected: Set<String>, _ origin: Origin) {
        if !connected.contains(device) { complain(origin, "\(device) is not connected") }
    }

    /// Checks that every key of a partial value exists in the type.
    private mutating func check(_ value: WireNode, has type: StructType, _ origin: Origin) {
        guard case .map(let pairs) = value else {
            complain(origin, "expected a map")
            return
        }
        for case .string(let key) in pairs.map(\.key)
        where !type.fields.contains(where: { $0.key == key }) {
            complain(origin, "\(type.name) has no \(key)")
        }
    }
}
