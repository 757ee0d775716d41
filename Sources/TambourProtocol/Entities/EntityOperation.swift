/// The effect of a change on its entity. Its raw value is its phase: a push executes all changes of
/// a phase before those of the next.
public enum EntityChangeKind: Int, Hashable, Sendable {
    case delete
    case create
    case update
}

/// One element of `OBJ_PUSH`.
package struct EntityOperation: Hashable, Sendable {
    /// The idempotency key of this content: a retry receives the first result.
    package var opID: Int64
    package var kind: EntityChangeKind
    /// For a creation: the device's own id, which later operations of the batch may reference.
    package var id: EntityID
    package var type: EntityType
    package var parent: EntityID?
    /// The version the user saw when making the change; 0 for a creation.
    package var base: Int64
    /// Unix milliseconds by the device's clock.
    package var modified: Int64
    /// All fields of a creation, the changed fields of an update (`null` removes a field), or no
    /// fields for a deletion.
    package var fields: [String: FieldValue]

    package init(
        opID: Int64,
        kind: EntityChangeKind,
        id: EntityID,
        type: EntityType,
        parent: EntityID?,
        base: Int64,
        modified: Int64,
        fields: [String: FieldValue]
    ) {
        self.opID = opID
        self.kind = kind
        self.id = id
        self.type = type
        self.parent = parent
        self.base = base
        self.modified = modified
        self.fields = fields
    }
}
