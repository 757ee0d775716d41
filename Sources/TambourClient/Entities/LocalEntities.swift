package import TambourProtocol

/// The entities of one account on one device, edited offline and synchronised with the server.
///
/// A value without I/O. Every mutating call returns the changed rows, for one database transaction.
/// A value rebuilt from the rows continues where the previous value stopped, and sends the batch in
/// flight again.
///
/// A change starts as `open` (pending). `nextPush` freezes it into `sent`, and `pushed` applies the
/// server's verdict. Changes that the user makes in between become the next open change. A conflict
/// is an open change that waits for `resolve`.
package struct LocalEntities: Sendable {
    package let schema: EntitySchema
    /// Whether this connection has sent a batch that has no reply yet.
    package internal(set) var awaitsReply = false

    var entities: Journal<EntityID, EntityRow>
    /// Frozen updates, all of the same batch.
    var sent: Journal<EntityID, LocalUpdate>
    /// Pending updates and conflicts. While an earlier update of the same entity is frozen, the
    /// base of the open update is the expected result of the frozen update.
    var open: Journal<EntityID, LocalUpdate>
    var aliases: Journal<EntityID, EntityAlias>
    var counters: EntityCounters
    private var storedCounters: EntityCounters
    /// The children of each entity; the key nil holds top-level entities.
    private(set) var children: [EntityID?: Set<EntityID>] = [:]
    /// Entities whose open update must be compared again with the server's copy.
    private var unsettled: Set<EntityID> = []

    package init(schema: EntitySchema, rows: EntityRows) {
        self.schema = schema
        let known = Self.sound(rows.entities, schema)
        entities = Journal(known)
        var sent: [EntityID: LocalUpdate] = [:]
        var open: [EntityID: LocalUpdate] = [:]
        for update in rows.updates where known[update.id] != nil {
            switch update.slot {
            case .sent: sent[update.id] = update
            case .open: open[update.id] = update
            }
        }
        self.sent = Journal(sent)
        self.open = Journal(open)
        aliases = Journal(Dictionary(rows.aliases.map { ($0.local, $0) }) { $1 })
        counters = rows.counters
        storedCounters = rows.counters
        for row in known.values { children[row.parent, default: []].insert(row.id) }
    }

    /// Returns the rows by id. Omits corrupt rows: rows that repeat the id of an earlier row, and
    /// rows whose parent has the wrong type. (Every cycle contains such a row.) Also omits rows of
    /// types that are unknown to this version of the app. These rows stay in the file.
    private static func sound(
        _ rows: [EntityRow],
        _ schema: EntitySchema
    ) -> [EntityID: EntityRow] {
        let all = Dictionary(rows.map { ($0.id, $0) }) { first, _ in first }
        return all.filter { _, row in
            guard let kind = schema[row.type], (row.parent == nil) == (kind.parent == nil) else {
                return false
            }
            return row.parent.flatMap { all[$0] }.map { $0.type == kind.parent } ?? true
        }
    }

    /// All rows. A database that has applied every change contains the same rows.
    package var rows: EntityRows {
        EntityRows(
            entities: entities.values.values.sorted { $0.id < $1.id },
            updates: sent.values.values.sorted { $0.id < $1.id }
                + open.values.values.sorted { $0.id < $1.id },
            aliases: aliases.values.values.sorted { $0.local < $1.local },
            counters: counters
        )
    }
}

// MARK: Reading

extension LocalEntities {
    /// Returns the entity with the user's changes; nil if the entity or one of its ancestors is
    /// deleted or unknown.
    ///
    /// - Parameter id: May be a local id that the server has replaced.
    package func entity(_ id: EntityID) -> LocalEntity? {
        guard let row = entities[current(id)], let entity = content(of: row), isShown(row.parent)
        else { return nil }
        let isPending = sent[row.id] != nil || open[row.id] != nil
        return LocalEntity(
            uiKey: row.uiKey,
            entity: entity,
            state: open[row.id]?.cause != nil ? .conflict : isPending ? .pending : .synced
        )
    }

    /// Returns the entities directly below the parent, or the top-level entities for nil, in the
    /// order in which this device received them.
    package func entities(below parent: EntityID?) -> [LocalEntity] {
        children[parent.map(current), default: []]
            .compactMap { entity($0) }
            .sorted { $0.uiKey < $1.uiKey }
    }

    /// The conflicts that wait for the user's choice, oldest change first.
    package var conflicts: [Conflict] {
        open.values.values.filter { $0.cause != nil }
            .sorted { $0.sequence < $1.sequence }
            .compactMap { conflict($0.id) }
    }

    /// The number of changes that are queued or in flight, without conflicts.
    package var pendingCount: Int {
        sent.values.count + open.values.values.filter { $0.cause == nil }.count
    }

    package func conflict(_ id: EntityID) -> Conflict? {
        guard let update = open[current(id)], let cause = update.cause,
            let row = entities[update.id], let kind = schema[row.type]
        else { return nil }
        var theirs = row.server
        let conflictKind: Conflict.Kind
        var choices: Set<EntityChoice> = [.mine, .theirs]
        switch cause {
        case .version where update.change.kind == .delete:
            conflictKind = .deleteUpdate
        case .version where theirs?.isDeleted ?? true:
            conflictKind = .updateDelete
        case .version:
            conflictKind = .updateUpdate
            // Two entities cannot have the same natural key.
            if kind.naturalKey.isEmpty { choices.insert(.both) }
        case .duplicate(let twin):
            conflictKind = .duplicate
            theirs = twin
            if kind.policy == .append { choices.remove(.mine) }
        case .parentDeleted:
            conflictKind = .parentDeleted
        case .rejected(let refusal):
            conflictKind = .rejected(error: refusal.error.name.description, path: refusal.path)
        }
        return Conflict(
            id: row.id,
            type: row.type,
            kind: conflictKind,
            mine: update.change,
            theirs: theirs,
            choices: choices
        )
    }

    /// Returns the current id of an entity.
    package func current(_ id: EntityID) -> EntityID {
        aliases[id]?.server ?? id
    }

    func isShown(_ id: EntityID?) -> Bool {
        guard let id else { return true }
        guard let row = entities[id], content(of: row) != nil else { return false }
        return isShown(row.parent)
    }

    /// Returns the entity with the user's changes, regardless of its parent; nil if the entity is
    /// deleted.
    func content(of row: EntityRow) -> Entity? {
        var entity = row.server.flatMap { $0.isDeleted ? nil : $0 }
        for update in [sent[row.id], open[row.id]] {
            guard let update else { continue }
            switch update.change.kind {
            case .create:
                entity = Entity(
                    id: row.id,
                    type: row.type,
                    parent: row.parent,
                    version: row.server?.version ?? 0,
                    modified: update.change.modified,
                    fields: update.change.fields
                )
            case .update:
                // In a conflict, users see their own version, without newer values from the server.
                let ground = update.cause == nil ? entity ?? update.change.base : update.change.base
                entity = update.change.applied(to: ground)
            case .delete:
                entity = nil
            }
        }
        entity?.id = row.id
        entity?.parent = row.parent
        return entity
    }
}

// MARK: Rows

extension LocalEntities {
    func sortedChildren(of id: EntityID) -> [EntityID] {
        children[id, default: []].sorted()
    }

    mutating func put(_ row: EntityRow) {
        remove(row.id)
        entities[row.id] = row
        children[row.parent, default: []].insert(row.id)
    }

    mutating func remove(_ id: EntityID) {
        guard let row = entities[id] else { return }
        entities[id] = nil
        children[row.parent]?.remove(id)
        if children[row.parent]?.isEmpty ?? false { children[row.parent] = nil }
    }

    mutating func newLocalID() -> EntityID {
        defer { counters.nextLocalID += 1 }
        return .local(counters.nextLocalID)
    }

    mutating func newUIKey() -> Int64 {
        defer { counters.nextUIKey += 1 }
        return counters.nextUIKey
    }

    mutating func newSequence() -> Int64 {
        defer { counters.nextSequence += 1 }
        return counters.nextSequence
    }

    /// Marks an entity whose open update must be compared with the server's copy.
    mutating func touch(_ id: EntityID) {
        unsettled.insert(id)
    }

    /// Ends a mutating call: reconciles the touched entities, and returns the changed rows.
    mutating func finish() -> [EntityRowChange] {
        while !unsettled.isEmpty {
            let ids = unsettled.sorted()
            unsettled = []
            for id in ids { reconcile(id) }
        }
        var changes: [EntityRowChange] = []
        entities.drain { id, row in
            changes.append(row.map { .putEntity($0) } ?? .removeEntity(id))
        }
        sent.drain { id, update in
            changes.append(update.map { .putUpdate($0) } ?? .removeUpdate(id, .sent))
        }
        open.drain { id, update in
            changes.append(update.map { .putUpdate($0) } ?? .removeUpdate(id, .open))
        }
        aliases.drain { id, alias in
            changes.append(alias.map { .putAlias($0) } ?? .removeAlias(id))
        }
        if counters != storedCounters {
            storedCounters = counters
            changes.append(.putCounters(counters))
        }
        return changes
    }
}
