package import TambourProtocol
import TambourSQL

struct ObjectPurgeStatements {
    let put: any SQLStatement
    let drop: any SQLStatement
    let next: any SQLStatement
    let any: any SQLStatement
    let stamp: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        put = try sql.prepare(
            """
            INSERT INTO object_purge (user_id, parent, version, modified, device)
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (user_id, parent) DO NOTHING
            """
        )
        drop = try sql.prepare("DELETE FROM object_purge WHERE user_id = $1 AND parent = $2")
        let columns = "user_id, parent, version, modified, device"
        next = try sql.prepare(
            "SELECT \(columns) FROM object_purge WHERE user_id > $1 ORDER BY user_id, parent LIMIT 1"
        )
        any = try sql.prepare("SELECT 1 FROM object_purge WHERE user_id = $1 LIMIT 1")
        stamp = try sql.prepare(
            "SELECT \(columns) FROM object_purge WHERE user_id = $1 AND parent = $2"
        )
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

    fileprivate init(row: any SQLStatement) {
        user = UserID(row.int(0))
        parent = row.int(1)
        stamp = StoredObject.Stamp(version: row.int(2), modified: row.int(3), device: row.int(4))
    }
}

extension ReadTransaction {
    /// Whether objects of a user still have to be deleted because an ancestor was.
    package func hasObjectPurges(of user: UserID) throws -> Bool {
        let statement = store.objectPurges.any
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        return try statement.step()
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
            let statement = store.objectPurges.stamp
            defer { statement.reset() }
            statement.bind(1, user.rawValue)
            statement.bind(2, id)
            if try statement.step() { return ObjectPurge(row: statement) }
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
        let statement = store.objectPurges.put
        statement.bind(1, purge.user.rawValue)
        statement.bind(2, purge.parent)
        statement.bind(3, purge.stamp.version)
        statement.bind(4, purge.stamp.modified)
        statement.bind(5, purge.stamp.device)
        try statement.run()
    }

    /// Records that nothing is left to delete, until the next `putObjectPurge`.
    package func noteNoPurges() { mayHavePurges = false }

    /// Returns an unfinished purge; users take turns.
    package func nextObjectPurge() throws -> ObjectPurge? {
        let statement = store.objectPurges.next
        defer { statement.reset() }
        for after in [purgedUser.rawValue, .min] {
            statement.reset()
            statement.bind(1, after)
            guard try statement.step() else { continue }
            let purge = ObjectPurge(row: statement)
            purgedUser = purge.user
            return purge
        }
        return nil
    }

    /// Records that nothing is left below an object.
    package func dropObjectPurge(of user: UserID, at parent: Int64) throws {
        let statement = store.objectPurges.drop
        statement.bind(1, user.rawValue)
        statement.bind(2, parent)
        if try statement.run() > 0 { writes += 1 }
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
        let statement = store.objects.deleteChildren
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, parent)
        statement.bindWords(3, type.rawValue)
        statement.bind(4, stamp.modified)
        statement.bind(5, stamp.device)
        statement.bind(6, ct)
        statement.bind(7, keepsFields)
        statement.bindBlob(8, FieldValue.encoded([:]))
        statement.bind(9, limit)
        var tombstones: [Entity] = []
        while try statement.step() {
            tombstones.append(
                Entity(
                    id: .server(statement.int(0)),
                    type: type,
                    parent: .server(parent),
                    version: statement.int(1),
                    modified: statement.int(2),
                    createdBy: statement.optionalInt(3),
                    isDeleted: true,
                    fields: [:]
                )
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
        let statement = store.objects.deleteElements
        statement.bind(1, user.rawValue)
        statement.bind(2, parent)
        statement.bind(3, limit)
        return try statement.run()
    }
}
