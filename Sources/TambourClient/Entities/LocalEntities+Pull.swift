package import TambourProtocol

/// Applying data from the server.
extension LocalEntities {
    /// Applies a page of changes. Pages and replies may arrive in any order; an older copy never
    /// replaces a newer copy.
    ///
    /// - Parameter tombstones: The fields of tombstones are ignored.
    package mutating func pulled(
        _ copies: [Entity],
        tombstones: [Entity] = []
    ) -> [EntityRowChange] {
        for var tombstone in sorted(tombstones).reversed() {
            tombstone.isDeleted = true
            tombstone.fields = [:]
            adopt(tombstone)
        }
        let copies = sorted(copies)
        for copy in copies where entities[copy.id] == nil { adopt(copy) }
        for copy in copies { adopt(copy) }
        return finish()
    }

    /// Applies the list of all live entities of these types. Stored entities that the list lacks
    /// are deleted. The copies in the list replace even stored copies with a higher version. Such
    /// stored copies exist if the server was restored from a backup.
    ///
    /// The list must have been requested after the last reply to a push. Full lists usually omit
    /// series, whose ranges are pulled separately.
    package mutating func pulledAll(
        _ copies: [Entity],
        of types: Set<EntityType>
    ) -> [EntityRowChange] {
        let listed = Set(copies.map(\.id))
        let missing = entities.values.values.filter { row in
            types.contains(row.type) && row.server?.isDeleted == false && !listed.contains(row.id)
        }
        for copy in sorted(missing.compactMap(\.server)).reversed() { markDeleted(copy.id) }
        for copy in sorted(copies) { adopt(copy, inAnyCase: true) }
        reopenUnfounded()
        return finish()
    }

    /// Reopens frozen updates whose base the server no longer has, for example because the server
    /// was restored from a backup. The server has not applied these updates. If the client sent one
    /// again unchanged, the server could apply it merely because the version numbers happen to
    /// match.
    private mutating func reopenUnfounded() {
        guard !awaitsReply else { return }
        for update in sent.values.values where update.change.kind != .create {
            guard let server = entities[update.id]?.server, update.change.isUnfounded(on: server)
            else { continue }
            sent[update.id] = nil
            reopen(update, .pending)
        }
    }

    /// Discards all elements of series, because no full list contains elements. The ranges of the
    /// series are pulled again. Pending elements stay.
    package mutating func evictElements() -> [EntityRowChange] {
        for row in entities.values.values where isIdleElement(row) { remove(row.id) }
        return finish()
    }

    private func isIdleElement(_ row: EntityRow) -> Bool {
        schema[row.type]?.policy == .append && row.server != nil && open[row.id] == nil
            && sent[row.id] == nil
    }

    /// Discards old tombstones and replaced local ids. Also discards the elements of series below a
    /// discarded tombstone, because elements get no tombstones of their own.
    ///
    /// - Parameter time: Unix milliseconds. All pages requested before this time must have arrived.
    ///   No caller may still hold a local id that was replaced before this time.
    package mutating func prune(before time: Int64) -> [EntityRowChange] {
        let tombstones = entities.values.values
            .filter { $0.server.map { $0.isDeleted && $0.modified < time } ?? false }
            .sorted { schema.depth(of: $0.type) > schema.depth(of: $1.type) }
        for row in tombstones where open[row.id] == nil && sent[row.id] == nil {
            for child in sortedChildren(of: row.id) {
                if let element = entities[child], isIdleElement(element) { remove(child) }
            }
            if children[row.id] == nil { remove(row.id) }
        }
        for alias in aliases.values.values where alias.since < time { aliases[alias.local] = nil }
        return finish()
    }

    /// Sorts parents before children.
    private func sorted(_ copies: [Entity]) -> [Entity] {
        copies.sorted {
            (schema.depth(of: $0.type), $0.id) < (schema.depth(of: $1.type), $1.id)
        }
    }
}

extension LocalEntities {
    /// Stores a server's copy if it is newer. Skips types that are unknown to this version of the
    /// app.
    mutating func adopt(_ copy: Entity, inAnyCase: Bool = false) {
        guard !copy.id.isLocal, hasPlace(copy) else { return }
        let known = entities[copy.id] ?? creation(of: copy)
        var row =
            known
            ?? EntityRow(id: copy.id, type: copy.type, parent: copy.parent, uiKey: newUIKey())
        if let server = row.server, !inAnyCase, !isNews(copy, after: server) { return }
        let wasDeleted = row.server?.isDeleted ?? false
        row.server = copy
        put(row)
        touch(row.id)
        settleDuplicates(of: copy)
        if wasDeleted != copy.isDeleted {
            for child in sortedChildren(of: row.id) {
                if !copy.isDeleted { unblock(child) }
                touch(child)
            }
        }
    }

    /// Returns whether the type is known and fits the types of the parent and the children. The
    /// types form a tree, so no entity can become its own ancestor.
    private func hasPlace(_ copy: Entity) -> Bool {
        guard let kind = schema[copy.type], (copy.parent == nil) == (kind.parent == nil),
            copy.parent != copy.id
        else { return false }
        if let parent = copy.parent, let above = entities[parent], above.type != kind.parent {
            return false
        }
        return children[copy.id, default: []].allSatisfy { child in
            entities[child].map { schema[$0.type]?.parent == copy.type } ?? true
        }
    }

    private func isNews(_ copy: Entity, after known: Entity) -> Bool {
        // A tombstone from the server has a version of its own; an inferred tombstone repeats the
        // last version.
        let isBack = known.isDeleted && !copy.isDeleted
        // A version has one time, unless the server lost the version and assigned the number again.
        let isOther = copy.modified != known.modified || isBack
        return copy.version > known.version || (copy.version == known.version && isOther)
    }

    /// Returns the row of an entity created on this device, if the server's copy arrives before the
    /// reply to the creation. Until that reply, the row keeps its local id. The reply also contains
    /// the ids of the children.
    private func creation(of copy: Entity) -> EntityRow? {
        guard let opID = copy.createdBy else { return nil }
        let update = sent.values.values.first { $0.opID == opID && $0.change.kind == .create }
        return update.flatMap { entities[$0.id] }
    }

    /// Marks an entity as deleted when the server no longer has it and sends no tombstone.
    mutating func markDeleted(_ id: EntityID) {
        guard var copy = entities[id]?.server, !copy.isDeleted else { return }
        copy.isDeleted = true
        copy.fields = [:]
        adopt(copy, inAnyCase: true)
    }

    /// Makes an entity's update `pending` again if the update waited because the parent was
    /// deleted.
    mutating func unblock(_ id: EntityID) {
        guard var update = open[id], update.cause == .parentDeleted else { return }
        update.state = .pending
        open[id] = update
    }

    /// Updates the conflicts of creations that have the same natural key as this entity. If this
    /// entity is deleted, the creations can be sent again.
    ///
    /// Call this only with a copy that has just arrived. A stored copy may be older than the reply
    /// that reported the conflict.
    private mutating func settleDuplicates(of copy: Entity) {
        for var update in open.values.values {
            guard case .duplicate(let theirs) = update.cause, theirs.id == copy.id else { continue }
            update.state = copy.isDeleted ? .pending : .conflict(.duplicate(theirs: copy))
            open[update.id] = update
        }
    }
}
