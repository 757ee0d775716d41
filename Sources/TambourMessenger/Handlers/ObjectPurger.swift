import TambourEvents
import TambourProtocol
import TambourStore

/// The changes that a push or a step has made to a user's objects.
struct ObjectChanges {
    var counts: ObjectCounts
    var objects: [Entity] = []
}

/// Deletes the descendants of deleted objects, in steps.
///
/// There may be a million objects. The deletion itself removes one step's worth and records the rest in
/// `object_purge`; the engine continues between other commands, also after a restart. Until then readers
/// see tombstones and changes are refused, as if everything had been deleted.
struct ObjectPurger: Sendable {
    private let limits: Limits
    private let schema: EntitySchema

    init(limits: Limits) {
        self.limits = limits
        schema = .standard(limits)
    }

    /// Does one step of the remaining work.
    ///
    /// - Returns: false when there is nothing to do.
    func step(in tx: WriteTransaction) throws -> Bool {
        guard let purge = try tx.nextObjectPurge() else { return false }
        guard let parent = try tx.reader.object(purge.parent, of: purge.user) else {
            try tx.dropObjectPurge(of: purge.user, at: purge.parent)
            return true
        }
        let before = try tx.reader.objectCounts(of: purge.user)
        var changes = ObjectChanges(counts: before)
        var budget = limits.purgedRowsPerStep
        try run(purge, parent.entity.type, &budget, into: &changes, tx)
        if changes.counts != before { try tx.setObjectCounts(changes.counts, of: purge.user) }
        tx.tell(changes.objects, of: purge.user, except: nil, limits)
        return true
    }

    /// Deletes the children of an object of the given type. This is a bulk `ObjectRules.cascade`,
    /// which need not read what they contain.
    func run(
        _ purge: ObjectPurge,
        _ type: EntityType,
        _ budget: inout Int,
        into changes: inout ObjectChanges,
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
            let tombstones = try tx.deleteObjects(
                of: kind.type,
                below: purge.parent,
                limit: budget,
                by: purge.stamp,
                keepsFields: kind.deletion == .updateWins,
                of: purge.user
            )
            changes.counts.live -= Int64(tombstones.count)
            changes.objects += tombstones
            budget -= tombstones.count
            guard schema.isParent(kind.type) else { continue }
            for tombstone in tombstones {
                let next = ObjectPurge(
                    user: purge.user,
                    parent: tombstone.id.number,
                    stamp: purge.stamp
                )
                try run(next, kind.type, &budget, into: &changes, tx)
            }
        }
        // Once the budget is spent, more objects may be left.
        if budget > 0 {
            try tx.dropObjectPurge(of: purge.user, at: purge.parent)
        } else {
            try tx.putObjectPurge(purge)
        }
    }
}

extension Entity {
    /// Returns the object as the purge will leave it.
    func tombstone(of purge: ObjectPurge) -> Entity {
        var tombstone = self
        tombstone.version += 1
        tombstone.modified = max(modified, purge.stamp.modified)
        tombstone.isDeleted = true
        tombstone.fields = [:]
        return tombstone
    }
}

extension WriteTransaction {
    /// Pushes objects to a user's sessions with NOTIF_OBJ, in parts small enough for a connection
    /// with little room left.
    func tell(
        _ objects: [Entity],
        of user: UserID,
        except connection: ConnectionID?,
        _ limits: Limits
    ) {
        guard !objects.isEmpty else { return }
        let most = limits.maxOutboundPushBytes / 4
        var (part, bytes) = ([ObjectCopy](), 0)
        func emitPart() {
            emit(.push(.notifObj(NotifObj(objects: part)), to: [user], except: connection))
        }
        for object in objects {
            if bytes + object.wireSizeEstimate > most, !part.isEmpty {
                emitPart()
                (part, bytes) = ([], 0)
            }
            part.append(ObjectCopy(object))
            bytes += object.wireSizeEstimate
        }
        emitPart()
    }
}
