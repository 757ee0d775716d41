package import TambourProtocol

/// An entity as the server stores it: the data sent to devices, and the data that only the rules
/// need.
package struct StoredEntity: Hashable, Sendable {
    /// The entity with all its fields. If the type uses `updateWins`, a tombstone also contains its
    /// fields here; `copy` omits them.
    package var entity: Entity
    /// The device of the last accepted change.
    package var device: Int64
    /// The last change of each field of a `merge` type. A field without a stamp has not changed
    /// since the entity was created.
    package var stamps: [String: Stamp]
    /// The device that created the entity. The pair of `creator` and `entity.createdBy` is unique,
    /// and is kept as long as the entity or its tombstone. The server can therefore find the first
    /// result of a creation even after it has deleted the reply.
    package var creator: Int64

    package init(
        entity: Entity,
        device: Int64,
        stamps: [String: Stamp] = [:],
        creator: Int64
    ) {
        self.entity = entity
        self.device = device
        self.stamps = stamps
        self.creator = creator
    }

    /// The data that determines the order of the changes of an entity.
    package struct Stamp: Hashable, Sendable {
        /// The entity's version after the change.
        package var version: Int64
        package var modified: Int64
        package var device: Int64

        package init(version: Int64, modified: Int64, device: Int64) {
            self.version = version
            self.modified = modified
            self.device = device
        }
    }
}

extension StoredEntity {
    /// The entity as the server sends it to devices.
    package var copy: Entity {
        guard entity.isDeleted else { return entity }
        var tombstone = entity
        tombstone.fields = [:]
        return tombstone
    }

    package var stamp: Stamp {
        Stamp(version: entity.version, modified: entity.modified, device: device)
    }

    /// The reply to the operation that created the entity, made again from stored data.
    package var creationResult: EntityResult {
        .applied(.init(id: entity.id, version: 1, modified: entity.modified))
    }
}

extension StoredEntity.Stamp {
    /// Whether this change wins over `other` by the rule "last writer wins". The later time wins.
    /// If the times are equal, the higher device id wins. If the device ids are also equal, this
    /// change wins.
    package func wins(over other: Self) -> Bool {
        (modified, device) >= (other.modified, other.device)
    }
}
