/// The server's answer to one `EntityOperation`; the reply of `OBJ_PUSH` holds them in the order of
/// the operations.
package enum EntityResult: Hashable, Sendable {
    case applied(Applied)
    /// Nothing was done, because it had been done before: the first result.
    indirect case replayed(EntityResult)
    /// Nothing was applied. `server` is the object as it is now, of a deleted one the tombstone,
    /// nil if even that is gone.
    case conflict(ConflictKind, server: Entity?)
    /// The operation can never be applied as it is.
    case rejected(EntityRefusal)
    /// Not tried, because the operation that should have made its parent failed.
    case skipped(because: Int64)

    package struct Applied: Hashable, Sendable {
        package var id: EntityID
        package var version: Int64
        package var modified: Int64
        /// The whole object, where it is not the base with the operation's fields on it.
        package var object: Entity?
        /// What the server held before, where last-writer-wins set it aside.
        package var loser: Entity?

        package init(
            id: EntityID,
            version: Int64,
            modified: Int64,
            object: Entity? = nil,
            loser: Entity? = nil
        ) {
            self.id = id
            self.version = version
            self.modified = modified
            self.object = object
            self.loser = loser
        }
    }

    package enum ConflictKind: Hashable, Sendable {
        case updateUpdate
        /// Updated here, deleted there.
        case updateDelete
        /// Deleted here, updated there.
        case deleteUpdate
        /// Created here and there under one natural key; `server` is the other object.
        case duplicate
        /// The server's write is later, and last-writer-wins decided: nothing to choose.
        case superseded
    }
}

extension EntityResult {
    /// The result without the words "replayed".
    package var first: EntityResult {
        if case .replayed(let first) = self { first.first } else { self }
    }
}

/// Why an operation cannot be applied, and where in it the reason lies.
package struct EntityRefusal: Error, Hashable, Sendable {
    package var error: ObjectError
    /// A JSON pointer into the operation: `/fields/title`.
    package var path: String

    package init(_ error: ObjectError, at path: String) {
        self.error = error
        self.path = path
    }
}
