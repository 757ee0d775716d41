/// Determines which parts of a type are encoded differently for readers with different
/// capabilities.
struct Projection {
    let specification: Specification

    /// Returns the capabilities that affect the encoding of a type, in the specification's order.
    func gates(of type: StructType) -> [String] { gates(of: type.fields) }

    /// Returns the capabilities that an enumeration's values need, in the specification's order.
    func gates(of type: EnumType) -> [String] { ordered(Set(type.values.compactMap(\.capability))) }

    /// Returns whether a value of this type may be omitted for some readers. An enumeration value
    /// without a fallback may be omitted. If an object has this value in a required field, the
    /// object is omitted too.
    func mayBeLeftOut(_ type: WireType) -> Bool {
        var seen: Set<String> = []
        return mayBeLeftOut(type, &seen)
    }

    private func gates(of fields: [Field]) -> [String] {
        var found: Set<String> = []
        var seen: Set<String> = []
        var open = fields
        while let field = open.popLast() {
            if let capability = field.capability { found.insert(capability) }
            found.formUnion(field.forms.map(\.dialect))
            for name in field.type.mentioned where seen.insert(name).inserted {
                let values = specification.enumType(named: name)?.values ?? []
                found.formUnion(values.compactMap(\.capability))
                open += specification.structType(named: name)?.fields ?? []
            }
        }
        return ordered(found)
    }

    private func ordered(_ names: Set<String>) -> [String] {
        specification.gates.map(\.name).filter(names.contains)
    }

    private func mayBeLeftOut(_ type: WireType, _ seen: inout Set<String>) -> Bool {
        switch type {
        case .named(let name):
            if let type = specification.enumType(named: name) {
                return type.values.contains { $0.capability != nil && $0.fallback == nil }
            }
            guard seen.insert(name).inserted,
                let type = specification.structType(named: name)
            else { return false }
            return type.fields.contains { $0.isRequired && mayBeLeftOut($0.type, &seen) }
        case .packed(let inner): return mayBeLeftOut(inner, &seen)
        // A list or map is not omitted as a whole; only its items are omitted.
        default: return false
        }
    }
}

/// Returns a set of capabilities as a Swift expression, for example `[.historyMore, .lz4Large]`.
func swiftSet(_ capabilities: [String]) -> String {
    "[\(capabilities.map { ".\(Names.camel(fromSeparated: $0))" }.joined(separator: ", "))]"
}
