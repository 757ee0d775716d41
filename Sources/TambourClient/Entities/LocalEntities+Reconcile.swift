import TambourProtocol

/// Reconciling an open change with the server's current copy.
extension LocalEntities {
    private enum Verdict {
        /// The change stays as it is.
        case stays
        /// There is nothing left to send.
        case done
        /// Send the change, and let the server decide.
        case pending
        case rebased(on: Entity)
        case conflict(LocalUpdate.Cause)
    }

    mutating func reconcile(_ id: EntityID) {
        // While an earlier update is frozen, wait: the reply to that update determines the base of
        // the open update.
        guard let row = entities[id], sent[id] == nil, var update = open[id] else { return }
        switch verdict(on: update, of: row) {
        case .stays: return
        case .done:
            open[id] = nil
            if update.change.kind == .delete { dropBelow(id) }
            return
        case .pending:
            update.state = .pending
            // The server has no version that matches the copy that the user saw. With version 0,
            // the server cannot mistake this base for one of its own versions.
            if let server = row.server, update.change.isUnfounded(on: server) {
                update.change.base?.version = 0
            }
        case .rebased(let base):
            update.change.base = base
            update.state = .pending
        case .conflict(let cause): update.state = .conflict(cause)
        }
        open[id] = update
    }

    private func verdict(on update: LocalUpdate, of row: EntityRow) -> Verdict {
        if case .rejected = update.cause { return .stays }
        guard let kind = schema[row.type] else { return .stays }
        switch (update.change.kind, row.server) {
        case (.create, _):
            return isGone(row.parent) ? .conflict(.parentDeleted) : .stays
        case (.update, let server?) where server.isDeleted:
            if update.cause == .parentDeleted { return .stays }
            if isGone(row.parent) { return .conflict(.parentDeleted) }
            return kind.deletion == .deleteWins ? .conflict(.version) : .stays
        case (.update, let server?):
            return verdict(onUpdate: update, of: kind, over: server)
        case (.delete, let server?):
            if server.isDeleted { return .done }
            guard isNews(server, to: update.change) else { return .stays }
            return kind.policy.contest == .cas ? .conflict(.version) : .pending
        case (.update, nil), (.delete, nil):
            return .stays
        }
    }

    private func verdict(
        onUpdate update: LocalUpdate,
        of kind: EntitySchema.Kind,
        over server: Entity
    ) -> Verdict {
        guard isNews(server, to: update.change) else { return .stays }
        if update.change.isContained(in: server) { return .done }
        if update.cause == .version { return .stays }
        if case .merge = kind.policy, !update.change.collides(with: server) {
            return .rebased(on: server)
        }
        return kind.policy.contest == .cas ? .conflict(.version) : .pending
    }

    /// Whether the server's copy differs from the copy that the user saw.
    private func isNews(_ server: Entity, to change: EntityChange) -> Bool {
        server.version != change.base?.version || server.modified != change.base?.modified
    }

    private func isGone(_ id: EntityID?) -> Bool {
        id.flatMap { entities[$0]?.server?.isDeleted } ?? false
    }
}

extension LocalEntities {
    /// Handles a confirmed deletion. Below the entity, drops the user's changes and the entities
    /// that exist only on this device.
    mutating func dropBelow(_ id: EntityID) {
        for child in sortedChildren(of: id) {
            dropBelow(child)
            open[child] = nil
            if entities[child]?.server == nil, sent[child] == nil { remove(child) }
        }
    }

    /// Drops an entity that exists only here.
    mutating func forget(_ id: EntityID) {
        dropBelow(id)
        open[id] = nil
        remove(id)
    }

    /// Replaces an entity's local id everywhere by the id that the server assigned. If another
    /// entity already has this id (the twin of a duplicate), merges the two entities.
    mutating func rename(_ local: EntityID, to id: EntityID, at now: Int64) {
        guard var row = entities[local], local.isLocal, !id.isLocal else { return }
        let orphans = sortedChildren(of: local)
        remove(local)
        row.id = id
        row.server = entities[id]?.server ?? row.server
        put(row)
        for child in orphans {
            guard var row = entities[child] else { continue }
            row.parent = id
            put(row)
            touch(child)
        }
        if var update = open[local] {
            open[local] = nil
            update.id = id
            open[id] = update
        }
        aliases[local] = EntityAlias(local: local, server: id, since: now)
        touch(id)
    }

    /// Creates a deleted entity again under a new id. The entity keeps its place on the screen. Its
    /// children that exist only on this device stay below it.
    mutating func recreate(
        _ id: EntityID,
        _ fields: [String: FieldValue],
        below parent: EntityID?,
        at now: Int64
    ) {
        guard var old = entities[id] else { return }
        let new = newLocalID()
        put(EntityRow(id: new, type: old.type, parent: parent, uiKey: old.uiKey))
        old.uiKey = newUIKey()
        put(old)
        open[id] = nil
        openUpdate(.init(kind: .create, fields: fields, modified: now), on: new)
        for child in sortedChildren(of: id) {
            // The parent of a creation in flight must not change.
            guard var row = entities[child], row.server == nil, sent[child] == nil else { continue }
            row.parent = new
            put(row)
            unblock(child)
            touch(child)
        }
    }
}
