package import TambourProtocol

/// Tracks the operations of one `OBJ_PUSH` in order: which operations may be tried, and with which
/// ids.
///
/// The caller calls `admit` for each operation in turn, decides the result with `EntityRules`, and
/// calls `record`. Devices sort their batches; this type refuses operations out of order.
package struct EntityBatch {
    private var phase = EntityChangeKind.delete.rawValue
    private var created: [EntityID: EntityID] = [:]
    /// The ids of entities with a failed creation, a failed deletion or a skipped operation, each
    /// with the `opID` of the operation that failed first.
    private var failed: [EntityID: Int64] = [:]

    package init() {}

    package enum Admission: Hashable, Sendable {
        /// The operation with local ids replaced by server ids. Only a creation keeps its own local
        /// id.
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
            // An entity whose update failed still exists, so operations on it and its children may
            // be tried.
            if operation.kind != .update, created[operation.id] == nil {
                failed[operation.id] = operation.opID
            }
        }
    }

    private func resolve(_ id: EntityID) -> EntityID? {
        id.isLocal ? created[id] : id
    }
}
