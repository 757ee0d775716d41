package import TambourProtocol

/// The persistent state of `LocalEntities`, as database rows.
package struct EntityRows: Hashable, Sendable {
    package var entities: [EntityRow]
    package var updates: [LocalUpdate]
    package var aliases: [EntityAlias]
    package var counters: EntityCounters

    package init(
        entities: [EntityRow] = [],
        updates: [LocalUpdate] = [],
        aliases: [EntityAlias] = [],
        counters: EntityCounters
    ) {
        self.entities = entities
        self.updates = updates
        self.aliases = aliases
        self.counters = counters
    }
}

/// An entity that is stored on this device. Primary key: `id`.
package struct EntityRow: Hashable, Sendable {
    package var id: EntityID
    package var type: EntityType
    package var parent: EntityID?
    package var uiKey: Int64
    /// The newest copy from the server; nil for an entity that exists only on this device. A
    /// tombstone prevents an older copy from restoring the entity.
    package var server: Entity?
}

/// The server id that replaced a local id. With this row, a late reference to the local id still
/// finds the entity.
package struct EntityAlias: Hashable, Sendable {
    package var local: EntityID
    package var server: EntityID
    /// The time of the replacement, in Unix milliseconds of this device's clock.
    package var since: Int64
}

package struct EntityCounters: Hashable, Sendable {
    package var nextLocalID: Int64
    package var nextUIKey: Int64
    package var nextOpID: Int64
    package var nextSequence: Int64

    /// - Parameter firstOpID: A random number of 62 bits. Thus a reinstalled app does not repeat
    ///   operation ids that the server remembers.
    package init(firstOpID: Int64) {
        nextLocalID = 1
        nextUIKey = 1
        nextOpID = firstOpID
        nextSequence = 1
    }
}

/// One write to the database. All writes of one call belong in one transaction, in order.
package enum EntityRowChange: Hashable, Sendable {
    case putEntity(EntityRow)
    case removeEntity(EntityID)
    case putUpdate(LocalUpdate)
    case removeUpdate(EntityID, LocalUpdate.Slot)
    case putAlias(EntityAlias)
    case removeAlias(EntityID)
    case putCounters(EntityCounters)
}
