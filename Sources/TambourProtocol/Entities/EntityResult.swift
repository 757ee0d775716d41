/// The server's result of one `EntityOperation`; the reply of `OBJ_PUSH` contains them in the order
/// of the operations.
package enum EntityResult: Hashable, Sendable {
    case applied(Applied)
    /// Nothing was done, because the operation was a retry; the value is the first result.
    indirect case replayed(EntityResult)
    /// Nothing was applied. `server` is the current entity, a tombstone if it was deleted, nil if
    /// even the tombstone is gone.
    case conflict(ConflictKind, server: Entity?)
    /// The operation can never be applied as it is.
    case rejected(EntityRefusal)
    /// Not attempted, because the operation that should have created its parent failed.
    case skipped(because: Int64)

    package struct Applied: Hashable, Sendable {
        package var id: EntityID
        package var version: Int64
        package var modified: Int64
        /// The whole entity, if it is not the base with the operation's fields.
        package var entity: Entity?
        /// The server's previous value, if last-writer-wins replaced it.
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
        /// Updated by the device, deleted on the server.
        case updateDelete
        /// Deleted by the device, updated on the server.
        case deleteUpdate
        /// Created on both sides with one natural key; `server` is the other entity.
        case duplicate
        /// The server's write is later and won by last-writer-wins; the user has nothing to choose.
        case superseded
    }
}

extension EntityResult {
    /// The result without `replayed` around it.
    package var first: EntityResult {
        if case .replayed(let first) = self { first.first } else { self }
    }
}

/// Why an operation cannot be applied, and which part of it is at fault.
package struct EntityRefusal: Error, Hashable, Sendable {
    package var error: ObjectError
    /// A JSON pointer into the operation: `/fields/title`.
    package var path: String

    package init(_ error: ObjectError, at path: String) {
        self.error = error
        self.path = path
    }
}
