/// The type of an entity. It is a name from the specification, such as `"note"`.
public struct EntityType: Hashable, Sendable {
    public let rawValue: String

    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }
}

/// A record that devices edit offline, such as a note or a preference. The server and the clients
/// use this type. On the wire, an entity is an `ObjectCopy`.
public struct Entity: Hashable, Sendable {
    public var id: EntityID
    public var type: EntityType
    /// Nil for the top-level type.
    public var parent: EntityID?
    /// The version. It is 1 after creation, and each accepted change increases it. Compare-and-set
    /// compares the version with the base of a change.
    public var version: Int64
    /// The time of the last change, in Unix milliseconds by the server's clock. Last-writer-wins
    /// compares these times. They are never cursors.
    public var modified: Int64
    /// The `opID` of the operation that created the entity. The device that sent this operation
    /// recognizes the entity by the `opID`, even if the reply is lost.
    public var createdBy: Int64?
    /// Whether this is a tombstone. The fields of a tombstone are empty.
    public var isDeleted: Bool
    /// The fields. No field is `null`, but lists and maps in a field may contain `null`.
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
