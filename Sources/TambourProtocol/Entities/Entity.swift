/// The type of an entity, by its name in the specification: `"note"`.
public struct EntityType: Hashable, Sendable {
    public let rawValue: String

    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }
}

/// A record that devices edit offline, such as a note or a preference. The server and the clients
/// use this type; on the wire it is an `ObjectCopy`.
public struct Entity: Hashable, Sendable {
    public var id: EntityID
    public var type: EntityType
    /// Nil for the top-level type.
    public var parent: EntityID?
    /// 1 after creation; each accepted change increases it. Compare-and-set compares it with the
    /// change's base.
    public var version: Int64
    /// Unix milliseconds, by the server's clock. Last-writer-wins compares it; it is never a
    /// cursor.
    public var modified: Int64
    /// The `opID` of the creation. The device that sent it recognizes the entity by this id, even
    /// if the reply is lost.
    public var createdBy: Int64?
    /// Whether this is a tombstone; its fields are empty.
    public var isDeleted: Bool
    /// No field is `null`; lists and maps in a field may contain `null`.
    public var fields: [String: FieldValue]

    public init(
        id: EntityID,
        type: EntityType,
        parent: EntityID?,
        version: Int64,
        modified: Int64,
        createdBy: Int64? = nil,
        isDeleted: Bool = false,
        fields: [String: FieldValue]
    ) {
        self.id = id
        self.type = type
        self.parent = parent
        self.version = version
        self.modified = modified
        self.createdBy = createdBy
        self.isDeleted = isDeleted
        self.fields = fields
    }
}
