/// The effect of a change on its entity. Its number is the phase of a push in which it is executed.
public enum EntityChangeKind: Int, Hashable, Sendable {
    case delete
    case create
    case update
}

/// One element of `OBJ_PUSH`.
package struct EntityOperation: Hashable, Sendable {
    /// The idempotency key of this content: a retry gets the first result again.
    package var opID: Int64
    package var kind: EntityChangeKind
    /// For a creation the device's own id, which later operations of the batch may refer to.
    package var id: EntityID
    package var type: EntityType
    package var parent: EntityID?
    /// The version the user saw when making the change; 0 for a creation.
    package var base: Int64
    /// Unix milliseconds by the device's clock.
    package var modified: Int64
    /// All fields of a creation, the changed ones of an update (`null` removes), none of a
    /// deletion.
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
