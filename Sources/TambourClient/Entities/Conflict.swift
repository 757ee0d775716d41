public import TambourProtocol

/// A change of the user that the server cannot accept as it is. It waits for the user's choice and
/// holds up nothing else.
public struct Conflict: Hashable, Sendable {
    public let id: EntityID
    public let type: EntityType
    public let kind: Kind
    /// What the user did, with the copy it was based on.
    public let mine: EntityChange
    /// The server's copy: live, a tombstone, or nil if even that is gone. Of a duplicate it is
    /// another object.
    public let theirs: Entity?
    /// What the user may choose from.
    public let choices: Set<EntityChoice>

    public enum Kind: Hashable, Sendable {
        case updateUpdate
        /// Updated here, deleted there.
        case updateDelete
        /// Deleted here, updated there.
        case deleteUpdate
        /// Created here and there under one natural key.
        case duplicate
        /// Updated or created here below what was deleted there.
        case parentDeleted
        /// The server will not have it: the error's name, and a JSON pointer to what is wrong.
        case rejected(error: String, path: String)
    }
}

/// The user's answer to a `Conflict`.
public enum EntityChoice: Hashable, Sendable {
    /// The change is made on top of what the server has. What was deleted there is created anew,
    /// below another parent if its own is gone.
    case mine
    /// The change is dropped.
    case theirs
    /// The server's copy stays, and the user's becomes an entity of its own beside it.
    case both
}
