/// Checks the requirements and flows.
extension SpecificationCheck {
    mutating func checkRequirements() {
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

    /// The documentation texts that do not belong to one opcode: the texts of types and tables.
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

    /// Returns the documentation texts of an opcode, except the texts of its edge cases.
    private static func prose(of opcode: OpcodeEntry) -> [(String, Origin)] {
        let fields = [opcode.request, opcode.reply, opcode.push].compactMap(\.self)
            .flatMap(\.fields)
        return [(opcode.doc, opcode.origin)] + opcode.effects.map { ($0.when, opcode.origin) }
            + fields.flatMap { field in
                [field.doc, field.why].compactMap(\.self).map { ($0, field.origin) }
            }
    }

    mutating func checkFlows() {
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

    /// Checks that every key of `value` is a field of the type. The value need not contain all
    /// fields.
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
