public import TambourProtocol

/// A change by the user that the server cannot accept as it is. It waits for the user's choice and
/// does not delay other changes.
public struct Conflict: Hashable, Sendable {
    public let id: EntityID
    public let type: EntityType
    public let kind: Kind
    /// The user's change, with the copy it was based on.
    public let mine: EntityChange
    /// The server's copy: live, a tombstone, or nil if even that is gone. For a duplicate it is
    /// another entity.
    public let theirs: Entity?
    /// The choices that the user has.
    public let choices: Set<EntityChoice>

    public enum Kind: Hashable, Sendable {
        case updateUpdate
        /// Updated here, deleted on the server.
        case updateDelete
        /// Deleted here, updated on the server.
        case deleteUpdate
        /// Created here and on the server under the same natural key.
        case duplicate
        /// Updated or created here, below a parent that was deleted on the server.
        case parentDeleted
        /// Refused by the server: the error's name, and a JSON pointer to the cause.
        case rejected(error: String, path: String)
    }
}

/// The user's answer to a `Conflict`.
public enum EntityChoice: Hashable, Sendable {
    /// Applies the change on top of the server's copy. An entity that was deleted there is created
    /// again, below another parent if its own is gone.
    case mine
    /// Drops the change.
    case theirs
    /// Keeps the server's copy, and stores the user's as a separate entity.
    case both
}
