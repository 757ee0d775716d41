/// The type of an entity, by its name in the specification: `"note"`.
public struct EntityType: Hashable, Sendable {
    public let rawValue: String

    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }
}

/// A thing that devices edit offline: a note, a preference. In the shape that is sent and shown.
public struct Entity: Hashable, Sendable {
    public var id: EntityID
    public var type: EntityType
    /// Nil for the top-level type.
    public var parent: EntityID?
    /// 1 after the creation, increased by each change that the server accepts. Decides
    /// compare-and-set.
    public var version: Int64
    /// Unix milliseconds, by the server's clock. Decides last-writer-wins; never a cursor.
    public var modified: Int64
    /// The `opID` of the creation: by it the sending device recognizes the entity, even if the
    /// reply is lost.
    public var createdBy: Int64?
    /// Whether this is a tombstone; its fields are empty.
    public var isDeleted: Bool
    /// Contains no `null`.
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
