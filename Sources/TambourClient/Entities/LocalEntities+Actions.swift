package import TambourProtocol

/// The user's actions. A call that throws changes nothing.
extension LocalEntities {
    package struct Creation: Hashable, Sendable {
        package var id: EntityID
        package var rows: [EntityRowChange]
    }

    /// - Parameter now: Unix milliseconds by this device's clock, as everywhere in this type.
    package mutating func create(
        _ type: EntityType,
        below parent: EntityID?,
        fields: [String: FieldValue],
        at now: Int64
    ) throws(LocalEntityError) -> Creation {
        let parent = parent.map(current)
        let kind = try kind(of: type)
        try check(parent, for: kind)
        let fields = [:].patched(with: fields)
        if let flaw = kind.flaw(in: fields) ?? kind.flaw(inWhole: fields) { throw .refused(flaw) }
        let id = insert(type, below: parent, fields: fields, at: now)
        return Creation(id: id, rows: finish())
    }

    /// - Parameter fields: The changed fields; the value `null` removes a field.
    package mutating func update(
        _ id: EntityID,
        fields: [String: FieldValue],
        at now: Int64
    ) throws(LocalEntityError) -> [EntityRowChange] {
        guard let entity = entity(id)?.entity else { throw .notFound }
        let kind = try kind(of: entity.type)
        guard kind.policy != .append else { throw .refused(.appendOnly, at: "/op") }
        let flaw =
            kind.flaw(in: fields, on: entity.fields)
            ?? kind.flaw(inWhole: entity.fields.patched(with: fields))
        if let flaw { throw .refused(flaw) }
        if !fields.isEmpty {
            try record(.init(kind: .update, fields: fields, modified: now), on: entity.id)
        }
        return finish()
    }

    package mutating func delete(
        _ id: EntityID,
        at now: Int64
    ) throws(LocalEntityError) -> [EntityRowChange] {
        guard let entity = entity(id)?.entity else { throw .notFound }
        let kind = try kind(of: entity.type)
        guard kind.policy != .append else { throw .refused(.appendOnly, at: "/op") }
        guard entities(below: entity.id).allSatisfy({ schema[$0.entity.type]?.cascades ?? true })
        else { throw .refused(.childrenRemain, at: "/id") }
        try record(.init(kind: .delete, modified: now), on: entity.id)
        return finish()
    }

    /// Undoes a deletion made on this device. Descendants return too, if the deletion has not
    /// reached the server yet.
    ///
    /// - Parameter fields: All fields of the restored entity.
    package mutating func restore(
        _ id: EntityID,
        fields: [String: FieldValue],
        at now: Int64
    ) throws(LocalEntityError) -> [EntityRowChange] {
        let id = current(id)
        guard let row = entities[id], isShown(row.parent) else { throw .notFound }
        guard let deletion = open[id] ?? sent[id], deletion.change.kind == .delete else {
            throw .notDeleted
        }
        let kind = try kind(of: row.type)
        let fields = [:].patched(with: fields)
        let before = deletion.change.base?.fields ?? [:]
        let flaw =
            kind.flaw(in: before.patch(to: fields), on: before) ?? kind.flaw(inWhole: fields)
        if let flaw { throw .refused(flaw) }
        try record(.init(kind: .create, fields: fields, modified: now), on: id)
        return finish()
    }
}

extension LocalEntities {
    func kind(of type: EntityType) throws(LocalEntityError) -> EntitySchema.Kind {
        guard let kind = schema[type] else { throw .refused(.unknownType, at: "/type") }
        return kind
    }

    /// - Throws: `LocalEntityError.refused` if the parent cannot have children of this kind.
    func check(_ parent: EntityID?, for kind: EntitySchema.Kind) throws(LocalEntityError) {
        if let parent, entities[parent]?.type == kind.parent {
            guard isShown(parent) else { throw .refused(.parentDeleted, at: "/parent") }
        } else if parent != nil || kind.parent != nil {
            throw .refused(.wrongParent, at: "/parent")
        }
    }

    mutating func insert(
        _ type: EntityType,
        below parent: EntityID?,
        fields: [String: FieldValue],
        at now: Int64
    ) -> EntityID {
        let id = newLocalID()
        put(EntityRow(id: id, type: type, parent: parent, uiKey: newUIKey()))
        openUpdate(.init(kind: .create, fields: fields, modified: now), on: id)
        return id
    }

    mutating func openUpdate(_ change: EntityChange, on id: EntityID) {
        open[id] = LocalUpdate(
            id: id,
            change: change,
            state: .pending,
            sequence: newSequence()
        )
        touch(id)
    }

    /// Merges a change into the open change. If there is no open change, opens a new one.
    mutating func record(_ next: EntityChange, on id: EntityID) throws(LocalEntityError) {
        do throws(EntityChange.Impossible) {
            if var update = open[id] {
                guard let change = try update.change.followed(by: next) else {
                    return withdrawCreation(of: id)
                }
                update.change = change
                // The user's change may have fixed the cause of the refusal, so send the update
                // again.
                if case .rejected = update.cause { update.state = .pending }
                open[id] = update
                touch(id)
            } else {
                var change = next
                if let frozen = sent[id] {
                    _ = try frozen.change.followed(by: next)
                    change.base = expected(from: frozen)
                } else {
                    change.base = entities[id]?.server
                }
                openUpdate(change, on: id)
            }
        } catch {
            throw .notFound
        }
    }

    /// Handles the deletion of an entity whose open update is a creation. Drops the entity, or only
    /// the open update if an earlier update of the entity is in flight.
    private mutating func withdrawCreation(of id: EntityID) {
        if sent[id] == nil {
            forget(id)
        } else {
            open[id] = nil
        }
    }

    /// Returns the copy that the server is expected to have after a frozen update.
    private func expected(from frozen: LocalUpdate) -> Entity? {
        guard let row = entities[frozen.id] else { return nil }
        switch frozen.change.kind {
        case .create:
            return Entity(
                id: row.id,
                type: row.type,
                parent: row.parent,
                version: 0,
                modified: frozen.change.modified,
                fields: frozen.change.fields
            )
        case .update: return frozen.change.applied(to: frozen.change.base)
        case .delete: return nil
        }
    }
}
