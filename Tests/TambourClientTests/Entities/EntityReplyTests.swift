import TambourClient
import TambourProtocol
import Testing

/// The effects of a reply on the change it answers, on later changes, and on ids.
@Suite("Replies to pushed entities")
struct EntityReplyTests {
    private typealias Fixture = EntityFixture

    @Test("a new id replaces the local one everywhere at once, and the row on the screen stays")
    func rename() throws {
        var fixture = Fixture()
        let profile = try fixture.create(Fixture.profile, below: .server(1))
        let note = try fixture.create(Fixture.note, below: profile)
        let key = fixture.local.entity(note)?.uiKey
        #expect(fixture.push().count == 2)
        try fixture.update(note, ["a": .int(2)])
        let later = try fixture.create(Fixture.note, below: profile)
        try fixture.reply(Fixture.applied(20, version: 1), Fixture.applied(30, version: 1))

        let rows = fixture.local.rows
        #expect(rows.entities.filter { $0.id.isLocal }.map(\.id) == [later])
        #expect(rows.entities.filter { $0.parent == .server(20) }.count == 2)
        #expect(rows.updates.map(\.id) == [.server(30), later])
        #expect(rows.aliases.map(\.server) == [.server(20), .server(30)])
        #expect(fixture.local.entity(.server(30))?.uiKey == key)
        #expect(fixture.local.entity(note)?.uiKey == key)
        let operations = fixture.push()
        #expect(operations.map(\.id) == [later, .server(30)])
        #expect(operations.map(\.parent) == [.server(20), .server(20)])
        #expect(operations.map(\.base) == [0, 1])
    }

    @Test("late references by the local id find the entity")
    func lateReferences() throws {
        var fixture = Fixture()
        let note = try fixture.create(Fixture.note)
        _ = try fixture.exchange(Fixture.applied(30, version: 1))
        try fixture.update(note, ["a": .int(2)])
        #expect(fixture.push().map(\.id) == [.server(30)])
    }

    @Test("a change behind an applied one is based on its result")
    func waiting() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.push()
        try fixture.update(["a": .int(3)])
        let merged = Fixture.note3(version: 5, ["a": .int(2), "b": .int(9)])
        try fixture.reply(Fixture.applied(3, version: 5, entity: merged))
        #expect(fixture.fields() == ["a": .int(3), "b": .int(9)])
        #expect(fixture.push().map(\.base) == [5])
    }

    @Test("a replayed result counts as the first one")
    func replayed() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = try fixture.exchange(.replayed(Fixture.applied(3)))
        #expect(fixture.local.entity(.server(3))?.state == .synced)
        #expect(fixture.local.entity(.server(3))?.entity.version == 2)
        #expect(fixture.fields() == ["a": .int(2), "b": .int(1)])
    }

    @Test("a conflict joins what was sent and what came after it")
    func conflict() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.push()
        try fixture.update(["b": .int(2)])
        let theirs = Fixture.note3(version: 2, ["a": .int(7)])
        try fixture.reply(.conflict(.updateUpdate, server: theirs))
        let conflict = try #require(fixture.local.conflicts.first)
        #expect(conflict.kind == .updateUpdate)
        #expect(conflict.mine.fields == ["a": .int(2), "b": .int(2)])
        #expect(conflict.mine.base?.version == 1)
        #expect(conflict.theirs == theirs)
        #expect(conflict.choices == [.mine, .theirs, .both])
        #expect(fixture.local.entity(.server(3))?.state == .conflict)
        #expect(fixture.fields() == ["a": .int(2), "b": .int(2)])
        #expect(fixture.push().isEmpty)
    }

    @Test("a conflict holds up nothing else")
    func conflictAlone() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = try fixture.exchange(
            .conflict(.updateUpdate, server: Fixture.note3(version: 2, ["a": .int(7)]))
        )
        let note = try fixture.create(Fixture.note)
        #expect(fixture.push().map(\.id) == [note])
    }

    @Test("a conflict over what both sides say is none")
    func settledConflict() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        let theirs = Fixture.note3(version: 2, ["a": .int(2), "b": .int(8)])
        _ = try fixture.exchange(.conflict(.updateUpdate, server: theirs))
        #expect(fixture.local.conflicts.isEmpty)
        #expect(fixture.local.entity(.server(3))?.entity == theirs)
    }

    @Test("a superseded change gives way, and what came after it goes on from the server's copy")
    func superseded() throws {
        var fixture = Fixture(note: .lww)
        try fixture.update(["a": .int(2)])
        _ = fixture.push()
        try fixture.update(["b": .int(2)])
        let theirs = Fixture.note3(version: 2, ["a": .int(7), "b": .int(7)])
        try fixture.reply(.conflict(.superseded, server: theirs))
        #expect(fixture.fields() == ["a": .int(7), "b": .int(2)])
        let operations = fixture.push()
        #expect(operations.map(\.base) == [2])
        #expect(operations.map(\.fields) == [["b": .int(2)]])
    }

    @Test("a superseded deletion brings the entity back, and what restored it is an update")
    func supersededDeletion() throws {
        var fixture = Fixture(note: .lww)
        try fixture.delete()
        _ = fixture.push()
        _ = try fixture.local.restore(.server(3), fields: ["a": .int(4)], at: 1_000)
        let theirs = Fixture.note3(version: 2, ["a": .int(7), "b": .int(7)])
        try fixture.reply(.conflict(.superseded, server: theirs))
        let operation = try #require(fixture.push().first)
        #expect(operation.kind == .update)
        #expect(operation.base == 2)
        #expect(operation.fields == ["a": .int(4), "b": .null])
    }

    @Test("what was restored behind a deletion is created anew in the same row of the screen")
    func restored() throws {
        var fixture = Fixture()
        let key = fixture.local.entity(.server(2))?.uiKey
        try fixture.delete(.server(2))
        _ = fixture.push()
        _ = try fixture.local.restore(.server(2), fields: ["a": .int(4)], at: 1_000)
        let note = try fixture.create(Fixture.note)
        try fixture.reply(Fixture.applied(2))
        let operations = fixture.push()
        #expect(operations.map(\.kind) == [.create, .create])
        #expect(operations[0].fields == ["a": .int(4)])
        #expect(operations[1].id == note)
        #expect(operations[1].parent == operations[0].id)
        #expect(fixture.local.entity(operations[0].id)?.uiKey == key)
    }

    @Test("a refused change waits for the user, and is tried again when he has changed it")
    func rejected() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        let first = try fixture.exchange(Fixture.rejected(.tooLarge))
        #expect(
            fixture.local.conflicts.map(\.kind) == [
                .rejected(error: "object.too.large", path: "/x")
            ]
        )
        #expect(fixture.push().isEmpty)
        try fixture.update(["b": .int(3)])
        let second = try #require(fixture.push().first)
        #expect(second.fields == ["a": .int(2), "b": .int(3)])
        #expect(second.opID != first?.opID)
    }

    @Test("a refused change is tried again together with one the user made meanwhile")
    func rejectedAndMended() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.push()
        try fixture.update(["a": .int(3)])
        try fixture.reply(Fixture.rejected(.tooLarge))
        #expect(fixture.push().map(\.fields) == [["a": .int(3)]])
    }

    @Test("when a parent created offline is refused its child waits, and goes with it later")
    func parentRejected() throws {
        var fixture = Fixture()
        let profile = try fixture.create(Fixture.profile, below: .server(1), ["a": .int(1)])
        let note = try fixture.create(Fixture.note, below: profile, ["a": .int(2)])
        #expect(fixture.push().count == 2)
        try fixture.reply(Fixture.rejected(.tooLarge), .skipped(because: 500))
        #expect(fixture.local.conflicts.map(\.id) == [profile])
        #expect(fixture.local.entity(note)?.state == .pending)
        #expect(fixture.push().isEmpty)
        _ = try fixture.local.resolve(profile, .mine, at: 3_000)
        #expect(fixture.push().map(\.id) == [profile, note])
    }

    @Test("dropping the refused parent drops what was created below it")
    func parentDropped() throws {
        var fixture = Fixture()
        let profile = try fixture.create(Fixture.profile, below: .server(1))
        _ = try fixture.create(Fixture.note, below: profile)
        _ = fixture.push()
        try fixture.reply(Fixture.rejected(.tooLarge), .skipped(because: 500))
        _ = try fixture.local.resolve(profile, .theirs, at: 3_000)
        #expect(fixture.local.rows.updates.isEmpty)
        #expect(fixture.local.rows.entities.count == 3)
    }

    @Test("a creation that the user withdrew and the server refused is gone with its children")
    func withdrawn() throws {
        var fixture = Fixture()
        let profile = try fixture.create(Fixture.profile, below: .server(1))
        _ = try fixture.create(Fixture.note, below: profile)
        _ = fixture.push()
        try fixture.delete(profile)
        try fixture.reply(Fixture.rejected(.tooLarge), .skipped(because: 500))
        #expect(fixture.local.rows.updates.isEmpty)
        #expect(fixture.local.rows.entities.count == 3)
    }
}
