/// The server's result for one `EntityOperation`. The reply to `OBJ_PUSH` contains the results in
/// the order of the operations.
package enum EntityResult: Hashable, Sendable {
    case applied(Applied)
    /// The operation was a retry, so the server changed nothing. The value is the first result.
    indirect case replayed(EntityResult)
    /// The server applied nothing. `server` is the current entity. If the entity was deleted,
    /// `server` is its tombstone, or nil after the tombstone has been purged.
    case conflict(ConflictKind, server: Entity?)
    /// The operation can never be applied in this form.
    case rejected(EntityRefusal)
    /// The server did not try the operation. Usually the `opID` is that of a failed operation on
    /// which this one depends. If it is the operation's own `opID`, the device must retry the
    /// operation later.
    case skipped(because: Int64)

    package struct Applied: Hashable, Sendable {
        package var id: EntityID
        package var version: Int64
        package var modified: Int64
        /// The whole entity. It is nil if the device can compute the entity from the base and the
        /// operation's fields.
        package var entity: Entity?
        /// The server's previous entity, if last-writer-wins replaced it.
        package var loser: Entity?

        package init(
            id: EntityID,
            version: Int64,
            modified: Int64,
            entity: Entity? = nil,
            loser: Entity? = nil
        ) {
            self.id = id
            self.version = version
            self.modified = modified
            self.entity = entity
            self.loser = loser
        }
    }

    package enum ConflictKind: Hashable, Sendable {
        case updateUpdate
        /// The device updated an entity that is deleted on the server.
        case updateDelete
        /// The device deleted an entity that has been updated on the server.
        case deleteUpdate
        /// Two devices created an entity with the same natural key. `server` is the entity of the
        /// other device.
        case duplicate
        /// Last-writer-wins kept the server's later write. The user has nothing to choose.
        case superseded
    }
}

extension EntityResult {
    /// The first result, without any `replayed` wrapper.
    package var first: EntityResult {
        if case .replayed(let first) = self { first.first } else { self }
    }
}

/// The reason why an operation cannot be applied, and the invalid part of the operation.
package struct EntityRefusal: Error, Hashable, Sendable {
    package var error: ObjectError
    /// A JSON pointer into the operation, such as `/fields/title`.
    package var path: String

    package init(_ error: ObjectError, at path: String) {
        self.error = error
        self.path = path
    }
}
