import Crypto
package import TambourEvents
package import TambourProtocol
import TambourSQL

/// The numbers of a user's entities and replies, and the newest entity id.
package struct EntityCounts: Equatable, Sendable {
    /// The number of live entities. Elements of series do not count.
    package var live: Int64 = 0
    package var elements: Int64 = 0
    package var lastID: Int64 = 0
    /// The number of stored replies. They are kept for devices that lost the original reply.
    package var replies: Int64 = 0
}

/// The place of an entity in the order of pages. A page starts after the place of the last entity
/// on the previous page.
package struct EntityPlace: Equatable, Sendable {
    /// The commit clock of the entity's last change. For an element of a series, its position in
    /// the series.
    package let position: Int64
    package let id: Int64

    package init(position: Int64, id: Int64) {
        self.position = position
        self.id = id
    }
}

/// The stored reply to an operation of a device.
package struct EntityReply: Equatable, Sendable {
    /// SHA-256 of the operation.
    package let digest: Bytes
    /// The MessagePack of an `ObjectResult`.
    package let result: Bytes

    package init(digest: Bytes, result: Bytes) {
        self.digest = digest
        self.result = result
    }
}

enum EntityColumn: Int, SQLColumn {
    case id, type, parent, version, modified, device, creator, createdBy, deleted, content, stamps
    /// The entity's place in a page's order.
    case place

    var sql: String {
        switch self {
        case .place: "CASE WHEN position IS NULL THEN ct ELSE position END"
        default: snakeCase
        }
    }
}

enum EntityTombstoneColumn: Int, SQLColumn {
    case id, version, modified, createdBy
}

enum EntityCountColumn: Int, SQLColumn {
    case live, elements, lastID, replies
}

enum EntityReplyColumn: Int, SQLColumn {
    case digest, result
}

struct EntityStatements {
    let byID: SQLQuery<EntityColumn>
    let byCreation: SQLQuery<EntityColumn>
    let twin: SQLQuery<EntityColumn>
    let hasChild: any SQLStatement
    let changed: SQLQuery<EntityColumn>
    let live: SQLQuery<EntityColumn>
    let elements: SQLQuery<EntityColumn>
    let put: any SQLStatement
    let deleteChildren: SQLQuery<EntityTombstoneColumn>
    let deleteElements: any SQLStatement
    let counts: SQLQuery<EntityCountColumn>
    let setCounts: any SQLStatement
    let reply: SQLQuery<EntityReplyColumn>
    let putReply: any SQLStatement
    let forgetReplies: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let select = "SELECT \(EntityColumn.list) FROM object WHERE user_id = $1"
        byID = try sql.query("\(select) AND id = $2")
        byCreation = try sql.query("\(select) AND creator = $2 AND created_by = $3")
        // SQLite assumes that a user has ten entities. With `=`, it would read all entities of the
        // user; with the range `BETWEEN $3 AND $3`, it uses the index.
        twin = try sql.query(
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
        changed = try sql.query("\(select) AND ct >= $2 AND \(behind) \(rest)")
        live = try sql.query("\(select) AND ct >= $2 AND \(behind) AND deleted = 0 \(rest)")
        elements = try sql.query(
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
        // Follows the rules of `EntityRules.cascade` without reading the entities' contents. The
        // order starts with `type`, and `type` is compared by `BETWEEN`. With `ORDER BY id` alone,
        // or with `type = $3`, SQLite would read all entities of the user.
        deleteChildren = try sql.query(
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
            RETURNING \(EntityTombstoneColumn.list)
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
        counts = try sql.query(
            "SELECT \(EntityCountColumn.list) FROM object_count WHERE user_id = $1"
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
        reply = try sql.query(
            """
            SELECT \(EntityReplyColumn.list) FROM object_reply
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
    /// Returns an entity of a user, or its tombstone.
    package func entity(_ id: Int64, of user: UserID) throws -> StoredEntity? {
        try store.entities.byID.one {
            $0.bind(1, user.rawValue)
            $0.bind(2, id)
        } read: {
            try StoredEntity.from($0).stored
        }
    }

    /// Returns the entity that an operation of a device created.
    package func entity(
        createdBy operation: Int64,
        on device: DeviceID,
        of user: UserID
    ) throws -> StoredEntity? {
        try store.entities.byCreation.one {
            $0.bind(1, user.rawValue)
            $0.bind(2, device.rawValue)
            $0.bind(3, operation)
        } read: {
            try StoredEntity.from($0).stored
        }
    }

    /// Returns the live entity other than `id` that has this parent and this natural key; nil if
    /// there is none.
    package func entity(
        below parent: Int64?,
        withKey key: EntityKey,
        but id: Int64?,
        of user: UserID
    ) throws -> StoredEntity? {
        try store.entities.twin.one {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent ?? 0)
            $0.bindBlob(3, key.bytes)
            $0.bind(4, id ?? 0)
        } read: {
            try StoredEntity.from($0).stored
        }
    }

    package func hasEntity(
        of type: EntityType,
        below parent: Int64,
        of user: UserID
    ) throws -> Bool {
        try store.entities.hasChild.hasRow {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent)
            $0.bindWords(3, type.rawValue)
        }
    }

    /// Returns the entities that changed after a place, the oldest change first. Omits elements of
    /// series.
    ///
    /// - Parameters:
    ///   - isLive: omits deleted entities.
    ///   - room: the maximum size of the entities on the wire, in bytes.
    package func entities(
        changedAfter place: EntityPlace,
        isLive: Bool,
        of user: UserID,
        limit: Int,
        room: Int
    ) throws -> EntityPage {
        let query = isLive ? store.entities.live : store.entities.changed
        return try page(query, limit: limit, room: room) {
            $0.bind(1, user.rawValue)
            $0.bind(2, place.position)
            $0.bind(3, place.id)
            $0.bind(4, limit + 1)
        }
    }

    /// Returns the elements of a series after `place` and up to a position, in the order of the
    /// series.
    ///
    /// - Parameter room: the maximum size of the elements on the wire, in bytes.
    package func elements(
        of type: EntityType,
        below parent: Int64,
        after place: EntityPlace,
        upTo end: Int64,
        of user: UserID,
        limit: Int,
        room: Int
    ) throws -> EntityPage {
        try page(store.entities.elements, limit: limit, room: room) {
            $0.bind(1, user.rawValue)
            $0.bind(2, parent)
            $0.bindWords(3, type.rawValue)
            $0.bind(4, place.position)
            $0.bind(5, place.id)
            $0.bind(6, end)
            $0.bind(7, limit + 1)
        }
    }

    package func entityCounts(of user: UserID) throws -> EntityCounts {
        try store.entities.counts.one {
            $0.bind(1, user.rawValue)
        } read: { row in
            // The server computes the next entity's id from this id.
            guard StoreCheck.messages.contains(row.int(.lastID)) else {
                throw ImpossibleRow("object_count \(user): last_id", row.int(.lastID))
            }
            return EntityCounts(
                live: row.int(.live),
                elements: row.int(.elements),
                lastID: row.int(.lastID),
                replies: row.int(.replies)
            )
        } ?? EntityCounts()
    }

    /// Returns the stored reply to an operation of a device; nil if the operation is new or its
    /// reply has been deleted.
    package func entityReply(
        to operation: Int64,
        of device: DeviceID,
        of user: UserID
    ) throws -> EntityReply? {
        try store.entities.reply.one {
            $0.bind(1, user.rawValue)
            $0.bind(2, device.rawValue)
            $0.bind(3, operation)
        } read: {
            EntityReply(digest: Bytes($0.bytes(.digest)), result: Bytes($0.bytes(.result)))
        }
    }

    /// Returns a page of a user's live entities for an export. The page includes elements of
    /// series. It starts after `id` and is in the order of the ids.
    package func allEntities(
        of user: UserID,
        after id: Int64,
        limit: Int
    ) throws -> [StoredEntity] {
        try select(
            EntityColumn.self,
            "FROM object WHERE user_id = $1 AND id > $2 AND deleted = 0 ORDER BY id LIMIT $3",
            user.rawValue,
            id,
            Int64(limit)
        ) { try StoredEntity.from($0).stored }
    }
}

extension WriteTransaction {
    /// Stores an entity, which replaces its previous version.
    ///
    /// - Parameters:
    ///   - key: the natural key; nil for a type without a natural key.
    ///   - position: the position in the series; nil if the entity is not an element of a series.
    package func putEntity(
        _ stored: StoredEntity,
        key: EntityKey?,
        position: Int64?,
        of user: UserID
    ) throws {
        writes += 1
        let entity = stored.entity
        try store.entities.put.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, entity.id.number)
            $0.bindWords(3, entity.type.rawValue)
            $0.bind(4, entity.parent?.number ?? 0)
            $0.bind(5, entity.version)
            $0.bind(6, entity.modified)
            $0.bind(7, stored.device)
            $0.bind(8, stored.creator)
            $0.bind(9, entity.createdBy)
            $0.bind(10, entity.isDeleted)
            $0.bindBlob(11, FieldValue.encoded(entity.fields))
            $0.bindBlob(12, stored.stamps.isEmpty ? nil : stored.encodedStamps)
            $0.bindBlob(13, key?.bytes)
            $0.bind(14, position)
            $0.bind(15, ct)
        }
    }

    package func setEntityCounts(_ counts: EntityCounts, of user: UserID) throws {
        writes += 1
        try store.entities.setCounts.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, counts.live)
            $0.bind(3, counts.elements)
            $0.bind(4, counts.lastID)
            $0.bind(5, counts.replies)
        }
    }

    package func putEntityReply(
        _ reply: EntityReply,
        to operation: Int64,
        of device: DeviceID,
        of user: UserID
    ) throws {
        writes += 1
        try store.entities.putReply.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, device.rawValue)
            $0.bind(3, operation)
            $0.bind(4, ct)
            $0.bindBlob(5, reply.digest)
            $0.bindBlob(6, reply.result)
        }
    }

    /// Deletes the replies to a user's devices that were stored before `time` (commit clock). The
    /// oldest replies are deleted first.
    ///
    /// - Returns: the number of deleted replies, at most `limit`.
    package func forgetEntityReplies(
        before time: Int64,
        limit: Int,
        of user: UserID
    ) throws -> Int {
        guard limit > 0 else { return 0 }
        return try store.entities.forgetReplies.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
            $0.bind(3, Int64(limit))
        }
    }
}

/// A hash of the values of a natural key. The index contains the hash instead of the values,
/// because values may have any length.
package struct EntityKey: Hashable, Sendable {
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

extension StoredEntity {
    static func from(
        _ row: SQLRow<EntityColumn>
    ) throws -> (stored: StoredEntity, place: EntityPlace) {
        let id = row.int(.id)
        let stored = StoredEntity(
            entity: Entity(
                id: .server(id),
                type: EntityType(row.string(.type)),
                parent: row.nonZero(.parent).map { .server($0) },
                version: row.int(.version),
                modified: row.int(.modified),
                createdBy: row.optionalInt(.createdBy),
                isDeleted: row.bool(.deleted),
                fields: try FieldValue.decoded(Bytes(row.bytes(.content)))
            ),
            device: row.int(.device),
            stamps: try row.optionalBytes(.stamps).map { try decodedStamps(Bytes($0)) } ?? [:],
            creator: row.int(.creator)
        )
        return (stored, EntityPlace(position: row.int(.place), id: id))
    }

    /// The stamps as MessagePack. They form a map from the name of a field to a version, a time and
    /// a device, sorted by the names.
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
