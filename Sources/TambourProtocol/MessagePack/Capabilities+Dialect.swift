extension Capabilities {
    /// The named dialect, including the dialects that it builds on; nil for an unknown name.
    package init?(dialect name: String) {
        guard let dialect = Self.dialectTable.first(where: { $0.name == name }) else { return nil }
        self = dialect.value
    }

    /// The name of the client's dialect; nil if the set contains none. The set also contains the
    /// dialects that this dialect builds on.
    package var dialect: String? {
        let spoken = intersection(.dialects)
        return Self.dialectTable.first { $0.value == spoken }?.name
    }
}
