package import TambourProtocol

/// Tracks the operations of one `OBJ_PUSH` in order. Decides which operations may be tried, and
/// replaces their local ids.
///
/// For each operation in turn, the caller calls `admit`, decides the result with `EntityRules`, and
/// calls `record`. Devices sort their batches. This type refuses operations that are out of order.
package struct EntityBatch {
    private var phase = EntityChangeKind.delete.rawValue
    private var created: [EntityID: EntityID] = [:]
    /// The ids of entities whose creation or deletion failed, or that had a skipped operation. The
    /// value is the `opID` of the operation that failed first.
    private var failed: [EntityID: Int64] = [:]

    package init() {}

    package enum Admission: Hashable, Sendable {
        /// The operation may be tried. Its local ids are replaced by server ids, except the local
        /// id of a new entity.
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

    /// - Parameter operation: the operation in the form that the device sent.
    package mutating func record(_ decision: EntityDecision, of operation: EntityOperation) {
        switch decision.result.first {
        case .applied(let applied):
            if operation.kind == .create { created[operation.id] = applied.id }
        case .skipped(let opID):
            failed[operation.id] = opID
        case .conflict, .rejected, .replayed:
            // If an update failed, the entity still exists. Later operations on the entity and its
            // children may therefore be tried.
            if operation.kind != .update, created[operation.id] == nil {
                failed[operation.id] = operation.opID
            }
        }
    }

    private func resolve(_ id: EntityID) -> EntityID? {
        id.isLocal ? created[id] : id
    }
}
