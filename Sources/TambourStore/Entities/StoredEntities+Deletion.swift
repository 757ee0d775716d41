package import TambourProtocol
import TambourSQL

enum EntityPurgeColumn: Int, SQLColumn {
    case userID, parent, version, modified, device
}

struct EntityPurgeStatements {
    let put: any SQLStatement
    let drop: any SQLStatement
    let next: SQLQuery<EntityPurgeColumn>
    let any: any SQLStatement
    let stamp: SQLQuery<EntityPurgeColumn>

    init(_ sql: any SQLConnection) throws {
        put = try sql.prepare(
            """
            INSERT INTO object_purge (user_id, parent, version, modified, device)
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (user_id, parent) DO NOTHING
            """
        )
        drop = try sql.prepare("DELETE FROM object_purge WHERE user_id = $1 AND parent = $2")
        let select = "SELECT \(EntityPurgeColumn.list) FROM object_purge"
        next = try sql.query("\(select) WHERE user_id > $1 ORDER BY user_id, parent LIMIT 1")
        any = try sql.prepare("SELECT 1 FROM object_purge WHERE user_id = $1 LIMIT 1")
        stamp = try sql.query("\(select) WHERE user_id = $1 AND parent = $2")
    }
}

/// A deleted entity whose descendants may still have to be deleted.
package struct EntityPurge: Sendable {
    package let user: UserID
    package let parent: Int64
    /// The stamp of the deletion.
    package let stamp: StoredEntity.Stamp

    package init(user: UserID, parent: Int64, stamp: StoredEntity.Stamp) {
        self.user = user
        self.parent = parent
        self.stamp = stamp
    }

    fileprivate init(row: SQLRow<EntityPurgeColumn>) {
        user = UserID(row.int(.userID))
        parent = row.int(.parent)
        stamp = StoredEntity.Stamp(
            version: row.int(.version),
            modified: row.int(.modified),
            device: row.int(.device)
        )
    }
}

extension ReadTransaction {
    /// Whether deletions of a user's entities below a deleted entity are pending.
    package func hasEntityPurges(of user: UserID) throws -> Bool {
        try store.entityPurges.any.hasRow { $0.bind(1, user.rawValue) }
    }

    /// Returns the pending deletion that will delete an entity below `parent`; nil if the entity is
    /// not affected.
    ///
    /// Call this function only for a user with pending deletions.
    package func purge(of user: UserID, at parent: Int64?) throws -> EntityPurge? {
        var next = parent
        // Entities are nested two or three levels deep, but in a damaged store the nesting may
        // never end.
        for _ in 0..<16 {
            guard let id = next else { return nil }
            let purge = try store.entityPurges.stamp.one {
                $0.bind(1, user.rawValue)
                $0.bind(2, id)
            } read: {
                EntityPurge(row: $0)
            }
            if let purge { return purge }
            next = try entity(id, of: user)?.entity.parent?.number
        }
        return nil
    }
}

extension WriteTransaction {
    /// Records that descendants of an entity may have to be deleted. A later step deletes them,
    /// even after a restart.
    package func putEntityPurge(_ purge: EntityPurge) throws {
        writes += 1
        mayHavePurges = true
        try store.entityPurges.put.run {
            $0.bind(1, purge.user.rawValue)
            $0.bind(2, purge.parent)
            $0.bind(3, purge.stamp.version)
            $0.bind(4, purge.stamp.modified)
            $0.bind(5, purge.stamp.device)
        }
    }

    /// Records that no purge of entities or messages is pending. This is valid until the next call
    /// of `putEntityPurge` or `putPurge`.
    package func noteNoPurges() { mayHavePurges = false }

    /// Returns a pending purge. Successive calls serve the users in turn.
    package func nextEntityPurge() throws -> EntityPurge? {
        for after in [purgedUser.rawValue, .min] {
            let purge = try store.entityPurges.next.one {
                $0.bind(1, after)
            } read: {
                EntityPurge(row: $0)
            }
            guard let purge else { continue }
            purgedUser = purge.user
            return purge
        }
        return nil
    }

    /// Records that the purge below an entity is complete.
    package func dropEntityPurge(of user: UserID, at parent: Int64) throws {
        let dropped = try store.entityPurges.drop.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent)
        }
        if dropped > 0 { writes += 1 }
    }

    /// Turns live entities of a type directly below a deleted entity into tombstones.
    ///
    /// - Parameters:
    ///   - stamp: the stamp of the deletion. Each entity does not get the version of this stamp,
    ///     but its own next version.
    ///   - keepsFields: whether the tombstones keep their fields, because a later update may
    ///     restore the entities.
    /// - Returns: the tombstones for devices, in the order of their ids, at most `limit`.
    package func deleteEntities(
        of type: EntityType,
        below parent: Int64,
        limit: Int,
        by stamp: StoredEntity.Stamp,
        keepsFields: Bool,
        of user: UserID
    ) throws -> [Entity] {
        guard limit > 0 else { return [] }
        writes += 1
        let tombstones = try store.entities.deleteChildren.all {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent)
            $0.bindWords(3, type.rawValue)
            $0.bind(4, stamp.modified)
            $0.bind(5, stamp.device)
            $0.bind(6, ct)
            $0.bind(7, keepsFields)
            $0.bindBlob(8, FieldValue.encoded([:]))
            $0.bind(9, limit)
        } read: {
            Entity(
                id: .server($0.int(.id)),
                type: type,
                parent: .server(parent),
                version: $0.int(.version),
                modified: $0.int(.modified),
                createdBy: $0.optionalInt(.createdBy),
                isDeleted: true,
                fields: [:]
            )
        }
        // RETURNING returns the rows in an unspecified order.
        return tombstones.sorted { $0.id < $1.id }
    }

    /// Removes elements of the series below an entity.
    ///
    /// - Returns: the number of elements removed, at most `limit`.
    package func deleteElements(below parent: Int64, limit: Int, of user: UserID) throws -> Int {
        guard limit > 0 else { return 0 }
        writes += 1
        return try store.entities.deleteElements.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent)
            $0.bind(3, limit)
        }
    }
}
