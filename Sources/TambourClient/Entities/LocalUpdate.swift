package import TambourProtocol

/// A change on its way to the server. An entity has at most one that is sent and one that is open.
package struct LocalUpdate: Hashable, Sendable {
    package var id: EntityID
    package var change: EntityChange
    package var state: State
    /// The order in which changes began; it decides among equals in a push.
    package var sequence: Int64

    package enum State: Hashable, Sendable {
        /// Takes up further changes.
        case pending
        /// Frozen: it is sent, again and again under one `opID`, until an answer comes. `position`
        /// is its place in the batch.
        case inFlight(opID: Int64, position: Int)
        case conflict(Cause)
    }

    package enum Cause: Hashable, Sendable {
        /// Over the entity's own server copy: which of the three follows from that copy and the
        /// change.
        case version
        /// `theirs` is the object that has the natural key.
        case duplicate(theirs: Entity)
        case parentDeleted
        case rejected(EntityRefusal)
    }

    /// The places an update can have.
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
