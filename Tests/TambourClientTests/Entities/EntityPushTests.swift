import TambourClient
import TambourProtocol
import Testing

/// The content, the order and the ids of pushed operations.
@Suite("Pushing entities")
struct EntityPushTests {
    private typealias Fixture = EntityFixture

    @Test("deletions go first, then creations, parents before children, then updates")
    func order() throws {
        var fixture = Fixture()
        _ = fixture.local.pulled([
            Fixture.entity(4, Fixture.note, below: 2), Fixture.entity(5, Fixture.profile, below: 1),
        ])
        try fixture.update(["a": .int(2)])
        let profile = try fixture.create(Fixture.profile, below: .server(1))
        let note = try fixture.create(Fixture.note, below: profile)
        try fixture.delete(.server(4))
        try fixture.delete(.server(5))
        let other = try fixture.create(Fixture.profile, below: .server(1))

        let operations = fixture.push()
        #expect(operations.map(\.kind) == [.delete, .delete, .create, .create, .create, .update])
        #expect(
            operations.map(\.id) == [.server(5), .server(4), profile, other, note, .server(3)]
        )
        #expect(operations.map(\.parent)[4] == profile)
        #expect(operations.map(\.opID) == [500, 501, 502, 503, 504, 505])
        #expect(operations.map(\.base) == [1, 1, 0, 0, 0, 1])
    }

    @Test("what is below a deletion is held back, and void once the deletion is certain")
    func pruning() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        let created = try fixture.create(Fixture.note)
        try fixture.delete(.server(2))
        #expect(fixture.local.entity(.server(3)) == nil)
        #expect(fixture.push().map(\.id) == [.server(2)])
        try fixture.reply(Fixture.applied(2))
        #expect(fixture.push().isEmpty)
        #expect(fixture.local.rows.updates.isEmpty)
        #expect(fixture.local.rows.entities.allSatisfy { $0.id != created })
    }

    @Test("what is below a deletion is pushed after all if the deletion is given up")
    func pruningTakenBack() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        try fixture.delete(.server(2))
        let theirs = Fixture.entity(2, Fixture.profile, below: 1, version: 2)
        _ = try fixture.exchange(.conflict(.deleteUpdate, server: theirs))
        #expect(fixture.push().isEmpty)
        _ = try fixture.local.resolve(.server(2), .theirs, at: 3_000)
        #expect(fixture.push().map(\.id) == [.server(3)])
    }

    @Test("what does not go with its parent is deleted before it")
    func remainingChildren() throws {
        var fixture = Fixture(preferenceCascades: false)
        _ = fixture.local.pulled([Fixture.entity(6, Fixture.preference, below: 2)])
        #expect(throws: LocalEntityError.self) { try fixture.delete(.server(2)) }
        try fixture.delete(.server(6))
        try fixture.delete(.server(2))
        #expect(fixture.push().map(\.id) == [.server(6), .server(2)])
    }

    @Test("a batch has a largest size, and what has to wait takes no place in it")
    func size() throws {
        var fixture = Fixture(maxOperations: 3)
        let profile = try fixture.create(Fixture.profile, below: .server(1))
        for _ in 0..<4 { _ = try fixture.create(Fixture.note, below: profile) }
        try fixture.update(["a": .int(2)])
        #expect(fixture.push().count == 3)
        try fixture.reply(
            Fixture.rejected(.tooLarge),
            .skipped(because: 500),
            .skipped(because: 500)
        )
        // All four notes wait for the profile.
        #expect(fixture.push().map(\.id) == [.server(3)])
    }

    @Test("without a reply the same batch is sent again, whatever the user did since")
    func again() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        let first = fixture.push()
        #expect(fixture.push().isEmpty)
        try fixture.update(["a": .int(3)])
        _ = try fixture.create(Fixture.note)
        fixture.local.dropped()
        #expect(throws: LocalEntityError.unexpectedReply) { try fixture.reply(Fixture.applied(3)) }
        #expect(fixture.push() == first)
        fixture.local = LocalEntities(schema: fixture.schema, rows: fixture.local.rows)
        #expect(fixture.push() == first)
        #expect(throws: LocalEntityError.unexpectedReply) { try fixture.reply() }
        try fixture.reply(Fixture.applied(3))
        #expect(fixture.push().map(\.base) == [0, 2])
    }

    @Test("nothing is pushed for what was created and deleted again")
    func nothing() throws {
        var fixture = Fixture()
        let note = try fixture.create(Fixture.note)
        try fixture.delete(note)
        #expect(fixture.push().isEmpty)
        #expect(!fixture.local.rows.entities.map(\.id).contains(note))
    }
}
