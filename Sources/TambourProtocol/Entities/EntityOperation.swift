/// The kind of a change to an entity. The raw value is the phase of the change. A push executes all
/// changes of one phase before it begins the next phase.
public enum EntityChangeKind: Int, Hashable, Sendable {
    case delete
    case create
    case update
}

/// One element of `OBJ_PUSH`.
package struct EntityOperation: Hashable, Sendable {
    /// The idempotency key of the operation. A retry with the same key and content receives the
    /// first result.
    package var opID: Int64
    package var kind: EntityChangeKind
    /// The id of the entity. For a creation, it is a local id of the device, which later operations
    /// of the batch may use.
    package var id: EntityID
    package var type: EntityType
    package var parent: EntityID?
    /// The version that the user saw when making the change; 0 for a creation.
    package var base: Int64
    /// The time of the change, in Unix milliseconds by the device's clock.
    package var modified: Int64
    /// For a creation, all fields. For an update, only the changed fields, where `null` removes a
    /// field. For a deletion, no fields.
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
