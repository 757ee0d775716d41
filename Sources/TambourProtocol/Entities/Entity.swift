/// What kind of thing an entity is, by its name in the specification: `"note"`.
public struct EntityType: Hashable, Sendable {
    public let rawValue: String

    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }
}

/// An object that devices edit offline: the shape in which it travels and is shown.
public struct Entity: Hashable, Sendable {
    public var id: EntityID
    public var type: EntityType
    /// nil for the type at the top.
    public var parent: EntityID?
    /// 1 after the creation, and one more with every change the server accepts. Decides
    /// compare-and-set.
    public var version: Int64
    /// Unix milliseconds, by the server's clock. Decides which write is the last; never a cursor.
    public var modified: Int64
    /// The `opID` of the creation: by it the device that sent it knows the entity, even if the
    /// reply is lost.
    public var createdBy: Int64?
    /// A tombstone: its fields are empty.
    public var isDeleted: Bool
    /// Holds no `null`.
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
