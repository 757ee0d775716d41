package import TambourProtocol

/// An entity as the server stores it: the part that is sent, and what its rules need besides.
package struct StoredEntity: Hashable, Sendable {
    /// A tombstone whose type uses `updateWins` still has its fields here; `copy` is without them.
    package var entity: Entity
    /// The device of the last accepted change.
    package var device: Int64
    /// When each field of a `merge` type last changed. A field without a stamp has not changed
    /// since its creation.
    package var stamps: [String: Stamp]
    /// The device that created it. Together with `entity.createdBy` it is unique, and kept as long
    /// as the entity or its tombstone. So the first result of a creation is found after its reply
    /// was deleted.
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

    /// The order of a change among others of the same entity.
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
    /// The entity as sent to devices.
    package var copy: Entity {
        guard entity.isDeleted else { return entity }
        var tombstone = entity
        tombstone.fields = [:]
        return tombstone
    }

    package var stamp: Stamp {
        Stamp(version: entity.version, modified: entity.modified, device: device)
    }

    /// The reply to its creation, rebuilt from stored data.
    package var creationResult: EntityResult {
        .applied(.init(id: entity.id, version: 1, modified: entity.modified))
    }
}

extension StoredEntity.Stamp {
    /// Whether last-writer-wins prefers this change. The later time wins; between equal times the
    /// higher device wins, and for one device the later change.
    package func wins(over other: Self) -> Bool {
        (modified, device) >= (other.modified, other.device)
    }
}
