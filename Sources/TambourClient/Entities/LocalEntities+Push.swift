package import TambourProtocol

/// Sending changes to the server.
extension LocalEntities {
    package struct Push: Hashable, Sendable {
        /// The operations to send; empty when nothing is to be sent.
        package var operations: [EntityOperation]
        /// Row changes to commit before the operations are sent.
        package var rows: [EntityRowChange]
    }

    /// Returns the next batch: first deletions, then creations with parents before children, then
    /// updates.
    ///
    /// After `dropped`, returns the unanswered batch again, under the same `opID`s, because the
    /// server may have received it. One batch is in flight at a time.
    package mutating func nextPush() -> Push {
        guard !awaitsReply else { return Push(operations: [], rows: []) }
        if sent.values.isEmpty { freeze() }
        let batch = frozenBatch()
        awaitsReply = !batch.isEmpty
        return Push(operations: batch.compactMap { operation($0) }, rows: finish())
    }

    /// Records the loss of the connection: no reply will arrive.
    package mutating func dropped() {
        awaitsReply = false
    }

    /// Waits again for the reply to the batch that was in flight when this value was rebuilt.
    package mutating func resume() {
        awaitsReply = !sent.values.isEmpty
    }

    /// Applies the reply to the batch: the results of the operations, in order.
    ///
    /// - Parameter operations: the `opID`s of the answered batch. A reply to a different batch is
    ///   ignored.
    package mutating func pushed(
        _ results: [EntityResult],
        to operations: [Int64]? = nil,
        at now: Int64
    ) throws(LocalEntityError) -> [EntityRowChange] {
        let batch = frozenBatch()
        if let operations, operations != batch.compactMap(\.opID) { return [] }
        guard awaitsReply, results.count == batch.count else { throw .unexpectedReply }
        awaitsReply = false
        for update in batch { sent[update.id] = nil }
        for (update, result) in zip(batch, results) {
            // Entities below a failed creation are already removed.
            if entities[update.id] != nil { settle(update, with: result, at: now) }
        }
        return finish()
    }
}

// MARK: The batch

extension LocalEntities {
    private func frozenBatch() -> [LocalUpdate] {
        sent.values.values
            .compactMap { update -> (position: Int, update: LocalUpdate)? in
                guard case .inFlight(_, let position) = update.state else { return nil }
                return (position, update)
            }
            .sorted { $0.position < $1.position }
            .map(\.update)
    }

    private func operation(_ update: LocalUpdate) -> EntityOperation? {
        guard case .inFlight(let opID, _) = update.state, let row = entities[update.id] else {
            return nil
        }
        return EntityOperation(
            opID: opID,
            kind: update.change.kind,
            id: row.id,
            type: row.type,
            parent: row.parent,
            base: update.change.base?.version ?? 0,
            modified: update.change.modified,
            fields: update.change.fields
        )
    }

    private struct Candidate {
        var update: LocalUpdate
        var parent: EntityID?
        /// The phase of the operation (deletion, creation or update), then the order within that
        /// phase.
        var order: (phase: Int, depth: Int, sequence: Int64)
    }

    private mutating func freeze() {
        var batch: Set<EntityID> = []
        var room = schema.maxPushBytes
        for candidate in candidates() where batch.count < schema.maxOperations {
            var update = candidate.update
            if let parent = candidate.parent, parent.isLocal, !batch.contains(parent) { continue }
            room -= FieldValue.encodedSize(of: update.change.fields)
            // Skipping this update and sending later ones would break the order.
            if room < 0, !batch.isEmpty { break }
            update.state = .inFlight(opID: counters.nextOpID, position: batch.count)
            counters.nextOpID &+= 1
            batch.insert(update.id)
            open[update.id] = nil
            sent[update.id] = update
        }
    }

    /// Returns the updates that can be sent, in order.
    private func candidates() -> [Candidate] {
        var candidates: [Candidate] = []
        for update in open.values.values where update.state == .pending {
            guard let row = entities[update.id], let kind = schema[row.type] else { continue }
            let isBelowDeletion = isBelowDeletion(row)
            // If an ancestor is being deleted, hold this update back. If the deletion succeeds, it
            // voids the update. If it fails, the update is needed again. Only the deletion of a
            // child that the ancestor's deletion does not include must be sent first.
            if isBelowDeletion, kind.cascades || update.change.kind != .delete { continue }
            let depth = schema.depth(of: row.type)
            candidates.append(
                Candidate(
                    update: update,
                    parent: row.parent,
                    order: (
                        update.change.kind.rawValue,
                        isBelowDeletion ? -depth : update.change.kind == .update ? 0 : depth,
                        update.sequence
                    )
                )
            )
        }
        return candidates.sorted { $0.order < $1.order }
    }

    private func isBelowDeletion(_ row: EntityRow) -> Bool {
        guard let parent = row.parent, let above = entities[parent] else { return false }
        return open[parent]?.change.kind == .delete || isBelowDeletion(above)
    }
}

// MARK: The reply

extension LocalEntities {
    private mutating func settle(
        _ update: LocalUpdate,
        with result: EntityResult,
        at now: Int64
    ) {
        let id = update.id
        switch result.first {
        case .applied(let applied):
            accept(update, applied, at: now)
        case .conflict(.superseded, let server):
            if let server { adopt(server) }
            giveWay(update, to: server)
        case .conflict(.duplicate, let server):
            guard let server else { return reopen(update, .pending) }
            adopt(server)
            reopen(update, .conflict(.duplicate(theirs: server)))
        case .conflict(_, let server):
            if let server { adopt(server) } else { markDeleted(id) }
            reopen(update, .conflict(.version))
        case .rejected(let refusal) where refusal.error == .parentDeleted:
            // The server has deleted everything below that parent.
            markDeleted(id)
            reopen(update, .conflict(.parentDeleted))
        case .rejected(let refusal):
            // A later change by the user may have fixed the cause.
            reopen(update, open[id] == nil ? .conflict(.rejected(refusal)) : .pending)
        case .skipped, .replayed:
            reopen(update, .pending)
        }
    }

    private mutating func accept(
        _ update: LocalUpdate,
        _ applied: EntityResult.Applied,
        at now: Int64
    ) {
        guard var row = entities[update.id] else { return }
        let change = update.change
        var copy =
            applied.entity ?? change.applied(to: change.base)
            ?? Entity(
                id: applied.id,
                type: row.type,
                parent: row.parent,
                version: applied.version,
                modified: applied.modified,
                createdBy: change.kind == .create ? update.opID : row.server?.createdBy,
                isDeleted: change.kind == .delete,
                fields: change.fields
            )
        copy.version = applied.version
        copy.modified = applied.modified
        open[row.id]?.change.base = copy
        if change.kind == .create {
            rename(row.id, to: applied.id, at: now)
            row.id = applied.id
        }
        adopt(copy)
        if change.kind == .delete {
            if let next = open[row.id], next.change.kind == .create {
                recreate(row.id, next.change.fields, below: row.parent, at: next.change.modified)
            } else {
                dropBelow(row.id)
            }
        }
        touch(row.id)
    }

    /// Drops a frozen update, because the server has a later write. That write becomes the base of
    /// the open update that follows, if any.
    private mutating func giveWay(_ update: LocalUpdate, to server: Entity?) {
        guard var next = open[update.id] else { return }
        if next.change.kind == .create, let change = try? update.change.followed(by: next.change) {
            next.change = change
        }
        next.change.base = server
        open[update.id] = next
        touch(update.id)
    }

    /// Reopens a frozen update, merged with the open update that follows it.
    mutating func reopen(_ update: LocalUpdate, _ state: LocalUpdate.State) {
        var update = update
        if let next = open[update.id] {
            guard let change = try? update.change.followed(by: next.change) else {
                return forget(update.id)
            }
            update.change = change
        }
        if update.change.kind == .create, var row = entities[update.id], row.server != nil {
            // An earlier pull stored this result, but the server has since lost it.
            row.server = nil
            put(row)
        }
        update.state = state
        open[update.id] = update
        touch(update.id)
    }
}
