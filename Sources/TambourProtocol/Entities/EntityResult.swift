/// The server's result of one `EntityOperation`; the reply of `OBJ_PUSH` contains them in the order
/// of the operations.
package enum EntityResult: Hashable, Sendable {
    case applied(Applied)
    /// The operation was a retry, so the server changed nothing; the value is the first result.
    indirect case replayed(EntityResult)
    /// The server applied nothing. `server` is the current entity, or its tombstone if it was
    /// deleted; nil after the tombstone has been purged.
    case conflict(ConflictKind, server: Entity?)
    /// The operation can never be applied in this form.
    case rejected(EntityRefusal)
    /// The server did not try the operation, because it depends on the failed operation with this
    /// `opID`. The operation's own `opID` means that the device must retry it later.
    case skipped(because: Int64)

    package struct Applied: Hashable, Sendable {
        package var id: EntityID
        package var version: Int64
        package var modified: Int64
        /// The whole entity; nil if it equals the base with the operation's fields.
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
        /// Created on both sides with the same natural key; `server` is the entity of the other
        /// device.
        case duplicate
        /// Last-writer-wins kept the server's later write; the user has nothing to choose.
        case superseded
    }
}

extension EntityResult {
    /// The original result: removes every `replayed` wrapper.
    package var first: EntityResult {
        if case .replayed(let first) = self { first.first } else { self }
    }
}

/// The reason why an operation cannot be applied, and the invalid part of the operation.
package struct EntityRefusal: Error, Hashable, Sendable {
    package var error: ObjectError
    /// A JSON pointer into the operation: `/fields/title`.
    package var path: String

    package init(_ error: ObjectError, at path: String) {
        self.error = error
        self.path = path
    }
}
