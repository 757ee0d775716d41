import TambourMessenger
import TambourProtocol
import TambourStore

/// A minimal server that uses `EntityRules`. It consists of dictionaries, a commit clock and a
/// table of replies.
struct EntityServer {
    private(set) var entities: [EntityID: StoredEntity] = [:]
    /// Every string that an accepted operation has written.
    private(set) var written: Set<String> = []
    let rules: EntityRules
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
        var entities: [Entity]
        var tombstones: [Entity]
        var cursor: Int64
    }

    init(schema: EntitySchema) {
        rules = EntityRules(schema: schema)
    }

    var live: [Entity] {
        entities.values.map(\.entity).filter { !$0.isDeleted }.sorted { $0.id < $1.id }
    }

    /// Returns the changes after the cursor.
    func pull(since cursor: Int64) -> Page {
        let changed = changedAt.filter { $0.value > cursor }.compactMap { entities[$0.key]?.copy }
        return Page(
            entities: changed.filter { !$0.isDeleted },
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
        var batch = EntityBatch()
        return operations.map { operation in
            let decision: EntityDecision
            switch batch.admit(operation) {
            case .settled(let settled): decision = settled
            case .tried(let resolved):
                decision = rules.decide(
                    resolved,
                    in: situation(of: resolved, device: device, clientNow: clientNow, now: now)
                )
                if case .apply(let stored, _) = decision { apply(stored, by: operation) }
            }
            batch.record(decision, of: operation)
            replies[Key(device: device, opID: operation.opID)] = decision.result.first
            return decision.result
        }
    }

    /// Simulates that 91 days pass. The server forgets replies after 7 days, and tombstones after
    /// 90 days.
    mutating func forgetTheOld() {
        replies = [:]
        for stored in entities.values where stored.entity.isDeleted {
            entities[stored.entity.id] = nil
            changedAt[stored.entity.id] = nil
        }
    }

    /// Restores an older state of the server, but keeps the commit clock and the next id.
    mutating func restoreBackup(_ backup: EntityServer) {
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
    ) -> EntityRules.Situation {
        let current = entities[operation.id]
        let key = Key(device: device, opID: operation.opID)
        let parent = current?.entity.parent ?? operation.parent
        return EntityRules.Situation(
            current: current,
            parent: state(of: parent),
            twin: twin(of: current?.entity, operation, below: parent),
            hasRemainingChildren: entities.values.contains {
                $0.entity.parent == operation.id && !$0.entity.isDeleted
                    && rules.schema[$0.entity.type]?.cascades == false
            },
            known: replies[key] ?? creations[key].flatMap { entities[$0]?.creationResult },
            device: device,
            newID: nextID,
            now: now,
            clientNow: clientNow
        )
    }

    private func state(of parent: EntityID?) -> EntityRules.ParentState {
        guard let parent else { return .none }
        guard let stored = entities[parent], !stored.entity.isDeleted else { return .gone }
        return .live(stored.entity.type)
    }

    private func twin(
        of entity: Entity?,
        _ operation: EntityOperation,
        below parent: EntityID?
    ) -> Entity? {
        guard let key = rules.schema[operation.type]?.naturalKey, !key.isEmpty else { return nil }
        let fields = entity?.fields ?? operation.fields
        return entities.values.map(\.entity).first { other in
            other.parent == parent && other.type == operation.type && !other.isDeleted
                && other.id != entity?.id && key.allSatisfy { other.fields[$0] == fields[$0] }
        }
    }

    private mutating func apply(_ stored: StoredEntity, by operation: EntityOperation) {
        if operation.kind == .create {
            nextID += 1
            creations[Key(device: stored.creator, opID: operation.opID)] = stored.entity.id
        }
        store(stored)
        if stored.entity.isDeleted { cascade(stored, below: stored.entity.id) }
    }

    private mutating func cascade(_ deleted: StoredEntity, below id: EntityID) {
        for child in entities.values where child.entity.parent == id && !child.entity.isDeleted {
            store(rules.cascade(deleted, to: child))
            cascade(deleted, below: child.entity.id)
        }
    }

    private mutating func store(_ stored: StoredEntity) {
        clock += 1
        changedAt[stored.entity.id] = clock
        entities[stored.entity.id] = stored
        for case .string(let text) in stored.entity.fields.values { written.insert(text) }
    }
}
