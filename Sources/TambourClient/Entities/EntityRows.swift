package import TambourProtocol

/// Everything that `LocalEntities` has to remember, as rows of a database.
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

/// An entity this device knows of. Primary key: `id`.
package struct EntityRow: Hashable, Sendable {
    package var id: EntityID
    package var type: EntityType
    package var parent: EntityID?
    package var uiKey: Int64
    /// The newest copy the server sent, maybe a tombstone, which keeps an older copy from bringing
    /// the entity back; nil for what exists only here.
    package var server: Entity?
}

/// Which server id a local one became; late references to the local one still find the entity.
package struct EntityAlias: Hashable, Sendable {
    package var local: EntityID
    package var server: EntityID
    /// Unix milliseconds, by this device's clock.
    package var since: Int64
}

package struct EntityCounters: Hashable, Sendable {
    package var nextLocalID: Int64
    package var nextUIKey: Int64
    package var nextOpID: Int64
    package var nextSequence: Int64

    /// - Parameter firstOpID: A random number of 62 bits, so that an app that was installed again
    ///   does not repeat operations that the server remembers.
    package init(firstOpID: Int64) {
        nextLocalID = 1
        nextUIKey = 1
        nextOpID = firstOpID
        nextSequence = 1
    }
}

/// One write to the database. Those of one call belong in one transaction, in their order.
package enum EntityRowChange: Hashable, Sendable {
    case putEntity(EntityRow)
    case removeEntity(EntityID)
    case putUpdate(LocalUpdate)
    case removeUpdate(EntityID, LocalUpdate.Slot)
    case putAlias(EntityAlias)
    case removeAlias(EntityID)
    case putCounters(EntityCounters)
}
