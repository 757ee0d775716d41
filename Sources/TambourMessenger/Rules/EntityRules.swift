package import TambourProtocol
package import TambourStore

/// Decides about one change that a device makes to an entity. The device may have made the change
/// offline, and long ago.
///
/// For each operation in turn, the caller reads the situation, asks for the decision, and applies
/// it in the same transaction.
package struct EntityRules: Sendable {
    package let schema: EntitySchema

    package init(schema: EntitySchema) {
        self.schema = schema
    }

    /// The state of the store and the session at the time of the decision.
    package struct Situation: Sendable {
        /// The entity that the operation names, or its tombstone.
        package var current: StoredEntity?
        /// The state of the parent of `current`. If `current` is nil, the state of the parent that
        /// the operation names.
        package var parent: ParentState
        /// Another live entity that has the same parent and the same natural key as the operation's
        /// entity.
        package var twin: Entity?
        /// Whether the entity has a live child that a deletion of the entity would not delete.
        package var hasRemainingChildren: Bool
        /// Whether `current` is a tombstone whose children are still being deleted.
        package var isPurging: Bool
        /// Whether the user may have another entity of this kind.
        package var hasRoom: Bool
        /// The first result of this `opID`, if the operation is a retry. It comes from the stored
        /// replies. For a creation, it may also come from the created entity.
        package var known: EntityResult?
        package var device: Int64
        /// The id that a new entity gets.
        package var newID: Int64
        /// The current time by the server's clock, in Unix milliseconds.
        package var now: Int64
        /// The current time by the device's clock, in Unix milliseconds.
        package var clientNow: Int64

        package init(
            current: StoredEntity? = nil,
            parent: ParentState,
            twin: Entity? = nil,
            hasRemainingChildren: Bool = false,
            isPurging: Bool = false,
            hasRoom: Bool = true,
            known: EntityResult? = nil,
            device: Int64,
            newID: Int64,
            now: Int64,
            clientNow: Int64
        ) {
            self.current = current
            self.parent = parent
            self.twin = twin
            self.hasRemainingChildren = hasRemainingChildren
            self.isPurging = isPurging
            self.hasRoom = hasRoom
            self.known = known
            self.device = device
            self.newID = newID
            self.now = now
            self.clientNow = clientNow
        }
    }

    package enum ParentState: Hashable, Sendable {
        /// The entity has no parent.
        case none
        case live(EntityType)
        /// The parent is deleted or never existed. The store cannot distinguish the two cases,
        /// because it does not keep tombstones for ever.
        case gone
    }

    /// Decides about an operation. `EntityBatch` has already replaced its local ids.
    package func decide(
        _ operation: EntityOperation,
        in situation: Situation
    ) -> EntityDecision {
        if let known = situation.known {
            return .replayed(known.first)
        }
        guard let kind = schema[operation.type] else { return .rejected(.unknownType, at: "/type") }
        if let current = situation.current, current.entity.type != operation.type {
            return .rejected(.wrongType, at: "/type")
        }
        return switch operation.kind {
        case .create: create(operation, of: kind, in: situation)
        case .update: update(operation, of: kind, in: situation)
        case .delete: delete(operation, of: kind, in: situation)
        }
    }

    /// Returns the tombstone of a descendant of a deleted entity.
    package func cascade(_ deleted: StoredEntity, to descendant: StoredEntity) -> StoredEntity {
        var stamp = deleted.stamp
        stamp.version = descendant.entity.version + 1
        return tombstone(of: descendant, stamp)
    }

    /// Returns the time of a change by the server's clock. It subtracts the age of the change from
    /// the server's time. The result is never in the future.
    ///
    /// The age is the difference of two times by the device's clock. It is right even if this clock
    /// is wrong. A wrong clock therefore does not decide which device wins a conflict.
    package static func honestTime(of modified: Int64, clientNow: Int64, now: Int64) -> Int64 {
        let (age, overflows) = clientNow.subtractingReportingOverflow(modified)
        if overflows { return clientNow < modified ? now : 0 }
        return age <= 0 ? now : max(0, now - age)
    }

    // MARK: The decision matrix

    private func create(
        _ operation: EntityOperation,
        of kind: EntitySchema.Kind,
        in situation: Situation
    ) -> EntityDecision {
        switch (kind.parent, situation.parent) {
        case (nil, .none): break
        case (let needed?, .live(let type)) where type == needed: break
        case (.some, .gone): return .rejected(.parentDeleted, at: "/parent")
        default: return .rejected(.wrongParent, at: "/parent")
        }
        let fields = [:].patched(with: operation.fields)
        if let flaw = kind.flaw(in: fields) ?? kind.flaw(inWhole: fields) { return .rejected(flaw) }
        if let twin = situation.twin { return .conflict(.duplicate, server: twin) }
        guard situation.hasRoom else { return .rejected(.tooMany, at: "/type") }
        let stored = StoredEntity(
            entity: Entity(
                id: .server(situation.newID),
                type: kind.type,
                parent: operation.parent,
                version: 1,
                modified: situation.honestTime(of: operation),
                createdBy: operation.opID,
                fields: fields
            ),
            device: situation.device,
            creator: situation.device
        )
        return .apply(stored, .init(of: stored))
    }

    private func update(
        _ operation: EntityOperation,
        of kind: EntitySchema.Kind,
        in situation: Situation
    ) -> EntityDecision {
        guard kind.policy != .append else { return .rejected(.appendOnly, at: "/op") }
        // If both the entity and its parent are deleted, report the parent. The user must decide
        // about it first.
        if situation.current?.entity.isDeleted ?? true, situation.parent == .gone {
            return .rejected(.parentDeleted, at: "/parent")
        }
        guard let current = situation.current else {
            return .conflict(.updateDelete, server: nil)
        }
        if current.entity.isDeleted {
            return undelete(current, by: operation, of: kind, in: situation)
        }
        if let flaw = kind.flaw(in: operation.fields, on: current.entity.fields) {
            return .rejected(flaw)
        }
        let stamp = situation.stamp(of: operation, after: current)
        if operation.base == current.entity.version {
            let stored = updated(current, with: operation.fields, stamp)
            if let flaw = kind.flaw(inWhole: stored.entity.fields) { return .rejected(flaw) }
            return .apply(stored, .init(of: stored))
        }
        guard let fields = accepted(operation, on: current, of: kind, stamp) else {
            return .conflict(
                kind.policy.contest == .lww ? .superseded : .updateUpdate,
                server: current.copy
            )
        }
        let stored = updated(current, with: fields, stamp)
        if let flaw = kind.flaw(inWhole: stored.entity.fields) { return .rejected(flaw) }
        var applied = EntityResult.Applied(of: stored)
        applied.entity = stored.copy
        applied.loser = hasLoser(fields, operation, current, kind) ? current.copy : nil
        return .apply(stored, applied)
    }

    /// Decides about an update of a deleted entity.
    private func undelete(
        _ current: StoredEntity,
        by operation: EntityOperation,
        of kind: EntitySchema.Kind,
        in situation: Situation
    ) -> EntityDecision {
        let conflict = EntityDecision.conflict(.updateDelete, server: current.copy)
        // If another entity has the natural key in the meantime, the entity cannot be restored.
        guard kind.deletion == .updateWins, situation.twin == nil else { return conflict }
        // Do not restore the entity during its purge, which would also delete new children. The
        // device retries the update later.
        guard !situation.isPurging else { return .skipped(because: operation.opID) }
        guard situation.hasRoom else { return .rejected(.tooMany, at: "/type") }
        if let flaw = kind.flaw(in: operation.fields, on: current.entity.fields) {
            return .rejected(flaw)
        }
        let stamp = situation.stamp(of: operation, after: current)
        var fields = operation.fields
        // The update wins over the deletion. But before the deletion, there may have been another
        // update that the device had not seen.
        if operation.base != current.entity.version - 1, kind.policy != .lww {
            guard let accepted = accepted(operation, on: current, of: kind, stamp) else {
                return conflict
            }
            fields = accepted
        }
        var stored = updated(current, with: fields, stamp)
        stored.entity.isDeleted = false
        if let flaw = kind.flaw(inWhole: stored.entity.fields) { return .rejected(flaw) }
        var applied = EntityResult.Applied(of: stored)
        applied.entity = stored.copy
        return .apply(stored, applied)
    }

    private func delete(
        _ operation: EntityOperation,
        of kind: EntitySchema.Kind,
        in situation: Situation
    ) -> EntityDecision {
        guard kind.policy != .append else { return .rejected(.appendOnly, at: "/op") }
        guard let current = situation.current, !current.entity.isDeleted else {
            let tombstone = situation.current?.entity
            return .replayed(
                .applied(
                    .init(
                        id: operation.id,
                        version: tombstone?.version ?? operation.base,
                        modified: tombstone?.modified ?? situation.honestTime(of: operation)
                    )
                )
            )
        }
        if situation.hasRemainingChildren { return .rejected(.childrenRemain, at: "/id") }
        let stamp = situation.stamp(of: operation, after: current)
        var loser: Entity?
        if operation.base != current.entity.version {
            switch kind.policy.contest {
            case .cas: return .conflict(.deleteUpdate, server: current.copy)
            case .lww:
                guard stamp.wins(over: current.stamp) else {
                    return .conflict(.superseded, server: current.copy)
                }
                loser = current.copy
            }
        }
        let stored = tombstone(of: current, stamp)
        var applied = EntityResult.Applied(of: stored)
        applied.loser = loser
        return .apply(stored, applied)
    }

    /// Handles an update whose base is older than the current version. Returns the fields that may
    /// still be applied. Returns nil if the update conflicts.
    private func accepted(
        _ operation: EntityOperation,
        on current: StoredEntity,
        of kind: EntitySchema.Kind,
        _ stamp: StoredEntity.Stamp
    ) -> [String: FieldValue]? {
        switch kind.policy {
        case .cas, .append: return nil
        case .lww:
            return stamp.wins(over: current.stamp) ? operation.fields : nil
        case .merge(let contested):
            let fields = operation.fields.filter { name, value in
                guard let theirs = current.stamps[name], theirs.version > operation.base,
                    value != current.entity.fields[name, default: .null]
                else { return true }
                return contested == .lww && stamp.wins(over: theirs)
            }
            if fields.count < operation.fields.count, contested == .cas { return nil }
            return fields.isEmpty && !operation.fields.isEmpty ? nil : fields
        }
    }

    /// Returns whether the applied fields replace values that another device has written since the
    /// operation's base.
    private func hasLoser(
        _ fields: [String: FieldValue],
        _ operation: EntityOperation,
        _ current: StoredEntity,
        _ kind: EntitySchema.Kind
    ) -> Bool {
        switch kind.policy {
        case .cas, .append: false
        // This policy does not record which fields have changed, so assume that a value was
        // replaced.
        case .lww: true
        case .merge:
            fields.contains { name, value in
                (current.stamps[name]?.version ?? 0) > operation.base
                    && value != current.entity.fields[name, default: .null]
            }
        }
    }

    // MARK: Building the next version

    private func updated(
        _ stored: StoredEntity,
        with fields: [String: FieldValue],
        _ stamp: StoredEntity.Stamp
    ) -> StoredEntity {
        var stored = next(stored, stamp)
        stored.entity.fields = stored.entity.fields.patched(with: fields)
        if case .merge = schema[stored.entity.type]?.policy {
            for name in fields.keys { stored.stamps[name] = stored.stamp }
        }
        return stored
    }

    private func tombstone(of stored: StoredEntity, _ stamp: StoredEntity.Stamp) -> StoredEntity {
        var stored = next(stored, stamp)
        stored.entity.isDeleted = true
        if schema[stored.entity.type]?.deletion != .updateWins {
            stored.entity.fields = [:]
            stored.stamps = [:]
        }
        return stored
    }

    /// Returns the entity with a new version. Its time of change never goes back, even if the
    /// device's clock is wrong.
    private func next(_ stored: StoredEntity, _ stamp: StoredEntity.Stamp) -> StoredEntity {
        var stored = stored
        stored.entity.version = stamp.version
        stored.entity.modified = max(stored.entity.modified, stamp.modified)
        stored.device = stamp.device
        return stored
    }
}

extension EntityRules.Situation {
    fileprivate func honestTime(of operation: EntityOperation) -> Int64 {
        EntityRules.honestTime(of: operation.modified, clientNow: clientNow, now: now)
    }

    /// Returns the version, time and device that the operation assigns to the entity.
    fileprivate func stamp(
        of operation: EntityOperation,
        after current: StoredEntity
    ) -> StoredEntity.Stamp {
        .init(
            version: current.entity.version + 1,
            modified: honestTime(of: operation),
            device: device
        )
    }
}

extension EntityResult.Applied {
    fileprivate init(of stored: StoredEntity) {
        self.init(
            id: stored.entity.id,
            version: stored.entity.version,
            modified: stored.entity.modified
        )
    }
}
