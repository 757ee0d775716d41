extension Capabilities {
    /// The named dialect, including the dialects that it builds on; nil for an unknown name.
    package init?(dialect name: String) {
        guard let dialect = Self.dialectTable.first(where: { $0.name == name }) else { return nil }
        self = dialect.value
    }

    /// The name of the contained dialect that builds on all other contained dialects; nil if no
    /// dialect is contained.
    package var dialect: String? {
        let spoken = intersection(.dialects)
        return Self.dialectTable.first { $0.value == spoken }?.name
    }
}
