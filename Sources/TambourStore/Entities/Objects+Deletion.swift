package import TambourProtocol
import TambourSQL

enum ObjectPurgeColumn: Int, SQLColumn {
    case userID, parent, version, modified, device
}

struct ObjectPurgeStatements {
    let put: any SQLStatement
    let drop: any SQLStatement
    let next: SQLQuery<ObjectPurgeColumn>
    let any: any SQLStatement
    let stamp: SQLQuery<ObjectPurgeColumn>

    init(_ sql: any SQLConnection) throws {
        put = try sql.prepare(
            """
            INSERT INTO object_purge (user_id, parent, version, modified, device)
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (user_id, parent) DO NOTHING
            """
        )
        drop = try sql.prepare("DELETE FROM object_purge WHERE user_id = $1 AND parent = $2")
        let select = "SELECT \(ObjectPurgeColumn.list) FROM object_purge"
        next = try sql.query("\(select) WHERE user_id > $1 ORDER BY user_id, parent LIMIT 1")
        any = try sql.prepare("SELECT 1 FROM object_purge WHERE user_id = $1 LIMIT 1")
        stamp = try sql.query("\(select) WHERE user_id = $1 AND parent = $2")
    }
}

/// A deleted object with descendants that may still have to be deleted.
package struct ObjectPurge: Sendable {
    package let user: UserID
    package let parent: Int64
    /// The stamp of the deletion.
    package let stamp: StoredObject.Stamp

    package init(user: UserID, parent: Int64, stamp: StoredObject.Stamp) {
        self.user = user
        self.parent = parent
        self.stamp = stamp
    }

    fileprivate init(row: SQLRow<ObjectPurgeColumn>) {
        user = UserID(row.int(.userID))
        parent = row.int(.parent)
        stamp = StoredObject.Stamp(
            version: row.int(.version),
            modified: row.int(.modified),
            device: row.int(.device)
        )
    }
}

extension ReadTransaction {
    /// Whether objects of a user still have to be deleted because an ancestor was.
    package func hasObjectPurges(of user: UserID) throws -> Bool {
        try store.objectPurges.any.hasRow { $0.bind(1, user.rawValue) }
    }

    /// Returns the pending deletion that covers an object below `parent`; nil when the object
    /// stays.
    ///
    /// Call it only for users with pending deletions.
    package func purge(of user: UserID, at parent: Int64?) throws -> ObjectPurge? {
        var next = parent
        // Types nest two or three levels deep; a damaged store may claim more.
        for _ in 0..<16 {
            guard let id = next else { return nil }
            let purge = try store.objectPurges.stamp.one {
                $0.bind(1, user.rawValue)
                $0.bind(2, id)
            } read: {
                ObjectPurge(row: $0)
            }
            if let purge { return purge }
            next = try object(id, of: user)?.entity.parent?.number
        }
        return nil
    }
}

extension WriteTransaction {
    /// Records that descendants of an object may have to be deleted; a later step does it, even
    /// after a restart.
    package func putObjectPurge(_ purge: ObjectPurge) throws {
        writes += 1
        mayHavePurges = true
        try store.objectPurges.put.run {
            $0.bind(1, purge.user.rawValue)
            $0.bind(2, purge.parent)
            $0.bind(3, purge.stamp.version)
            $0.bind(4, purge.stamp.modified)
            $0.bind(5, purge.stamp.device)
        }
    }

    /// Records that nothing is left to delete, until the next `putObjectPurge`.
    package func noteNoPurges() { mayHavePurges = false }

    /// Returns an unfinished purge; users take turns.
    package func nextObjectPurge() throws -> ObjectPurge? {
        for after in [purgedUser.rawValue, .min] {
            let purge = try store.objectPurges.next.one {
                $0.bind(1, after)
            } read: {
                ObjectPurge(row: $0)
            }
            guard let purge else { continue }
            purgedUser = purge.user
            return purge
        }
        return nil
    }

    /// Records that nothing is left below an object.
    package func dropObjectPurge(of user: UserID, at parent: Int64) throws {
        let dropped = try store.objectPurges.drop.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent)
        }
        if dropped > 0 { writes += 1 }
    }

    /// Turns live objects of a type directly below a deleted object into tombstones.
    ///
    /// - Parameters:
    ///   - stamp: the stamp of the deletion; each object gets its own next version.
    ///   - keepsFields: whether a later update may restore the objects with their fields.
    /// - Returns: the tombstones for devices, in the order of their ids, at most `limit`.
    package func deleteObjects(
        of type: EntityType,
        below parent: Int64,
        limit: Int,
        by stamp: StoredObject.Stamp,
        keepsFields: Bool,
        of user: UserID
    ) throws -> [Entity] {
        guard limit > 0 else { return [] }
        writes += 1
        let tombstones = try store.objects.deleteChildren.all {
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
        // RETURNING yields the rows in no particular order.
        return tombstones.sorted { $0.id < $1.id }
    }

    /// Removes elements of the series below an object.
    ///
    /// - Returns: the number of elements removed, at most `limit`.
    package func deleteElements(below parent: Int64, limit: Int, of user: UserID) throws -> Int {
        guard limit > 0 else { return 0 }
        writes += 1
        return try store.objects.deleteElements.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent)
            $0.bind(3, limit)
        }
    }
}
