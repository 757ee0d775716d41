import TambourMessenger
import TambourProtocol
import TambourStore
import Testing

/// The conflict matrix: every operation on every state of the stored entity, under every policy.
@Suite("Entity rules")
struct EntityRulesTests {
    private static let policies: [EntitySchema.Policy] = [
        .cas, .lww, .merge(contested: .cas), .merge(contested: .lww),
    ]
    private static let lww: [EntitySchema.Policy] = [.lww, .merge(contested: .lww)]
    private static let cas: [EntitySchema.Policy] = [.cas, .merge(contested: .cas)]

    private let note = EntityType("note")
    private let profile = EntityType("profile")
    private let now: Int64 = 1_000_000

    private func rules(
        _ policy: EntitySchema.Policy,
        _ deletion: EntitySchema.Deletion = .deleteWins,
        key: [String] = []
    ) -> EntityRules {
        EntityRules(
            schema: EntitySchema([
                .init(type: profile, parent: nil, policy: .cas, fields: [:]),
                .init(
                    type: note,
                    parent: profile,
                    policy: policy,
                    deletion: deletion,
                    fields: ["a": .int, "b": .int, "text": .string],
                    naturalKey: key,
                    maxBytes: 40
                ),
            ])
        )
    }

    private func situation(
        _ current: StoredEntity?,
        parent: EntityRules.ParentState? = nil,
        twin: Entity? = nil,
        hasRemainingChildren: Bool = false,
        known: EntityResult? = nil,
        device: Int64 = 5,
        clientNow: Int64? = nil
    ) -> EntityRules.Situation {
        .init(
            current: current,
            parent: parent ?? .live(profile),
            twin: twin,
            hasRemainingChildren: hasRemainingChildren,
            known: known,
            device: device,
            newID: 77,
            now: now,
            clientNow: clientNow ?? now
        )
    }

    private func operation(
        _ kind: EntityChangeKind,
        base: Int64 = 1,
        modified: Int64 = 900,
        _ fields: [String: FieldValue] = [:]
    ) -> EntityOperation {
        EntityOperation(
            opID: 9,
            kind: kind,
            id: kind == .create ? .local(1) : .server(4),
            type: note,
            parent: .server(3),
            base: base,
            modified: modified,
            fields: fields
        )
    }

    /// Version 1: `a` is 1, `b` is 1, written by device 4 at time 500.
    private var first: StoredEntity {
        StoredEntity(
            entity: Entity(
                id: .server(4),
                type: note,
                parent: .server(3),
                version: 1,
                modified: 500,
                fields: ["a": .int(1), "b": .int(1)]
            ),
            device: 4,
            creator: 4
        )
    }

    /// Returns the state after the rules apply one more operation of device 4.
    private func after(
        _ rules: EntityRules,
        _ operation: EntityOperation,
        on stored: StoredEntity
    ) throws -> StoredEntity {
        let decision = rules.decide(operation, in: situation(stored, device: 4))
        guard case .apply(let next, _) = decision else { throw Unexpected(decision: decision) }
        return next
    }

    private struct Unexpected: Error {
        var decision: EntityDecision
    }

    private func applied(_ decision: EntityDecision) throws -> (StoredEntity, EntityResult.Applied)
    {
        guard case .apply(let stored, let applied) = decision else {
            throw Unexpected(decision: decision)
        }
        return (stored, applied)
    }

    // MARK: Server unchanged

    @Test("an unchanged entity is updated", arguments: policies)
    func updateUnchanged(policy: EntitySchema.Policy) throws {
        let operation = operation(.update, ["a": .int(2), "b": .null])
        let (stored, result) = try applied(rules(policy).decide(operation, in: situation(first)))
        #expect(stored.entity.fields == ["a": .int(2)])
        #expect(stored.entity.version == 2)
        #expect(stored.entity.modified == 900)
        #expect(stored.device == 5)
        #expect(result == .init(id: .server(4), version: 2, modified: 900))
    }

    @Test("an unchanged entity is deleted", arguments: policies)
    func deleteUnchanged(policy: EntitySchema.Policy) throws {
        let decision = rules(policy).decide(operation(.delete), in: situation(first))
        let (stored, result) = try applied(decision)
        #expect(stored.entity.isDeleted)
        #expect(stored.entity.fields.isEmpty)
        #expect(result == .init(id: .server(4), version: 2, modified: 900))
    }

    @Test("an entity is created", arguments: policies + [.append])
    func create(policy: EntitySchema.Policy) throws {
        let operation = operation(.create, base: 0, ["a": .int(2), "b": .null])
        let (stored, result) = try applied(rules(policy).decide(operation, in: situation(nil)))
        #expect(
            stored.entity
                == Entity(
                    id: .server(77),
                    type: note,
                    parent: .server(3),
                    version: 1,
                    modified: 900,
                    createdBy: 9,
                    fields: ["a": .int(2)]
                )
        )
        #expect(stored.creator == 5)
        #expect(result == .init(id: .server(77), version: 1, modified: 900))
        #expect(stored.creationResult == .applied(result))
    }

    @Test("what is based on the newest version is newer, whatever its clock says")
    func neverBack() throws {
        let decision = rules(.lww).decide(operation(.update, modified: 100), in: situation(first))
        #expect(try applied(decision).0.entity.modified == 500)
    }

    // MARK: Server updated

    @Test("an update of the same field is a conflict", arguments: cas)
    func updateUpdatedCAS(policy: EntitySchema.Policy) throws {
        let rules = rules(policy)
        let second = try after(rules, operation(.update, ["a": .int(3)]), on: first)
        let decision = rules.decide(operation(.update, ["a": .int(2)]), in: situation(second))
        #expect(decision == .conflict(.updateUpdate, server: second.copy))
    }

    @Test("an update of another field is a conflict under cas and joined under merge")
    func updateOther() throws {
        for policy in Self.policies {
            let rules = rules(policy)
            let second = try after(
                rules,
                operation(.update, modified: 700, ["a": .int(3)]),
                on: first
            )
            let decision = rules.decide(operation(.update, ["b": .int(2)]), in: situation(second))
            if policy == .cas {
                #expect(decision == .conflict(.updateUpdate, server: second.copy))
            } else {
                let (stored, result) = try applied(decision)
                #expect(stored.entity.fields == ["a": .int(3), "b": .int(2)])
                #expect(result.entity == stored.copy)
                #expect(stored.entity.version == 3)
            }
        }
    }

    @Test("fields that got the same value on both sides are no conflict under merge")
    func mergeSameValue() throws {
        let rules = rules(.merge(contested: .cas))
        let second = try after(rules, operation(.update, ["a": .int(3)]), on: first)
        let operation = operation(.update, ["a": .int(3), "b": .int(2)])
        let (stored, _) = try applied(rules.decide(operation, in: situation(second)))
        #expect(stored.entity.fields == ["a": .int(3), "b": .int(2)])
    }

    @Test("a field that was changed and changed back is contested nevertheless")
    func mergeChangedBack() throws {
        let rules = rules(.merge(contested: .cas))
        let second = try after(rules, operation(.update, ["a": .int(3)]), on: first)
        let third = try after(rules, operation(.update, base: 2, ["a": .int(1)]), on: second)
        let decision = rules.decide(operation(.update, ["a": .int(2)]), in: situation(third))
        #expect(decision == .conflict(.updateUpdate, server: third.copy))
    }

    @Test("what the device had seen is not contested under merge")
    func mergeSeen() throws {
        let rules = rules(.merge(contested: .cas))
        let second = try after(rules, operation(.update, ["a": .int(3)]), on: first)
        let third = try after(rules, operation(.update, base: 2, ["b": .int(4)]), on: second)
        let operation = operation(.update, base: 2, ["a": .int(5)])
        let (stored, _) = try applied(rules.decide(operation, in: situation(third)))
        #expect(stored.entity.fields == ["a": .int(5), "b": .int(4)])
    }

    @Test("the later update wins, and the loser is told", arguments: lww)
    func updateUpdatedLWW(policy: EntitySchema.Policy) throws {
        let rules = rules(policy)
        let second = try after(rules, operation(.update, modified: 700, ["a": .int(3)]), on: first)
        let later = operation(.update, modified: 701, ["a": .int(2)])
        let (stored, result) = try applied(rules.decide(later, in: situation(second)))
        #expect(stored.entity.fields == ["a": .int(2), "b": .int(1)])
        #expect(result.loser == second.copy)
        #expect(result.entity == stored.copy)

        let earlier = operation(.update, modified: 699, ["a": .int(2)])
        let decision = rules.decide(earlier, in: situation(second))
        #expect(decision == .conflict(.superseded, server: second.copy))
    }

    @Test("of two updates of one time that of the higher device wins", arguments: lww)
    func ties(policy: EntitySchema.Policy) throws {
        let rules = rules(policy)
        let second = try after(rules, operation(.update, modified: 700, ["a": .int(3)]), on: first)
        let equal = operation(.update, modified: 700, ["a": .int(2)])
        for (device, wins) in [(Int64(3), false), (4, true), (5, true)] {
            let decision = rules.decide(equal, in: situation(second, device: device))
            if wins {
                _ = try applied(decision)
            } else {
                #expect(decision == .conflict(.superseded, server: second.copy))
            }
        }
    }

    @Test("merge by time decides field by field")
    func mergeByTime() throws {
        let rules = rules(.merge(contested: .lww))
        let second = try after(rules, operation(.update, modified: 700, ["a": .int(3)]), on: first)
        let third = try after(
            rules,
            operation(.update, base: 2, modified: 800, ["b": .int(4)]),
            on: second
        )
        let operation = operation(.update, modified: 750, ["a": .int(8), "b": .int(8)])
        let (stored, result) = try applied(rules.decide(operation, in: situation(third)))
        #expect(stored.entity.fields == ["a": .int(8), "b": .int(4)])
        #expect(stored.entity.modified == 800)
        #expect(result.entity == stored.copy)
        #expect(result.loser == third.copy)
    }

    @Test("what merges without a loss has no loser")
    func mergeWithoutLoss() throws {
        let rules = rules(.merge(contested: .lww))
        let second = try after(rules, operation(.update, modified: 700, ["a": .int(3)]), on: first)
        for fields in [["b": FieldValue.int(8)], ["a": .int(3)], ["a": .int(3), "b": .int(8)]] {
            let update = operation(.update, modified: 750, fields)
            let (stored, result) = try applied(rules.decide(update, in: situation(second)))
            #expect(result.entity == stored.copy)
            #expect(result.loser == nil)
        }
        // If the update is older than the competing update, only the uncontested fields of the
        // older update apply.
        let older = operation(.update, modified: 600, ["a": .int(9), "b": .int(8)])
        let (stored, result) = try applied(rules.decide(older, in: situation(second)))
        #expect(stored.entity.fields == ["a": .int(3), "b": .int(8)])
        #expect(result.loser == nil)
    }

    @Test("a deletion of what was updated is a conflict", arguments: cas)
    func deleteUpdatedCAS(policy: EntitySchema.Policy) throws {
        let rules = rules(policy)
        let second = try after(rules, operation(.update, ["a": .int(3)]), on: first)
        let decision = rules.decide(operation(.delete), in: situation(second))
        #expect(decision == .conflict(.deleteUpdate, server: second.copy))
    }

    @Test("a deletion of what was updated follows the time", arguments: lww)
    func deleteUpdatedLWW(policy: EntitySchema.Policy) throws {
        let rules = rules(policy)
        let second = try after(rules, operation(.update, modified: 700, ["a": .int(3)]), on: first)
        let (stored, result) = try applied(
            rules.decide(operation(.delete, modified: 701), in: situation(second))
        )
        #expect(stored.entity.isDeleted)
        #expect(stored.entity.version == 3)
        #expect(result.loser == second.copy)
        let decision = rules.decide(operation(.delete, modified: 699), in: situation(second))
        #expect(decision == .conflict(.superseded, server: second.copy))
    }

    // MARK: Server deleted

    @Test("an update of what was deleted is a conflict", arguments: policies)
    func updateDeleted(policy: EntitySchema.Policy) throws {
        let rules = rules(policy)
        let deleted = try after(rules, operation(.delete, modified: 600), on: first)
        let update = operation(.update, ["a": .int(2)])
        #expect(
            rules.decide(update, in: situation(deleted))
                == .conflict(.updateDelete, server: deleted.copy)
        )
        #expect(rules.decide(update, in: situation(nil)) == .conflict(.updateDelete, server: nil))
    }

    @Test("where updates win, an update brings back what was deleted", arguments: policies)
    func undelete(policy: EntitySchema.Policy) throws {
        let rules = rules(policy, .updateWins)
        let deleted = try after(rules, operation(.delete, modified: 950), on: first)
        #expect(deleted.copy.fields.isEmpty)
        let (stored, result) = try applied(
            rules.decide(operation(.update, ["a": .int(2)]), in: situation(deleted))
        )
        #expect(!stored.entity.isDeleted)
        #expect(stored.entity.fields == ["a": .int(2), "b": .int(1)])
        #expect(stored.entity.version == 3)
        #expect(stored.entity.modified == 950)
        #expect(result.entity == stored.copy)
    }

    @Test("an unseen update before the deletion is not lost on the way back")
    func undeleteContested() throws {
        for policy in Self.policies {
            let rules = rules(policy, .updateWins)
            let second = try after(
                rules,
                operation(.update, modified: 950, ["a": .int(3)]),
                on: first
            )
            let deleted = try after(
                rules,
                operation(.delete, base: 2, modified: 960),
                on: second
            )
            let decision = rules.decide(
                operation(.update, ["a": .int(2)]),
                in: situation(deleted)
            )
            if policy == .lww {
                #expect(try applied(decision).0.entity.fields["a"] == .int(2))
            } else {
                #expect(decision == .conflict(.updateDelete, server: deleted.copy))
            }
        }
    }

    @Test("what was deleted stays so where its natural key is taken")
    func undeleteTaken() throws {
        let rules = rules(.lww, .updateWins, key: ["text"])
        let deleted = try after(rules, operation(.delete), on: first)
        let decision = rules.decide(
            operation(.update, ["a": .int(2)]),
            in: situation(deleted, twin: first.entity)
        )
        #expect(decision == .conflict(.updateDelete, server: deleted.copy))
    }

    @Test("a deletion of what is deleted is done", arguments: policies)
    func deleteDeleted(policy: EntitySchema.Policy) throws {
        let rules = rules(policy)
        let deleted = try after(rules, operation(.delete, modified: 600), on: first)
        for parent in [EntityRules.ParentState.live(profile), .gone] {
            #expect(
                rules.decide(operation(.delete), in: situation(deleted, parent: parent))
                    == .replayed(.applied(.init(id: .server(4), version: 2, modified: 600)))
            )
            #expect(
                rules.decide(operation(.delete), in: situation(nil, parent: parent))
                    == .replayed(.applied(.init(id: .server(4), version: 1, modified: 900)))
            )
        }
    }

    // MARK: Parent deleted

    @Test("nothing is created or updated below what is deleted", arguments: policies)
    func parentDeleted(policy: EntitySchema.Policy) throws {
        for deletion in [EntitySchema.Deletion.deleteWins, .updateWins] {
            let rules = rules(policy, deletion)
            let refusal = EntityDecision.rejected(EntityRefusal(.parentDeleted, at: "/parent"))
            let deleted = try after(rules, operation(.delete), on: first)
            let update = operation(.update, ["a": .int(2)])
            #expect(rules.decide(update, in: situation(deleted, parent: .gone)) == refusal)
            #expect(rules.decide(update, in: situation(nil, parent: .gone)) == refusal)
            let create = operation(.create, base: 0, ["a": .int(2)])
            #expect(rules.decide(create, in: situation(nil, parent: .gone)) == refusal)
        }
    }

    // MARK: Creations

    @Test("a natural key that is taken is a conflict with its owner", arguments: policies)
    func duplicate(policy: EntitySchema.Policy) {
        let decision = rules(policy, key: ["text"]).decide(
            operation(.create, base: 0, ["text": .string("k")]),
            in: situation(nil, twin: first.entity)
        )
        #expect(decision == .conflict(.duplicate, server: first.entity))
    }

    @Test("a parent of another type, none, or one too many is refused")
    func wrongParent() {
        let refusal = EntityDecision.rejected(EntityRefusal(.wrongParent, at: "/parent"))
        for parent in [EntityRules.ParentState.live(note), .none] {
            let decision = rules(.cas).decide(
                operation(.create),
                in: situation(nil, parent: parent)
            )
            #expect(decision == refusal)
        }
        var root = operation(.create)
        root.type = profile
        #expect(rules(.cas).decide(root, in: situation(nil)) == refusal)
    }

    // MARK: Other rules

    @Test("an operation that is known gets its first result, whatever has happened since")
    func known() {
        let results: [EntityResult] = [
            .applied(.init(id: .server(4), version: 2, modified: 3)),
            .conflict(.updateDelete, server: nil),
            .rejected(EntityRefusal(.tooLarge, at: "/fields")),
        ]
        for result in results {
            for known in [result, .replayed(result)] {
                for kind in [EntityChangeKind.create, .update, .delete] {
                    let decision = rules(.cas).decide(
                        operation(kind),
                        in: situation(first, known: known)
                    )
                    #expect(decision == .replayed(result))
                    #expect(decision.result.first == result)
                }
            }
        }
    }

    @Test("fields are checked, and their size after the change")
    func flaws() throws {
        let rules = rules(.cas)
        let long = FieldValue.string(String(repeating: "x", count: 30))
        for (fields, error, path) in [
            (["c": .int(1)], ObjectError.unknownField, "/fields/c"),
            (["a": .string("")], .wrongFieldKind, "/fields/a"),
            (["text": long, "a": .int(1), "b": .int(1 << 20)], .tooLarge, "/fields"),
        ] as [([String: FieldValue], ObjectError, String)] {
            for kind in [EntityChangeKind.create, .update] {
                let decision = rules.decide(
                    operation(kind, fields),
                    in: situation(kind == .create ? nil : first)
                )
                #expect(decision == .rejected(EntityRefusal(error, at: path)))
            }
        }
        var unknown = operation(.update)
        unknown.type = EntityType("diary")
        #expect(
            rules.decide(unknown, in: situation(first))
                == .rejected(EntityRefusal(.unknownType, at: "/type"))
        )
        unknown.type = profile
        #expect(
            rules.decide(unknown, in: situation(first))
                == .rejected(EntityRefusal(.wrongType, at: "/type"))
        )
    }

    @Test("two changes that fit alone and not together are refused")
    func tooLargeTogether() throws {
        let rules = rules(.merge(contested: .cas))
        let text = FieldValue.string(String(repeating: "x", count: 22))
        let second = try after(rules, operation(.update, ["text": text]), on: first)
        let decision = rules.decide(
            operation(.update, ["a": .int(1 << 40), "b": .int(1 << 40)]),
            in: situation(second)
        )
        #expect(decision == .rejected(EntityRefusal(.tooLarge, at: "/fields")))
    }

    @Test("the natural key never changes")
    func fixedKey() {
        let decision = rules(.lww, key: ["a"]).decide(
            operation(.update, ["a": .int(2)]),
            in: situation(first)
        )
        #expect(decision == .rejected(EntityRefusal(.keyIsFixed, at: "/fields/a")))
    }

    @Test("elements of a series are neither changed nor deleted")
    func series() {
        for kind in [EntityChangeKind.update, .delete] {
            #expect(
                rules(.append).decide(operation(kind), in: situation(first))
                    == .rejected(EntityRefusal(.appendOnly, at: "/op"))
            )
        }
    }

    @Test("a child that does not go with its parent keeps it")
    func remainingChildren() {
        #expect(
            rules(.cas).decide(
                operation(.delete),
                in: situation(first, hasRemainingChildren: true)
            ) == .rejected(EntityRefusal(.childrenRemain, at: "/id"))
        )
    }

    @Test("descendants of what is deleted become tombstones of the same moment")
    func cascade() throws {
        let rules = rules(.cas)
        var deleted = first
        deleted.entity.isDeleted = true
        deleted.entity.modified = 950
        deleted.device = 8
        let child = rules.cascade(deleted, to: first)
        #expect(child.entity.isDeleted)
        #expect(child.entity.version == 2)
        #expect(child.entity.modified == 950)
        #expect(child.entity.fields.isEmpty)
        #expect(child.device == 8)
    }
}
