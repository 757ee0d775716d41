import Crypto
package import TambourProtocol
import TambourSQL

/// The number of a user's objects, and the newest id.
package struct ObjectCounts: Equatable, Sendable {
    /// Objects that are not deleted, without elements of series.
    package var live: Int64 = 0
    package var elements: Int64 = 0
    package var lastID: Int64 = 0
    /// Replies kept for devices that lost them.
    package var replies: Int64 = 0
}

/// The place of an object in a page's order: the next page starts after it.
package struct ObjectPlace: Equatable, Sendable {
    /// The commit clock; for an element its position.
    package let position: Int64
    package let id: Int64

    package init(position: Int64, id: Int64) {
        self.position = position
        self.id = id
    }
}

/// The reply to a device's operation.
package struct ObjectReply: Equatable, Sendable {
    /// SHA-256 of the operation.
    package let digest: Bytes
    /// The MessagePack of an `ObjectResult`.
    package let result: Bytes

    package init(digest: Bytes, result: Bytes) {
        self.digest = digest
        self.result = result
    }
}

struct ObjectStatements {
    let byID: any SQLStatement
    let byCreation: any SQLStatement
    let twin: any SQLStatement
    let hasChild: any SQLStatement
    let changed: any SQLStatement
    let live: any SQLStatement
    let elements: any SQLStatement
    let put: any SQLStatement
    let deleteChildren: any SQLStatement
    let deleteElements: any SQLStatement
    let counts: any SQLStatement
    let setCounts: any SQLStatement
    let reply: any SQLStatement
    let putReply: any SQLStatement
    let forgetReplies: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let columns = """
            id, type, parent, version, modified, device, creator, created_by, deleted, content,
            stamps, CASE WHEN position IS NULL THEN ct ELSE position END
            """
        let select = "SELECT \(columns) FROM object WHERE user_id = $1"
        byID = try sql.prepare("\(select) AND id = $2")
        byCreation = try sql.prepare("\(select) AND creator = $2 AND created_by = $3")
        // SQLite estimates ten objects per user and would read all of them; a range makes it use
        // the index.
        twin = try sql.prepare(
            """
            \(select) AND parent = $2 AND natural_key BETWEEN $3 AND $3 AND deleted = 0 AND id <> $4
            LIMIT 1
            """
        )
        hasChild = try sql.prepare(
            """
            SELECT 1 FROM object WHERE user_id = $1 AND parent = $2 AND type BETWEEN $3 AND $3
              AND position IS NULL AND deleted = 0 LIMIT 1
            """
        )
        let behind = "(ct > $2 OR (ct = $2 AND id > $3))"
        let rest = "AND position IS NULL ORDER BY ct, id LIMIT $4"
        changed = try sql.prepare("\(select) AND ct >= $2 AND \(behind) \(rest)")
        live = try sql.prepare("\(select) AND ct >= $2 AND \(behind) AND deleted = 0 \(rest)")
        elements = try sql.prepare(
            """
            \(select) AND parent = $2 AND type = $3 AND position >= $4 AND position <= $6
              AND (position > $4 OR id > $5)
            ORDER BY position, id LIMIT $7
            """
        )
        put = try sql.prepare(
            """
            INSERT INTO object (user_id, id, type, parent, version, modified, device, creator,
              created_by, deleted, content, stamps, natural_key, position, ct)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            ON CONFLICT (user_id, id) DO UPDATE SET
              version = excluded.version, modified = excluded.modified, device = excluded.device,
              deleted = excluded.deleted, content = excluded.content, stamps = excluded.stamps,
              natural_key = excluded.natural_key, ct = excluded.ct
            """
        )
        // Follows the rules of `ObjectRules.cascade` without reading the objects' contents. Ordered
        // by `id` alone, or with an equal type, SQLite would read all objects of the user.
        deleteChildren = try sql.prepare(
            """
            UPDATE object SET
              version = version + 1, modified = CASE WHEN modified > $4 THEN modified ELSE $4 END,
              device = $5, deleted = 1, ct = $6,
              content = CASE WHEN $7 = 1 THEN content ELSE $8 END,
              stamps = CASE WHEN $7 = 1 THEN stamps ELSE NULL END
            WHERE user_id = $1 AND id IN (
              SELECT id FROM object
              WHERE user_id = $1 AND parent = $2 AND type BETWEEN $3 AND $3 AND position IS NULL
                AND deleted = 0
              ORDER BY type, id LIMIT $9
            )
            RETURNING id, version, modified, created_by
            """
        )
        deleteElements = try sql.prepare(
            """
            DELETE FROM object WHERE user_id = $1 AND id IN (
              SELECT id FROM object WHERE user_id = $1 AND parent = $2 AND position IS NOT NULL
              LIMIT $3
            )
            """
        )
        counts = try sql.prepare(
            "SELECT live, elements, last_id, replies FROM object_count WHERE user_id = $1"
        )
        setCounts = try sql.prepare(
            """
            INSERT INTO object_count (user_id, live, elements, last_id, replies)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (user_id) DO UPDATE SET
              live = excluded.live, elements = excluded.elements, last_id = excluded.last_id,
              replies = excluded.replies
            """
        )
        reply = try sql.prepare(
            """
            SELECT digest, result FROM object_reply
            WHERE user_id = $1 AND device = $2 AND op_id = $3
            """
        )
        putReply = try sql.prepare(
            """
            INSERT INTO object_reply (user_id, device, op_id, ct, digest, result)
            VALUES ($1, $2, $3, $4, $5, $6)
            """
        )
        forgetReplies = try sql.prepare(
            """
            DELETE FROM object_reply WHERE user_id = $1 AND (device, op_id) IN (
              SELECT device, op_id FROM object_reply WHERE user_id = $1 AND ct < $2
              ORDER BY ct LIMIT $3
            )
            """
        )
    }
}

extension ReadTransaction {
    /// Returns an object of a user, or its tombstone.
    package func object(_ id: Int64, of user: UserID) throws -> StoredObject? {
        let statement = store.objects.byID
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, id)
        return try statement.step() ? StoredObject.from(statement).object : nil
    }

    /// Returns the object that a device created by an operation.
    package func object(
        createdBy operation: Int64,
        on device: DeviceID,
        of user: UserID
    ) throws -> StoredObject? {
        let statement = store.objects.byCreation
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, device.rawValue)
        statement.bind(3, operation)
        return try statement.step() ? StoredObject.from(statement).object : nil
    }

    /// Returns another live object below the same parent with the same natural key.
    package func object(
        below parent: Int64?,
        withKey key: ObjectKey,
        but id: Int64?,
        of user: UserID
    ) throws -> StoredObject? {
        let statement = store.objects.twin
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, parent ?? 0)
        statement.bindBlob(3, key.bytes)
        statement.bind(4, id ?? 0)
        return try statement.step() ? StoredObject.from(statement).object : nil
    }

    package func hasObject(
        of type: EntityType,
        below parent: Int64,
        of user: UserID
    ) throws -> Bool {
        let statement = store.objects.hasChild
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, parent)
        statement.bindWords(3, type.rawValue)
        return try statement.step()
    }

    /// Returns the objects that changed after a place, the oldest change first, without elements of
    /// series.
    ///
    /// - Parameters:
    ///   - isLive: omits deleted objects.
    ///   - room: the bytes that the objects may take on the wire.
    package func objects(
        changedAfter place: ObjectPlace,
        isLive: Bool,
        of user: UserID,
        limit: Int,
        room: Int
    ) throws -> ObjectPage {
        let statement = isLive ? store.objects.live : store.objects.changed
        statement.bind(1, user.rawValue)
        statement.bind(2, place.position)
        statement.bind(3, place.id)
        statement.bind(4, limit + 1)
        return try page(statement, limit: limit, room: room)
    }

    /// Returns elements of a series after a place and up to a position, in their order.
    ///
    /// - Parameter room: the bytes that they may take on the wire.
    package func elements(
        of type: EntityType,
        below parent: Int64,
        after place: ObjectPlace,
        upTo end: Int64,
        of user: UserID,
        limit: Int,
        room: Int
    ) throws -> ObjectPage {
        let statement = store.objects.elements
        statement.bind(1, user.rawValue)
        statement.bind(2, parent)
        statement.bindWords(3, type.rawValue)
        statement.bind(4, place.position)
        statement.bind(5, place.id)
        statement.bind(6, end)
        statement.bind(7, limit + 1)
        return try page(statement, limit: limit, room: room)
    }

    package func objectCounts(of user: UserID) throws -> ObjectCounts {
        let statement = store.objects.counts
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        guard try statement.step() else { return ObjectCounts() }
        // The next object's id follows this one.
        guard StoreCheck.messages.contains(statement.int(2)) else {
            throw ImpossibleRow("object_count \(user): last_id", statement.int(2))
        }
        return ObjectCounts(
            live: statement.int(0),
            elements: statement.int(1),
            lastID: statement.int(2),
            replies: statement.int(3)
        )
    }

    /// Returns the reply to a device's operation; nil when there was none, or too long ago.
    package func objectReply(
        to operation: Int64,
        of device: DeviceID,
        of user: UserID
    ) throws -> ObjectReply? {
        let statement = store.objects.reply
        defer { statement.reset() }
        statement.bind(1, user.rawValue)
        statement.bind(2, device.rawValue)
        statement.bind(3, operation)
        guard try statement.step() else { return nil }
        return ObjectReply(
            digest: Bytes(statement.bytes(0)),
            result: Bytes(statement.bytes(1))
        )
    }

    /// Returns all live objects of a user, including elements of series, in the order of ids; for
    /// exports.
    package func allObjects(of user: UserID, after id: Int64, limit: Int) throws -> [StoredObject] {
        try rows(
            """
            SELECT id, type, parent, version, modified, device, creator, created_by, deleted,
              content, stamps, ct
            FROM object WHERE user_id = $1 AND id > $2 AND deleted = 0 ORDER BY id LIMIT $3
            """,
            user.rawValue,
            id,
            Int64(limit)
        ) { try StoredObject.from($0).object }
    }
}

extension WriteTransaction {
    /// Stores an object in place of its previous version.
    ///
    /// - Parameters:
    ///   - key: its natural key; nil for a type without one.
    ///   - position: for an element, its position in the series.
    package func putObject(
        _ object: StoredObject,
        key: ObjectKey?,
        position: Int64?,
        of user: UserID
    ) throws {
        writes += 1
        let entity = object.entity
        let statement = store.objects.put
        statement.bind(1, user.rawValue)
        statement.bind(2, entity.id.number)
        statement.bindWords(3, entity.type.rawValue)
        statement.bind(4, entity.parent?.number ?? 0)
        statement.bind(5, entity.version)
        statement.bind(6, entity.modified)
        statement.bind(7, object.device)
        statement.bind(8, object.creator)
        statement.bind(9, entity.createdBy)
        statement.bind(10, entity.isDeleted)
        statement.bindBlob(11, FieldValue.encoded(entity.fields))
        statement.bindBlob(12, object.stamps.isEmpty ? nil : object.encodedStamps)
        statement.bindBlob(13, key?.bytes)
        statement.bind(14, position)
        statement.bind(15, ct)
        try statement.run()
    }

    package func setObjectCounts(_ counts: ObjectCounts, of user: UserID) throws {
        writes += 1
        let statement = store.objects.setCounts
        statement.bind(1, user.rawValue)
        statement.bind(2, counts.live)
        statement.bind(3, counts.elements)
        statement.bind(4, counts.lastID)
        statement.bind(5, counts.replies)
        try statement.run()
    }

    package func putObjectReply(
        _ reply: ObjectReply,
        to operation: Int64,
        of device: DeviceID,
        of user: UserID
    ) throws {
        writes += 1
        let statement = store.objects.putReply
        statement.bind(1, user.rawValue)
        statement.bind(2, device.rawValue)
        statement.bind(3, operation)
        statement.bind(4, ct)
        statement.bindBlob(5, reply.digest)
        statement.bindBlob(6, reply.result)
        try statement.run()
    }

    /// Deletes the replies to a user's devices from before a time (commit clock), the oldest first.
    ///
    /// - Returns: the number of deleted replies, at most `limit`.
    package func forgetObjectReplies(
        before time: Int64,
        limit: Int,
        of user: UserID
    ) throws -> Int {
        guard limit > 0 else { return 0 }
        let statement = store.objects.forgetReplies
        statement.bind(1, user.rawValue)
        statement.bind(2, time)
        statement.bind(3, Int64(limit))
        return try statement.run()
    }
}

/// A hash of the values of a natural key, which may have any length, for the index.
package struct ObjectKey: Hashable, Sendable {
    package let bytes: Bytes

    package init(_ type: EntityType, _ fields: [String: FieldValue]) {
        var hash = SHA256()
        hash.update(data: Array(type.rawValue.utf8) + [0])
        hash.update(data: FieldValue.encoded(fields).array)
        bytes = Bytes(Array(hash.finalize()))
    }
}

extension EntityID {
    /// - Precondition: The id was assigned by the server.
    package var number: Int64 {
        guard case .server(let number) = self else {
            preconditionFailure("a local id leaves its device in operations alone")
        }
        return number
    }
}

// MARK: - Rows

extension StoredObject {
    static func from(
        _ row: any SQLStatement
    ) throws -> (object: StoredObject, place: ObjectPlace) {
        let id = row.int(0)
        let object = StoredObject(
            entity: Entity(
                id: .server(id),
                type: EntityType(row.string(1)),
                parent: row.int(2) == 0 ? nil : .server(row.int(2)),
                version: row.int(3),
                modified: row.int(4),
                createdBy: row.optionalInt(7),
                isDeleted: row.bool(8),
                fields: try FieldValue.decoded(Bytes(row.bytes(9)))
            ),
            device: row.int(5),
            stamps: try row.optionalBytes(10).map { try decodedStamps(Bytes($0)) } ?? [:],
            creator: row.int(6)
        )
        return (object, ObjectPlace(position: row.int(11), id: id))
    }

    /// Encodes each name with version, time and device, in the order of the names.
    fileprivate var encodedStamps: Bytes {
        FieldValue.encoded(
            stamps.mapValues { .list([.int($0.version), .int($0.modified), .int($0.device)]) }
        )
    }

    private static func decodedStamps(_ bytes: Bytes) throws -> [String: Stamp] {
        try FieldValue.decoded(bytes).mapValues { value in
            guard case .list(let parts) = value, parts.count == 3,
                case (.int(let version), .int(let modified), .int(let device)) =
                    (parts[0], parts[1], parts[2])
            else { throw PayloadError(reason: "not a stamp") }
            return Stamp(version: version, modified: modified, device: device)
        }
    }
}
