package import TambourProtocol

/// Tracks the order of one `OBJ_PUSH`: which operations may be tried, and under which ids.
///
/// For each operation in turn: `admit` it, decide about the result with `EntityRules`, and `record`
/// the decision. Devices sort their batches; this does not rely on it.
package struct EntityBatch {
    private var phase = EntityChangeKind.delete.rawValue
    private var created: [EntityID: EntityID] = [:]
    /// The ids that operations failed to create or delete, each with the `opID` of the first
    /// failure.
    private var failed: [EntityID: Int64] = [:]

    package init() {}

    package enum Admission: Hashable, Sendable {
        /// The operation with local ids replaced by the server's; only a creation keeps its own
        /// local id.
        case tried(EntityOperation)
        case settled(EntityDecision)
    }

    package mutating func admit(_ operation: EntityOperation) -> Admission {
        guard operation.kind.rawValue >= phase else {
            return .settled(.rejected(.outOfOrder, at: "/op"))
        }
        phase = operation.kind.rawValue
        for id in [operation.parent, operation.id] {
            if let id, let opID = failed[id] { return .settled(.skipped(because: opID)) }
        }
        var resolved = operation
        if operation.kind == .create {
            guard operation.id.isLocal, created[operation.id] == nil else {
                return .settled(.rejected(.unknownReference, at: "/id"))
            }
        } else {
            guard let id = resolve(operation.id) else {
                return .settled(.rejected(.unknownReference, at: "/id"))
            }
            resolved.id = id
        }
        if let parent = operation.parent {
            guard let id = resolve(parent) else {
                return .settled(.rejected(.unknownReference, at: "/parent"))
            }
            resolved.parent = id
        }
        return .tried(resolved)
    }

    /// - Parameter operation: the operation as the device sent it.
    package mutating func record(_ decision: EntityDecision, of operation: EntityOperation) {
        switch decision.result.first {
        case .applied(let applied):
            if operation.kind == .create { created[operation.id] = applied.id }
        case .skipped(let opID):
            failed[operation.id] = opID
        case .conflict, .rejected, .replayed:
            // An entity whose update failed still exists, also for its children.
            if operation.kind != .update, created[operation.id] == nil {
                failed[operation.id] = operation.opID
            }
        }
    }

    private func resolve(_ id: EntityID) -> EntityID? {
        id.isLocal ? created[id] : id
    }
}
