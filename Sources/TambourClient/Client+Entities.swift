public import TambourProtocol

/// Objects that several devices edit offline: accounts, profiles, notes, preferences, series of measurements.
///
/// What is done here is stored and shown at once, brought to the server when it can be reached, and
/// undone by nobody silently: where two devices collide, `entityConflicts` has both sides until
/// the user has chosen.
///
/// They are kept up to date from the first of these calls on; until then they cost nothing.
extension Client {
    /// What stands directly below an object, or at the top, in the order in which it came to this device.
    public func entities(below parent: EntityID? = nil) async throws(ClientError) -> [LocalEntity] {
        try await wish { core, tx in try core.useEntities(tx).entities(below: parent) }
    }

    /// An object with the user's changes.
    ///
    /// - Parameter id: may be the local id of something that has got the server's meanwhile.
    /// - Returns: nil if it, or something above it, is deleted or unknown.
    public func entity(_ id: EntityID) async throws(ClientError) -> LocalEntity? {
        try await wish { core, tx in try core.useEntities(tx).entity(id) }
    }

    /// Creates an object.
    ///
    /// - Returns: its local id, which names it for ever, here.
    /// - Throws: `ClientError.refused` with the protocol's error for what no such object can hold.
    @discardableResult
    public func createEntity(
        _ type: EntityType,
        below parent: EntityID? = nil,
        fields: [String: FieldValue]
    ) async throws(ClientError) -> EntityID {
        try await wish { core, tx in
            let now = core.environment.wallMs()
            return try core.changeEntities(tx) { entities throws(LocalEntityError) in
                let creation = try entities.create(type, below: parent, fields: fields, at: now)
                return (creation.id, creation.rows)
            }
        }
    }

    /// Gives fields other values; `FieldValue.null` takes one away.
    public func updateEntity(
        _ id: EntityID,
        fields: [String: FieldValue]
    ) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.update(id, fields: fields, at: now)
        }
    }

    /// Deletes an object and what stands below it.
    public func deleteEntity(_ id: EntityID) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.delete(id, at: now)
        }
    }

    /// Takes back a deletion of this device.
    ///
    /// - Parameter fields: all that the object is to have.
    public func restoreEntity(
        _ id: EntityID,
        fields: [String: FieldValue]
    ) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.restore(id, fields: fields, at: now)
        }
    }

    /// What waits for the user's choice, oldest change first.
    public func entityConflicts() async throws(ClientError) -> [Conflict] {
        try await wish { core, tx in try core.useEntities(tx).conflicts }
    }

    /// Ends a conflict.
    ///
    /// - Parameter parent: below what `mine` puts an object whose parent is gone.
    public func resolveConflict(
        _ id: EntityID,
        _ choice: EntityChoice,
        below parent: EntityID? = nil
    ) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.resolve(id, choice, below: parent, at: now)
        }
    }

    /// How many changes of this device the server has neither accepted nor refused, deletions among
    /// them. What is in conflict waits for the user and does not count.
    public func pendingEntityChanges() async throws(ClientError) -> Int {
        try await wish { core, tx in try core.useEntities(tx).pendingCount }
    }

    /// Whether what other devices did to objects is here: nothing is asked for, and nothing needs to be.
    ///
    /// - Returns: false while there is no connection. When another process is connected, whether it has
    ///   ever asked for objects: since then it keeps them up to date.
    public func isEntitySyncDone() async -> Bool {
        if state == .elsewhere {
            let mark = try? await wish { _, tx in try tx.value(of: .entitiesMark) as Int64? }
            return (mark ?? 0) > 0
        }
        return (try? await call { core throws(ClientError) in core.hasEntitiesInSync }) ?? false
    }

    /// The elements of a series from one position to another, in its order.
    ///
    /// Asks the server for the range; offline it is what this device holds of it.
    ///
    /// - Parameter range: of the field that orders the series, for measurements Unix milliseconds.
    public func elements(
        of type: EntityType,
        below parent: EntityID,
        in range: ClosedRange<Int64>
    ) async throws(ClientError) -> [LocalEntity] {
        let schema = EntitySchema.standard(.standard)
        guard let position = schema[type]?.position else {
            throw .invalid(reason: "\(type.rawValue) is not a series")
        }
        let current = try await wish { core, tx in try core.useEntities(tx).current(parent) }
        if case .server(let number) = current, case .online = state {
            try await pull(type, below: number, range)
        }
        let found = try await entities(below: parent)
        return found.filter { $0.entity.type == type }
            .map { (position: $0.entity.position(in: position), entity: $0) }
            .filter { range.contains($0.position) }
            .sorted { ($0.position, $0.entity.uiKey) < ($1.position, $1.entity.uiKey) }
            .map(\.entity)
    }

    private func pull(
        _ type: EntityType,
        below parent: Int64,
        _ range: ClosedRange<Int64>
    ) async throws(ClientError) {
        var (from, after) = (range.lowerBound, Int64(0))
        while true {
            let part = ObjectRange(
                type: type.rawValue,
                parent: parent,
                from: from,
                to: range.upperBound
            )
            let reply: ObjPullReply
            do throws(ClientError) {
                reply = try await askLoggedIn(ObjPullRequest(after: after, series: part))
            } catch {
                // What is held here is an answer, too.
                if case .disconnected = error { return }
                if case .unreachable = error { return }
                if case .timedOut = error { return }
                throw error
            }
            let elements = try reply.entities()
            try await wish { core, tx in try core.keepElements(elements, tx) }
            guard reply.more == true else { return }
            (from, after) = (reply.time, reply.last ?? 0)
        }
    }

    private func changeEntities(
        _ body:
            @escaping @Sendable (
                inout LocalEntities, Int64
            ) throws(LocalEntityError) -> [EntityRowChange]
    ) async throws(ClientError) {
        try await wish { core, tx in
            let now = core.environment.wallMs()
            return try core.changeEntities(tx) { entities throws(LocalEntityError) in
                ((), try body(&entities, now))
            }
        }
    }
}

extension ObjPullReply {
    /// - Throws: `ClientError.unreadable` for a value that no field can hold.
    func entities() throws(ClientError) -> [Entity] {
        do throws(PayloadError) {
            return try objects.map { (copy) throws(PayloadError) in try Entity(copy) }
        } catch {
            throw .unreadable(reason: "\(error)")
        }
    }
}

extension Entity {
    /// The value of the field that orders its series; 0 without one, as on the server.
    fileprivate func position(in field: String) -> Int64 {
        if case .int(let value) = fields[field] { value } else { 0 }
    }
}
