extension Capabilities {
    /// The dialect with this name, with those that it builds on; nil for an unknown name.
    package init?(dialect name: String) {
        guard let dialect = Self.dialectTable.first(where: { $0.name == name }) else { return nil }
        self = dialect.value
    }

    /// The name of the contained dialect that builds on all others contained; nil for none.
    package var dialect: String? {
        let spoken = intersection(.dialects)
        return Self.dialectTable.first { $0.value == spoken }?.name
    }
}
