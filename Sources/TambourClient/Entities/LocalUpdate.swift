package import TambourProtocol

/// A change that is pending, in flight or in conflict. An entity has at most one sent and one open
/// update.
package struct LocalUpdate: Hashable, Sendable {
    package var id: EntityID
    package var change: EntityChange
    package var state: State
    /// The position of the change among all changes, ordered by the time when each change began. It
    /// breaks ties in a push.
    package var sequence: Int64

    package enum State: Hashable, Sendable {
        /// Open to further changes.
        case pending
        /// Frozen: the update is sent, and retried under the same `opID` until the server replies.
        /// `position` is its place in the batch.
        case inFlight(opID: Int64, position: Int)
        case conflict(Cause)
    }

    package enum Cause: Hashable, Sendable {
        /// A conflict with the entity's own server copy. The copy and the change determine whether
        /// the conflict is `updateUpdate`, `updateDelete` or `deleteUpdate`.
        case version
        /// `theirs` is the other entity with the same natural key.
        case duplicate(theirs: Entity)
        case parentDeleted
        case rejected(EntityRefusal)
    }

    /// The slots for updates of an entity.
    package enum Slot: Hashable, Sendable {
        /// In flight.
        case sent
        /// Pending or in conflict.
        case open
    }

    package var slot: Slot {
        if case .inFlight = state { .sent } else { .open }
    }

    var opID: Int64? {
        if case .inFlight(let opID, _) = state { opID } else { nil }
    }

    var cause: Cause? {
        if case .conflict(let cause) = state { cause } else { nil }
    }
}
