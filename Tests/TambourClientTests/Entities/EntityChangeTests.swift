import TambourClient
import TambourProtocol
import Testing

/// Two successive changes compose to one change or none. The tests cover every pair of change
/// kinds.
@Suite("Composition of changes")
struct EntityChangeTests {
    private static let base = Entity(
        id: .server(1),
        type: EntityType("note"),
        parent: nil,
        version: 3,
        modified: 0,
        fields: ["a": .int(1), "b": .int(2)]
    )
    private let create = EntityChange(kind: .create, fields: ["a": .int(5)], modified: 10)
    private let update = EntityChange(
        kind: .update,
        base: base,
        fields: ["a": .int(6), "b": .null],
        modified: 10
    )
    private let delete = EntityChange(kind: .delete, base: base, modified: 10)

    private func next(
        _ kind: EntityChangeKind,
        _ fields: [String: FieldValue] = [:]
    ) -> EntityChange {
        EntityChange(kind: kind, fields: fields, modified: 20)
    }

    @Test("a creation and an update are a creation with the new fields")
    func createUpdate() throws {
        let both = try create.followed(by: next(.update, ["a": .null, "b": .int(7)]))
        #expect(both == EntityChange(kind: .create, fields: ["b": .int(7)], modified: 20))
    }

    @Test("a creation and a deletion are nothing")
    func createDelete() throws {
        #expect(try create.followed(by: next(.delete)) == nil)
    }

    @Test("two updates are an update on the first base")
    func updateUpdate() throws {
        let both = try update.followed(by: next(.update, ["a": .null, "c": .int(7)]))
        #expect(
            both
                == EntityChange(
                    kind: .update,
                    base: Self.base,
                    fields: ["a": .null, "b": .null, "c": .int(7)],
                    modified: 20
                )
        )
    }

    @Test("an update and a deletion are a deletion on the first base")
    func updateDelete() throws {
        let both = try update.followed(by: next(.delete))
        #expect(both == EntityChange(kind: .delete, base: Self.base, modified: 20))
    }

    @Test("a deletion and a creation are an update to exactly what is created")
    func deleteCreate() throws {
        let both = try delete.followed(by: next(.create, ["b": .int(2), "c": .int(9)]))
        #expect(
            both
                == EntityChange(
                    kind: .update,
                    base: Self.base,
                    fields: ["a": .null, "b": .int(2), "c": .int(9)],
                    modified: 20
                )
        )
    }

    @Test("two deletions are one")
    func deleteDelete() throws {
        let both = try delete.followed(by: next(.delete))
        #expect(both == EntityChange(kind: .delete, base: Self.base, modified: 20))
    }

    @Test("nobody creates what is there or updates what is deleted")
    func impossible() {
        for (first, second) in [
            (create, next(.create)), (update, next(.create)), (delete, next(.update)),
        ] {
            #expect(throws: EntityChange.Impossible.self) { try first.followed(by: second) }
        }
    }
}
