extension Specification {
    /// Names of the structs and enums that a client may send, at whatever depth.
    var inboundTypes: Set<String> {
        var found: Set<String> = []
        var open = families.flatMap(\.opcodes).compactMap(\.request).flatMap(\.fields)
        while let field = open.popLast() {
            for name in field.type.mentioned where found.insert(name).inserted {
                open += structType(named: name)?.fields ?? []
            }
        }
        return found
    }
}

extension StructType {
    /// Whether readers hold its values against the limits of its fields.
    ///
    /// What only servers send is not refused for its size: a later server may have wider limits.
    func isHeldAgainstLimits(_ inboundTypes: Set<String>) -> Bool {
        role == .request || inboundTypes.contains(name)
    }
}
