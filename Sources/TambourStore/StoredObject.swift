package import TambourProtocol

/// An entity as the server keeps it: what travels, and what its rules need besides.
package struct StoredObject: Hashable, Sendable {
    /// Of a tombstone whose type says `updateWins` the fields are still here; `copy` is without
    /// them.
    package var entity: Entity
    /// The device of the last accepted change.
    package var device: Int64
    /// When each field of a `merge` type was last changed. A field without a stamp is as it was
    /// created.
    package var stamps: [String: Stamp]
    /// The device that created it. With `entity.createdBy` it is unique, and kept as long as the
    /// object or its tombstone: so the first result of a creation is found when its reply is long
    /// forgotten.
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

    /// The place of a change among others of the same thing.
    package struct Stamp: Hashable, Sendable {
        /// The object's version that the change made.
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

extension StoredObject {
    /// What devices are sent.
    package var copy: Entity {
        guard entity.isDeleted else { return entity }
        var tombstone = entity
        tombstone.fields = [:]
        return tombstone
    }

    package var stamp: Stamp {
        Stamp(version: entity.version, modified: entity.modified, device: device)
    }

    /// The answer to its creation, made from what is still known.
    package var creationResult: EntityResult {
        .applied(.init(id: entity.id, version: 1, modified: entity.modified))
    }
}

extension StoredObject.Stamp {
    /// Whether last-writer-wins prefers this change. The time decides, between equal times the
    /// higher device, and of one device the change that came last.
    package func wins(over other: Self) -> Bool {
        (modified, device) >= (other.modified, other.device)
    }
}
