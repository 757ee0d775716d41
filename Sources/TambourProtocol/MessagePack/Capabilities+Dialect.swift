extension Capabilities {
    /// Creates the set that contains the named dialect and the dialects on which it builds. Returns
    /// nil for an unknown name.
    package init?(dialect name: String) {
        guard let dialect = Self.dialectTable.first(where: { $0.name == name }) else { return nil }
        self = dialect.value
    }

    /// The name of the client's dialect; nil if the set contains no dialect. The set also contains
    /// the dialects on which this dialect builds.
    package var dialect: String? {
        let spoken = intersection(.dialects)
        return Self.dialectTable.first { $0.value == spoken }?.name
    }
}
