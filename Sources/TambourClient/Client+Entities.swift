public import TambourProtocol

/// Entities that several devices edit offline: accounts, profiles, notes, preferences, series of
/// measurements.
///
/// A change is stored and shown at once. It is sent when the server can be reached. The client
/// never drops a change silently: when the changes of two devices conflict, `entityConflicts` keeps
/// both changes until the user has chosen.
///
/// The first call of any of these functions starts the synchronisation of entities. Until then, the
/// client neither requests nor stores entities.
extension Client {
    /// Returns the entities directly below a parent, or the top-level entities for nil, in the
    /// order in which this device received them.
    public func entities(below parent: EntityID? = nil) async throws(ClientError) -> [LocalEntity] {
        try await wish { core, tx in try core.entities.use(tx).entities(below: parent) }
    }

    /// Returns an entity with the user's changes applied.
    ///
    /// - Parameter id: may be a local id even after the server has assigned an id.
    /// - Returns: nil if the entity or one of its ancestors is deleted or unknown.
    public func entity(_ id: EntityID) async throws(ClientError) -> LocalEntity? {
        try await wish { core, tx in try core.entities.use(tx).entity(id) }
    }

    /// Creates an entity.
    ///
    /// - Returns: the entity's local id, which stays valid on this device.
    /// - Throws: `ClientError.refused` with the protocol's error for invalid fields.
    @discardableResult
    public func createEntity(
        _ type: EntityType,
        below parent: EntityID? = nil,
        fields: [String: FieldValue]
    ) async throws(ClientError) -> EntityID {
        try await wish { core, tx in
            let now = core.environment.wallMs()
            return try core.entities.change(tx) { entities throws(LocalEntityError) in
                let creation = try entities.create(type, below: parent, fields: fields, at: now)
                return (creation.id, creation.rows)
            }
        }
    }

    /// Sets fields; the value `FieldValue.null` removes a field.
    public func updateEntity(
        _ id: EntityID,
        fields: [String: FieldValue]
    ) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.update(id, fields: fields, at: now)
        }
    }

    /// Deletes an entity and everything below it.
    public func deleteEntity(_ id: EntityID) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.delete(id, at: now)
        }
    }

    /// Undoes a deletion made on this device.
    ///
    /// - Parameter fields: all fields of the restored entity.
    public func restoreEntity(
        _ id: EntityID,
        fields: [String: FieldValue]
    ) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.restore(id, fields: fields, at: now)
        }
    }

    /// The conflicts that wait for the user's choice, oldest change first.
    public func entityConflicts() async throws(ClientError) -> [Conflict] {
        try await wish { core, tx in try core.entities.use(tx).conflicts }
    }

    /// Resolves a conflict.
    ///
    /// - Parameter parent: the new parent of the entity. Needed only if `choice` is `mine` and the
    ///   old parent is deleted.
    public func resolveConflict(
        _ id: EntityID,
        _ choice: EntityChoice,
        below parent: EntityID? = nil
    ) async throws(ClientError) {
        try await changeEntities { entities, now throws(LocalEntityError) in
            try entities.resolve(id, choice, below: parent, at: now)
        }
    }

    /// Returns the number of this device's changes that the server has not answered yet, including
    /// deletions. Conflicts do not count.
    public func pendingEntityChanges() async throws(ClientError) -> Int {
        try await wish { core, tx in try core.entities.use(tx).pendingCount }
    }

    /// Returns whether all entity changes of other devices have arrived, that is, no pull is in
    /// flight or needed.
    ///
    /// - Returns: false while there is no connection. While another process is connected, that
    ///   process keeps the entities up to date. The result is then whether this account has ever
    ///   pulled entities.
    public func isEntitySyncDone() async -> Bool {
        if state == .elsewhere {
            let mark = try? await wish { _, tx in try tx.value(of: .entitiesMark) as Int64? }
            return (mark ?? 0) > 0
        }
        return (try? await call { core throws(ClientError) in core.entities.isInSync }) ?? false
    }

    /// Returns the elements of a series from one position to another, in the order of the series.
    ///
    /// Requests the range from the server while this client is online. Otherwise, returns the
    /// elements that this device holds.
    ///
    /// - Parameter range: values of the field that orders the series; for measurements, Unix
    ///   milliseconds.
    public func elements(
        of type: EntityType,
        below parent: EntityID,
        in range: ClosedRange<Int64>
    ) async throws(ClientError) -> [LocalEntity] {
        let schema = EntitySchema.standard(.standard)
        guard let position = schema[type]?.position else {
            throw .invalid(reason: "\(type.rawValue) is not a series")
        }
        let current = try await wish { core, tx in try core.entities.use(tx).current(parent) }
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
                // Offline, the stored elements are the result.
                if case .disconnected = error { return }
                if case .unreachable = error { return }
                if case .timedOut = error { return }
                throw error
            }
            let elements = try reply.entities()
            try await wish { core, tx in try core.entities.keep(elements, tx) }
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
            return try core.entities.change(tx) { entities throws(LocalEntityError) in
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
    /// The value of the field that orders the series; 0 if the field has no value, as on the
    /// server.
    fileprivate func position(in field: String) -> Int64 {
        if case .int(let value) = fields[field] { value } else { 0 }
    }
}
