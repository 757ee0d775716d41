extension Specification {
    /// Returns, for each type of `types.yaml`, the family whose generated file contains the type.
    ///
    /// This is the family whose payloads name the type most often. If only other types name the
    /// type, it gets the family of the first of them. A type that nothing names has no family.
    func typeFamilies() -> [String: String] {
        var most: [String: (family: String, uses: Int)] = [:]
        for family in families {
            var uses: [String: Int] = [:]
            for opcode in family.opcodes {
                for payload in [opcode.request, opcode.reply, opcode.push].compactMap(\.self) {
                    for name in payload.properties.flatMap(\.type.mentioned) {
                        uses[name, default: 0] += 1
                    }
                }
            }
            for (name, count) in uses where count > most[name]?.uses ?? 0 {
                most[name] = (family.name, count)
            }
        }
        var result = most.mapValues(\.family)
        var open = structs.filter { result[$0.name] != nil }[...]
        while let type = open.popFirst() {
            for name in type.properties.flatMap(\.type.mentioned) where result[name] == nil {
                result[name] = result[type.name]
                if let inner = structType(named: name) { open.append(inner) }
            }
        }
        return result
    }
}
