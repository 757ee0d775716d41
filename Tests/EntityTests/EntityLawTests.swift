import TambourMessenger
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

/// Rules that every decision of the server must obey, even if a device lies or is faulty.
@Suite("Laws of entity decisions")
struct EntityLawTests {
    private struct Question: CustomStringConvertible {
        var schema: Int
        var operation: EntityOperation
        var situation: EntityRules.Situation

        var description: String { "schema \(schema)\n\(operation)\n\(situation)" }
    }

    @Test("hold for any operation in any situation")
    func hold() {
        RandomRun.play(
            count: 1_000,
            soak: 10_000,
            make: { random in (Self.question(&random), [String]()) },
            check: { question, _ in try Self.check(question) }
        )
    }

    private static func question(_ random: inout SeededGenerator) -> Question {
        let numbers: [Int64] = [0, 1, 2, 3, 100, 200, .max, .min, .max - 1, -1]
        func number() -> Int64 { numbers[random.below(numbers.count)] }
        let type = [EntityType.note, .profile, .measurement, EntityType("diary")][random.below(4)]
        let operation = EntityOperation(
            opID: number(),
            kind: [.create, .update, .delete][random.below(3)],
            id: random.below(4) == 0 ? .local(number()) : .server(number()),
            type: type,
            parent: random.below(4) == 0 ? nil : .server(number()),
            base: number(),
            modified: number(),
            fields: fields(&random)
        )
        var current: StoredEntity?
        if random.below(5) > 0 {
            let version = Int64(1 + random.below(4))
            let isDeleted = random.below(3) == 0
            let type = random.below(5) == 0 ? EntityType.profile : type
            let kind = Schemas.tree()[type]
            // Keep each field small: the limit applies to all fields together.
            let fields = fields(&random).filter { name, value in
                kind?.flaw(in: [name: value]) == nil && value != .null && value.encodedSize < 50
            }
            var stored = StoredEntity(
                entity: Entity(
                    id: .server(7),
                    type: type,
                    parent: .server(1),
                    version: version,
                    modified: Int64(random.below(300)),
                    isDeleted: isDeleted,
                    fields: isDeleted ? [:] : fields
                ),
                device: Int64(random.below(3)),
                creator: 1
            )
            for name in ["title", "body"] where random.below(2) == 0 {
                stored.stamps[name] = .init(
                    version: 1 + Int64(random.below(Int(version))),
                    modified: Int64(random.below(300)),
                    device: 1
                )
            }
            current = stored
        }
        let parents: [EntityRules.ParentState] = [.none, .gone, .live(.profile), .live(.account)]
        let situation = EntityRules.Situation(
            current: current,
            parent: parents[random.below(parents.count)],
            hasRemainingChildren: random.below(6) == 0,
            device: Int64(random.below(3)),
            newID: 8,
            now: 250,
            clientNow: number()
        )
        return Question(
            schema: random.below(Schemas.all.count),
            operation: operation,
            situation: situation
        )
    }

    private static func fields(_ random: inout SeededGenerator) -> [String: FieldValue] {
        let values: [FieldValue] = [
            .null, .string("a"), .string("b"), .string(String(repeating: "x", count: 70)), .int(1),
        ]
        var fields: [String: FieldValue] = [:]
        for name in ["title", "body", "name"] where random.below(3) == 0 {
            fields[name] = values[random.below(values.count)]
        }
        return fields
    }

    private static func check(_ question: Question) throws {
        let rules = EntityRules(schema: Schemas.all[question.schema].server)
        let (operation, situation) = (question.operation, question.situation)
        let decision = rules.decide(operation, in: situation)
        guard case .apply(let stored, let applied) = decision else { return }
        let entity = stored.entity
        guard let kind = rules.schema[entity.type], entity.type == operation.type else {
            throw Fault("an entity of type \(entity.type) is written")
        }
        guard kind.flaw(in: entity.fields) == nil, kind.flaw(inWhole: entity.fields) == nil,
            !entity.fields.values.contains(.null)
        else { throw Fault("an entity with faulty fields is written") }
        guard applied.version == entity.version, applied.modified == entity.modified,
            applied.id == entity.id, applied.entity.map({ $0 == stored.copy }) ?? true
        else { throw Fault("the answer is not what is written") }
        guard entity.modified >= 0, stored.device == situation.device else {
            throw Fault("the place in time is wrong")
        }
        guard let current = situation.current else {
            guard operation.kind == .create, entity.version == 1 else {
                throw Fault("made from nothing")
            }
            guard entity.modified <= situation.now else { throw Fault("in the future") }
            return
        }
        if operation.kind == .create { return }
        guard entity.version == current.entity.version + 1 else {
            throw Fault("the version does not count on")
        }
        guard entity.modified >= current.entity.modified,
            entity.modified <= max(current.entity.modified, situation.now)
        else { throw Fault("time runs back, or ahead") }
        guard entity.isDeleted == (operation.kind == .delete) else { throw Fault("half deleted") }
        let isSeen = operation.base == current.entity.version
        if !isSeen, kind.policy == .cas, !current.entity.isDeleted {
            throw Fault("cas applies what was based on another version")
        }
        for (name, value) in current.entity.fields
        where operation.kind == .update && operation.fields[name] == nil {
            guard entity.fields[name] == value else { throw Fault("\(name) was not to change") }
        }
        // If the device cannot know the resulting fields, the server must report them.
        let guess = current.entity.fields.patched(with: operation.fields)
        if operation.kind == .update, !isSeen || entity.fields != guess {
            guard applied.entity != nil else { throw Fault("the device is not told the outcome") }
        }
    }
}
