/// Reads the families of opcodes.
extension SpecificationLoader {
    mutating func loadFamily(_ file: String, into specification: inout Specification) {
        guard let map = document(file) else { return }
        let name = map.required("family")
        var family = Specification.Family(
            name: name,
            doc: map.required("doc"),
            opcodes: [],
            known: [],
            origin: map.origin
        )
        for entry in maps(map, "opcodes") {
            family.opcodes.append(opcode(entry, family: name))
            finish(entry)
        }
        for entry in maps(map, "known") {
            family.known.append(
                .init(
                    number: entry.requiredInt("opcode"),
                    name: entry.required("name"),
                    direction: entry.choice("direction") ?? .clientToServer,
                    origin: entry.origin
                )
            )
            finish(entry)
        }
        specification.families.append(family)
        finish(map)
    }

    private mutating func opcode(_ entry: YAMLMap, family: String) -> OpcodeEntry {
        let name = entry.required("name")
        let stem = entry.string("swift") ?? Names.pascal(fromOpcode: name)
        let doc = entry.required("doc")
        let since = entry.requiredInt("since")
        func body(_ key: String, _ role: StructType.Role, suffix: String, doc: String)
            -> StructType?
        {
            guard entry.node(key) != nil else { return nil }
            return StructType(
                name: stem + suffix,
                role: role,
                doc: doc,
                since: since,
                fields: fields(entry, key),
                origin: entry.origin
            )
        }
        return OpcodeEntry(
            number: entry.requiredInt("opcode"),
            name: name,
            swiftStem: stem,
            family: family,
            direction: entry.choice("direction") ?? .clientToServer,
            since: since,
            doc: doc,
            states: entry.strings("states"),
            kind: entry.choice("kind"),
            idempotency: entry.choice("idempotency"),
            key: entry.string("key"),
            cost: cost(entry),
            capability: entry.string("capability"),
            errors: entry.strings("errors"),
            effects: maps(entry, "effects").map { effect in
                defer { finish(effect) }
                return .init(
                    push: effect.required("push"),
                    to: effect.required("to"),
                    when: effect.required("when")
                )
            },
            edges: maps(entry, "edges").map { edge in
                defer { finish(edge) }
                return Edge(
                    id: edge.required("id"),
                    level: edge.choice("level") ?? .must,
                    title: edge.required("title"),
                    given: edge.required("given"),
                    then: edge.required("then"),
                    origin: edge.origin
                )
            },
            request: body("request", .request, suffix: "Request", doc: doc),
            reply: body("reply", .reply, suffix: "Reply", doc: "The answer to \(name)."),
            push: body("push", .push, suffix: "", doc: doc),
            deprecated: deprecation(entry),
            origin: entry.origin
        )
    }
}
