public import TambourProtocol

/// A user's change that the server cannot accept unmodified. The conflict waits for the user's
/// choice and does not delay other changes.
public struct Conflict: Hashable, Sendable {
    public let id: EntityID
    public let type: EntityType
    public let kind: Kind
    /// The user's change, with the copy it was based on.
    public let mine: EntityChange
    /// The server's copy of the entity, or its tombstone; nil if the server has no copy and no
    /// tombstone. For a duplicate, the server's copy of the other entity.
    public let theirs: Entity?
    /// The choices offered to the user.
    public let choices: Set<EntityChoice>

    public enum Kind: Hashable, Sendable {
        case updateUpdate
        /// The entity was updated here and deleted on the server.
        case updateDelete
        /// The entity was deleted here and updated on the server.
        case deleteUpdate
        /// The entity was created here and on the server with the same natural key.
        case duplicate
        /// The entity was updated or created here, but its parent was deleted on the server.
        case parentDeleted
        /// The server refused the change. The values are the error's name and a JSON pointer to the
        /// cause.
        case rejected(error: String, path: String)
    }
}

/// The user's choice for a `Conflict`.
public enum EntityChoice: Hashable, Sendable {
    /// Applies the change on top of the server's copy. An entity that was deleted on the server is
    /// created again, below another parent if its own parent is deleted.
    case mine
    /// Discards the user's change.
    case theirs
    /// Keeps the server's copy, and stores the user's version as a separate entity.
    case both
}
