extension Specification {
    /// The names of the structs and enums that a client may send, at any depth.
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
    /// Returns whether readers check values against the limits of their fields.
    ///
    /// Readers accept values of any size if only servers send them, because a later server may have
    /// wider limits.
    func isHeldAgainstLimits(_ inboundTypes: Set<String>) -> Bool {
        role == .request || inboundTypes.contains(name)
    }
}
