package import TambourProtocol
package import TambourStore

/// The decision about one `EntityOperation`.
package enum EntityDecision: Hashable, Sendable {
    /// Store this entity in place of the current one. If this entity is a tombstone, also delete
    /// its descendants (`EntityRules.cascade`).
    case apply(StoredEntity, EntityResult.Applied)
    /// Write nothing and repeat this result.
    case replayed(EntityResult)
    case conflict(EntityResult.ConflictKind, server: Entity?)
    case rejected(EntityRefusal)
    /// The operation was not tried. Usually the `opID` is that of a failed operation on which this
    /// one depends. If it is the operation's own `opID`, the operation cannot be tried now, and the
    /// device retries it.
    case skipped(because: Int64)

    /// The result on the wire.
    package var result: EntityResult {
        switch self {
        case .apply(_, let applied): .applied(applied)
        case .replayed(let first): .replayed(first)
        case .conflict(let kind, let server): .conflict(kind, server: server)
        case .rejected(let refusal): .rejected(refusal)
        case .skipped(let opID): .skipped(because: opID)
        }
    }

    static func rejected(_ error: ObjectError, at path: String) -> Self {
        .rejected(EntityRefusal(error, at: path))
    }
}
