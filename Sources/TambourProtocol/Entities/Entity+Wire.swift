/// Converts entities, operations and results to and from the packets of `OBJ_PULL`, `OBJ_PUSH` and
/// `NOTIF_OBJ`.
extension Entity {
    /// - Throws: `PayloadError` for a value that no field can hold.
    package init(_ copy: ObjectCopy) throws(PayloadError) {
        self.init(
            id: .server(copy.id),
            type: EntityType(copy.type),
            parent: copy.parent.map { .server($0) },
            version: copy.version,
            modified: copy.modified,
            createdBy: copy.createdBy,
            isDeleted: copy.deleted ?? false,
            fields: try copy.fields?.fields(.standard) ?? [:]
        )
    }
}

extension ObjectCopy {
    /// - Precondition: The entity and its parent have ids assigned by the server.
    package init(_ entity: Entity) {
        self.init(
            id: entity.id.serverID,
            type: entity.type.rawValue,
            parent: entity.parent.map(\.serverID),
            version: entity.version,
            modified: entity.modified,
            createdBy: entity.createdBy,
            deleted: entity.isDeleted ? true : nil,
            fields: entity.isDeleted ? nil : NameMap(entity.fields)
        )
    }
}

extension EntityID {
    fileprivate var serverID: Int64 {
        guard case .server(let number) = self else {
            preconditionFailure("a local id leaves its device in operations alone")
        }
        return number
    }

    /// Decodes an integer, or a text such as `"#l7"`. Returns nil for anything else.
    fileprivate init?(_ value: AnyValue) {
        if let text = value.text {
            guard let id = EntityID(text.description), id.isLocal else { return nil }
            self = id
        } else if let number = value.int {
            self = .server(number)
        } else {
            return nil
        }
    }

    fileprivate var wire: AnyValue {
        switch self {
        case .server(let number): AnyValue(number)
        case .local: AnyValue(description)
        }
    }
}

extension EntityOperation {
    /// - Throws: `PayloadError` for a malformed id, and for a value that no field can hold.
    package init(_ operation: ObjectOperation, _ limits: Limits) throws(PayloadError) {
        guard let id = EntityID(operation.id) else { throw Self.notAnID("/id") }
        var parent: EntityID?
        if let value = operation.parent, !value.isNil {
            guard let id = EntityID(value) else { throw Self.notAnID("/parent") }
            parent = id
        }
        let fields: [String: FieldValue]
        do throws(PayloadError) {
            fields = try operation.fields?.fields(limits) ?? [:]
        } catch {
            throw error.within("fields")
        }
        self.init(
            opID: operation.opID,
            kind: EntityChangeKind(operation.op),
            id: id,
            type: EntityType(operation.type),
            parent: parent,
            base: operation.base,
            modified: operation.modified,
            fields: fields
        )
    }

    private static func notAnID(_ path: String) -> PayloadError {
        PayloadError(path: path, reason: "neither an integer nor a local id")
    }
}

extension ObjectOperation {
    package init(_ operation: EntityOperation) {
        self.init(
            opID: operation.opID,
            op: ObjectChange(operation.kind),
            id: operation.id.wire,
            type: operation.type.rawValue,
            parent: operation.parent?.wire,
            base: operation.base,
            modified: operation.modified,
            fields: operation.fields.isEmpty ? nil : NameMap(operation.fields)
        )
    }
}

extension EntityChangeKind {
    fileprivate init(_ change: ObjectChange) {
        self =
            switch change {
            case .delete: .delete
            case .create: .create
            case .update: .update
            }
    }
}

extension ObjectChange {
    fileprivate init(_ kind: EntityChangeKind) {
        self =
            switch kind {
            case .delete: .delete
            case .create: .create
            case .update: .update
            }
    }
}

// MARK: Results

extension EntityResult {
    /// - Throws: `PayloadError` for a result that this build does not understand.
    package init(_ result: ObjectResult) throws(PayloadError) {
        let first: EntityResult
        switch result.status {
        case .applied:
            guard let id = result.id, let version = result.version, let modified = result.modified
            else { throw PayloadError(reason: "APPLIED without what was made of it") }
            first = .applied(
                .init(
                    id: .server(id),
                    version: version,
                    modified: modified,
                    entity: try Self.entity(result.object),
                    loser: try Self.entity(result.loser)
                )
            )
        case .conflict:
            guard let conflict = result.conflict, let kind = ConflictKind(conflict) else {
                throw PayloadError(path: "/conflict", reason: "not known")
            }
            first = .conflict(kind, server: try Self.entity(result.server))
        case .rejected:
            let error = result.error ?? .other(.empty)
            first = .rejected(EntityRefusal(error, at: result.path ?? ""))
        case .skipped:
            guard let because = result.because else { throw .missing("because") }
            first = .skipped(because: because)
        case .other:
            throw PayloadError(path: "/status", reason: "not known")
        }
        self = result.replayed == true ? .replayed(first) : first
    }

    private static func entity(_ copy: ObjectCopy?) throws(PayloadError) -> Entity? {
        guard let copy else { return nil }
        return try Entity(copy)
    }
}

extension ObjectResult {
    package init(_ result: EntityResult) {
        switch result {
        case .replayed(let first):
            self.init(first.first)
            replayed = true
        case .applied(let applied):
            self.init(
                status: .applied,
                id: applied.id.serverID,
                version: applied.version,
                modified: applied.modified,
                object: applied.entity.map { ObjectCopy($0) },
                loser: applied.loser.map { ObjectCopy($0) }
            )
        case .conflict(let kind, let server):
            self.init(
                status: .conflict,
                conflict: ObjectConflict(kind),
                server: server.map { ObjectCopy($0) }
            )
        case .rejected(let refusal):
            self.init(status: .rejected, error: refusal.error, path: refusal.path)
        case .skipped(let opID):
            self.init(status: .skipped, because: opID)
        }
    }
}

extension EntityResult.ConflictKind {
    /// Converts a conflict from the wire. Returns nil for a conflict that this build does not know.
    fileprivate init?(_ conflict: ObjectConflict) {
        switch conflict {
        case .updateUpdate: self = .updateUpdate
        case .updateDelete: self = .updateDelete
        case .deleteUpdate: self = .deleteUpdate
        case .duplicate: self = .duplicate
        case .superseded: self = .superseded
        case .other: return nil
        }
    }
}

extension ObjectConflict {
    fileprivate init(_ kind: EntityResult.ConflictKind) {
        self =
            switch kind {
            case .updateUpdate: .updateUpdate
            case .updateDelete: .updateDelete
            case .deleteUpdate: .deleteUpdate
            case .duplicate: .duplicate
            case .superseded: .superseded
            }
    }
}
