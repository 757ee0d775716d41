import TambourMessenger
import TambourProtocol
import TambourStore

/// The smallest server around `ObjectRules`: dictionaries, a commit clock and a table of replies.
struct ObjectServer {
    private(set) var objects: [EntityID: StoredObject] = [:]
    /// Every string that any accepted operation wrote.
    private(set) var written: Set<String> = []
    let rules: ObjectRules
    private var changedAt: [EntityID: Int64] = [:]
    private var clock: Int64 = 0
    private var nextID: Int64 = 1000
    private var replies: [Key: EntityResult] = [:]
    private var creations: [Key: EntityID] = [:]

    private struct Key: Hashable {
        var device: Int64
        var opID: Int64
    }

    struct Page {
        var objects: [Entity]
        var tombstones: [Entity]
        var cursor: Int64
    }

    init(schema: EntitySchema) {
        rules = ObjectRules(schema: schema)
    }

    var live: [Entity] {
        objects.values.map(\.entity).filter { !$0.isDeleted }.sorted { $0.id < $1.id }
    }

    /// What changed after the cursor.
    func pull(since cursor: Int64) -> Page {
        let changed = changedAt.filter { $0.value > cursor }.compactMap { objects[$0.key]?.copy }
        return Page(
            objects: changed.filter { !$0.isDeleted },
            tombstones: changed.filter(\.isDeleted),
            cursor: clock
        )
    }

    mutating func push(
        _ operations: [EntityOperation],
        from device: Int64,
        clientNow: Int64,
        now: Int64
    ) -> [EntityResult] {
        var batch = ObjectBatch()
        return operations.map { operation in
            let decision: ObjectDecision
            switch batch.admit(operation) {
            case .settled(let settled): decision = settled
            case .tried(let resolved):
                decision = rules.decide(
                    resolved,
                    in: situation(of: resolved, device: device, clientNow: clientNow, now: now)
                )
                if case .apply(let object, _) = decision { apply(object, by: operation) }
            }
            batch.record(decision, of: operation)
            replies[Key(device: device, opID: operation.opID)] = decision.result.first
            return decision.result
        }
    }

    /// What 91 days do: replies are forgotten after 7, tombstones after 90.
    mutating func forgetTheOld() {
        replies = [:]
        for object in objects.values where object.entity.isDeleted {
            objects[object.entity.id] = nil
            changedAt[object.entity.id] = nil
        }
    }

    /// An older state of the server, with a clock that goes on.
    mutating func restoreBackup(_ backup: ObjectServer) {
        let (clock, nextID) = (clock, nextID)
        self = backup
        self.clock = clock
        self.nextID = nextID
    }

    private func situation(
        of operation: EntityOperation,
        device: Int64,
        clientNow: Int64,
        now: Int64
    ) -> ObjectRules.Situation {
        let current = objects[operation.id]
        let key = Key(device: device, opID: operation.opID)
        let parent = current?.entity.parent ?? operation.parent
        return ObjectRules.Situation(
            current: current,
            parent: state(of: parent),
            twin: twin(of: current?.entity, operation, below: parent),
            hasRemainingChildren: objects.values.contains {
                $0.entity.parent == operation.id && !$0.entity.isDeleted
                    && rules.schema[$0.entity.type]?.cascades == false
            },
            known: replies[key] ?? creations[key].flatMap { objects[$0]?.creationResult },
            device: device,
            newID: nextID,
            now: now,
            clientNow: clientNow
        )
    }

    private func state(of parent: EntityID?) -> ObjectRules.ParentState {
        guard let parent else { return .none }
        guard let object = objects[parent], !object.entity.isDeleted else { return .gone }
        return .live(object.entity.type)
    }

    private func twin(
        of entity: Entity?,
        _ operation: EntityOperation,
        below parent: EntityID?
    ) -> Entity? {
        guard let key = rules.schema[operation.type]?.naturalKey, !key.isEmpty else { return nil }
        let fields = entity?.fields ?? operation.fields
        return objects.values.map(\.entity).first { other in
            other.parent == parent && other.type == operation.type && !other.isDeleted
                && other.id != entity?.id && key.allSatisfy { other.fields[$0] == fields[$0] }
        }
    }

    private mutating func apply(_ object: StoredObject, by operation: EntityOperation) {
        if operation.kind == .create {
            nextID += 1
            creations[Key(device: object.creator, opID: operation.opID)] = object.entity.id
        }
        store(object)
        if object.entity.isDeleted { cascade(object, below: object.entity.id) }
    }

    private mutating func cascade(_ deleted: StoredObject, below id: EntityID) {
        for child in objects.values where child.entity.parent == id && !child.entity.isDeleted {
            store(rules.cascade(deleted, to: child))
            cascade(deleted, below: child.entity.id)
        }
    }

    private mutating func store(_ object: StoredObject) {
        clock += 1
        changedAt[object.entity.id] = clock
        objects[object.entity.id] = object
        for case .string(let text) in object.entity.fields.values { written.insert(text) }
    }
}
