import TambourGateway
import TambourMessenger
import TambourProtocol
import Testing

/// Checks that a batch rechecks the order of its operations and replaces local ids.
@Suite("Entity batch")
struct EntityBatchTests {
    private var batch = EntityBatch()

    private func operation(
        _ kind: EntityChangeKind,
        _ id: EntityID,
        below parent: EntityID? = nil,
        opID: Int64 = 1
    ) -> EntityOperation {
        EntityOperation(
            opID: opID,
            kind: kind,
            id: id,
            type: EntityType("note"),
            parent: parent,
            base: 0,
            modified: 0,
            fields: [:]
        )
    }

    private func applied(_ id: Int64) -> EntityDecision {
        .replayed(.applied(.init(id: .server(id), version: 1, modified: 0)))
    }

    private func rejected(_ error: ObjectError, _ path: String) -> EntityBatch.Admission {
        .settled(.rejected(EntityRefusal(error, at: path)))
    }

    @Test("local ids of earlier creations are resolved, as parents and as entities")
    mutating func resolves() {
        let parent = operation(.create, .local(1))
        #expect(batch.admit(parent) == .tried(parent))
        batch.record(applied(40), of: parent)
        let child = operation(.create, .local(2), below: .local(1))
        #expect(batch.admit(child) == .tried(operation(.create, .local(2), below: .server(40))))
        batch.record(applied(41), of: child)
        #expect(
            batch.admit(operation(.update, .local(2), below: .local(1)))
                == .tried(operation(.update, .server(41), below: .server(40)))
        )
    }

    @Test("a local id nobody created, or created twice, is refused")
    mutating func unknownReferences() {
        let parent = operation(.create, .local(1))
        _ = batch.admit(parent)
        batch.record(applied(40), of: parent)
        #expect(batch.admit(parent) == rejected(.unknownReference, "/id"))
        #expect(
            batch.admit(operation(.create, .local(2), below: .local(3)))
                == rejected(.unknownReference, "/parent")
        )
        #expect(
            batch.admit(operation(.update, .local(3))) == rejected(.unknownReference, "/id")
        )
    }

    @Test("a creation under the server's own id is refused")
    mutating func creationWithServerID() {
        #expect(
            batch.admit(operation(.create, .server(1))) == rejected(.unknownReference, "/id")
        )
    }

    @Test(
        "what stands below a failed creation is skipped, down to its grandchildren",
        arguments: [
            EntityDecision.conflict(.duplicate, server: nil),
            .rejected(EntityRefusal(.tooLarge, at: "/fields")),
            .replayed(.rejected(EntityRefusal(.tooLarge, at: "/fields"))),
        ]
    )
    mutating func skips(failure: EntityDecision) {
        let parent = operation(.create, .local(1), opID: 7)
        _ = batch.admit(parent)
        batch.record(failure, of: parent)
        let child = operation(.create, .local(2), below: .local(1), opID: 8)
        #expect(batch.admit(child) == .settled(.skipped(because: 7)))
        batch.record(.skipped(because: 7), of: child)
        let grandchild = operation(.create, .local(3), below: .local(2), opID: 9)
        #expect(batch.admit(grandchild) == .settled(.skipped(because: 7)))
        #expect(batch.admit(operation(.update, .local(1))) == .settled(.skipped(because: 7)))
    }

    @Test("what stands below a failed deletion is skipped, below a failed update it is not")
    mutating func skipsBelowDeletion() {
        let conflict = EntityDecision.conflict(.deleteUpdate, server: nil)
        let deletion = operation(.delete, .server(5), opID: 7)
        _ = batch.admit(deletion)
        batch.record(conflict, of: deletion)
        #expect(
            batch.admit(operation(.create, .local(1), below: .server(5)))
                == .settled(.skipped(because: 7))
        )
        let update = operation(.update, .server(6), opID: 8)
        _ = batch.admit(update)
        batch.record(.conflict(.updateUpdate, server: nil), of: update)
        let child = operation(.update, .server(9), below: .server(6))
        #expect(batch.admit(child) == .tried(child))
    }

    @Test("deletions come first, then creations, then updates")
    mutating func order() {
        _ = batch.admit(operation(.create, .local(1)))
        #expect(batch.admit(operation(.delete, .server(2))) == rejected(.outOfOrder, "/op"))
        let update = operation(.update, .server(2))
        #expect(batch.admit(update) == .tried(update))
        #expect(batch.admit(operation(.create, .local(3))) == rejected(.outOfOrder, "/op"))
    }
}
