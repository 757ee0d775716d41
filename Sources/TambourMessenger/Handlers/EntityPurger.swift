import TambourEvents
import TambourProtocol
import TambourStore

/// The changes that a step of OBJ_PUSH or of a purge has made to a user's entities.
struct EntityChanges {
    var counts: EntityCounts
    var entities: [Entity] = []
}

/// Deletes the descendants of deleted entities, in steps.
///
/// There may be a million descendants. The command that deletes the entity deletes a first part of
/// them, and records in `object_purge` that others remain. The engine deletes these between other
/// commands, also after a restart. Until this purge ends, the server treats all descendants as
/// deleted: readers see tombstones, and changes are refused.
struct EntityPurger: Sendable {
    private let limits: Limits
    private let schema: EntitySchema

    init(limits: Limits) {
        self.limits = limits
        schema = .standard(limits)
    }

    /// Does one step of a purge that has not ended.
    ///
    /// - Returns: false when there is nothing to do.
    func step(in tx: WriteTransaction) throws -> Bool {
        guard let purge = try tx.nextEntityPurge() else { return false }
        guard let parent = try tx.reader.entity(purge.parent, of: purge.user) else {
            try tx.dropEntityPurge(of: purge.user, at: purge.parent)
            return true
        }
        let before = try tx.reader.entityCounts(of: purge.user)
        var changes = EntityChanges(counts: before)
        var budget = limits.purgedRowsPerStep
        try run(purge, parent.entity.type, &budget, into: &changes, tx)
        if changes.counts != before { try tx.setEntityCounts(changes.counts, of: purge.user) }
        tx.tell(changes.entities, of: purge.user, except: nil, limits)
        return true
    }

    /// Deletes the descendants of `purge.parent`, an entity of the given type. This method does the
    /// same as `EntityRules.cascade`, but in bulk and without reading the descendants' fields.
    func run(
        _ purge: EntityPurge,
        _ type: EntityType,
        _ budget: inout Int,
        into changes: inout EntityChanges,
        _ tx: WriteTransaction
    ) throws {
        let kinds = schema.kinds(below: type)
        guard !kinds.isEmpty else { return }
        if kinds.contains(where: { $0.policy == .append }) {
            let count = try tx.deleteElements(below: purge.parent, limit: budget, of: purge.user)
            changes.counts.elements -= Int64(count)
            budget -= count
        }
        for kind in kinds where kind.policy != .append {
            let tombstones = try tx.deleteEntities(
                of: kind.type,
                below: purge.parent,
                limit: budget,
                by: purge.stamp,
                keepsFields: kind.deletion == .updateWins,
                of: purge.user
            )
            changes.counts.live -= Int64(tombstones.count)
            changes.entities += tombstones
            budget -= tombstones.count
            guard schema.isParent(kind.type) else { continue }
            for tombstone in tombstones {
                let next = EntityPurge(
                    user: purge.user,
                    parent: tombstone.id.number,
                    stamp: purge.stamp
                )
                try run(next, kind.type, &budget, into: &changes, tx)
            }
        }
        // If budget is left, all descendants are deleted. Otherwise some may remain.
        if budget > 0 {
            try tx.dropEntityPurge(of: purge.user, at: purge.parent)
        } else {
            try tx.putEntityPurge(purge)
        }
    }
}

extension Entity {
    /// Returns the tombstone that the purge will leave of this entity.
    func tombstone(of purge: EntityPurge) -> Entity {
        var tombstone = self
        tombstone.version += 1
        tombstone.modified = max(modified, purge.stamp.modified)
        tombstone.isDeleted = true
        tombstone.fields = [:]
        return tombstone
    }
}

extension WriteTransaction {
    /// Pushes entities to a user's sessions with NOTIF_OBJ. Splits them into small parts, so that
    /// each part fits a connection whose outbound queue is nearly full.
    func tell(
        _ entities: [Entity],
        of user: UserID,
        except connection: ConnectionID?,
        _ limits: Limits
    ) {
        guard !entities.isEmpty else { return }
        let most = limits.maxOutboundPushBytes / 4
        var (part, bytes) = ([ObjectCopy](), 0)
        func emitPart() {
            emit(.push(.notifObj(NotifObj(objects: part)), to: [user], except: connection))
        }
        for entity in entities {
            if bytes + entity.wireSizeEstimate > most, !part.isEmpty {
                emitPart()
                (part, bytes) = ([], 0)
            }
            part.append(ObjectCopy(entity))
            bytes += entity.wireSizeEstimate
        }
        emitPart()
    }
}
