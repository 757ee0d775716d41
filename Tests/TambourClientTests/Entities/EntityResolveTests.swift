import TambourClient
import TambourProtocol
import Testing

/// The effect of each user choice on each kind of conflict.
@Suite("Resolving conflicts of entities")
struct EntityResolveTests {
    private typealias Fixture = EntityFixture
    private let theirs = EntityFixture.note3(version: 2, ["a": .int(7), "b": .int(7)])

    /// Returns a fixture whose note was updated on both sides.
    private func updateUpdate() throws -> EntityFixture {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.local.pulled([theirs])
        return fixture
    }

    @Test("mine is the same change on the server's copy")
    func updateMine() throws {
        var fixture = try updateUpdate()
        _ = try fixture.local.resolve(.server(3), .mine, at: 9_000)
        #expect(fixture.fields() == ["a": .int(2), "b": .int(7)])
        let operation = try #require(fixture.push().first)
        #expect(operation.kind == .update)
        #expect(operation.base == 2)
        #expect(operation.fields == ["a": .int(2)])
        #expect(operation.modified == 9_000)
        // The server's note has changed once more.
        let newer = Fixture.note3(version: 3, ["a": .int(8)])
        try fixture.reply(.conflict(.updateUpdate, server: newer))
        #expect(fixture.local.conflicts.map(\.theirs) == [newer])
    }

    @Test("theirs drops the change")
    func updateTheirs() throws {
        var fixture = try updateUpdate()
        _ = try fixture.local.resolve(.server(3), .theirs, at: 9_000)
        #expect(fixture.local.entity(.server(3))?.entity == theirs)
        #expect(fixture.local.entity(.server(3))?.state == .synced)
        #expect(fixture.push().isEmpty)
    }

    @Test("both leaves theirs and creates a copy beside it")
    func updateBoth() throws {
        var fixture = try updateUpdate()
        _ = try fixture.local.resolve(.server(3), .both, at: 9_000)
        #expect(fixture.local.entity(.server(3))?.entity == theirs)
        let operation = try #require(fixture.push().first)
        #expect(operation.kind == .create)
        #expect(operation.parent == .server(2))
        #expect(operation.fields == ["a": .int(2), "b": .int(1)])
        #expect(fixture.local.entities(below: .server(2)).count == 2)
    }

    @Test("mine creates anew what was deleted, in its row of the screen and with its new children")
    func revive() throws {
        var fixture = Fixture()
        let key = fixture.local.entity(.server(2))?.uiKey
        try fixture.update(.server(2), ["a": .int(2)])
        let note = try fixture.create(Fixture.note)
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        #expect(fixture.local.conflicts.map(\.kind) == [.updateDelete, .parentDeleted])
        #expect(fixture.local.conflict(.server(2))?.choices == [.mine, .theirs])
        _ = try fixture.local.resolve(.server(2), .mine, at: 9_000)
        let operations = fixture.push()
        #expect(operations.map(\.kind) == [.create, .create])
        #expect(operations[0].fields == ["a": .int(2)])
        #expect(operations[1].id == note)
        #expect(operations[1].parent == operations[0].id)
        #expect(fixture.local.entity(operations[0].id)?.uiKey == key)
        #expect(fixture.local.conflicts.isEmpty)
    }

    @Test("what is in flight below an entity that is created anew stays as it was sent")
    func reviveAboveInFlight() throws {
        var fixture = Fixture()
        try fixture.update(.server(2), ["a": .int(2)])
        _ = fixture.local.pulled([
            Fixture.entity(2, Fixture.profile, below: 1, version: 2, fields: ["a": .int(3)])
        ])
        _ = try fixture.create(Fixture.note)
        let first = fixture.push()
        _ = fixture.local.pulled(
            [],
            tombstones: [Fixture.entity(2, Fixture.profile, below: 1, version: 3)]
        )
        _ = try fixture.local.resolve(.server(2), .mine, at: 9_000)
        fixture.local.dropped()
        #expect(first.count == 1)
        #expect(fixture.push() == first)
    }

    @Test("theirs leaves deleted what was deleted")
    func stayDeleted() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.local.pulled([], tombstones: [theirs])
        _ = try fixture.local.resolve(.server(3), .theirs, at: 9_000)
        #expect(fixture.local.entity(.server(3)) == nil)
        #expect(fixture.local.rows.updates.isEmpty)
    }

    @Test("mine deletes the server's newer version, theirs keeps it")
    func deleteUpdate() throws {
        for choice in [EntityChoice.mine, .theirs] {
            var fixture = Fixture()
            try fixture.delete()
            _ = fixture.local.pulled([theirs])
            #expect(fixture.local.conflicts.map(\.kind) == [.deleteUpdate])
            _ = try fixture.local.resolve(.server(3), choice, at: 9_000)
            #expect(fixture.fields() == (choice == .mine ? nil : theirs.fields))
            #expect(fixture.push().map(\.base) == (choice == .mine ? [2] : []))
        }
    }

    @Test("of a duplicate mine is an update of the other, theirs is the other; both keep one row")
    func duplicate() throws {
        for choice in [EntityChoice.mine, .theirs] {
            var fixture = Fixture()
            let mine = try fixture.create(
                Fixture.preference,
                ["key": .string("k"), "a": .int(1)]
            )
            let key = fixture.local.entity(mine)?.uiKey
            let other = Fixture.entity(
                40,
                Fixture.preference,
                below: 2,
                fields: ["key": .string("k"), "a": .int(9)]
            )
            _ = try fixture.exchange(.conflict(.duplicate, server: other))
            let conflict = try #require(fixture.local.conflicts.first)
            #expect(conflict.theirs == other)
            #expect(conflict.choices == [.mine, .theirs])
            _ = try fixture.local.resolve(mine, choice, at: 9_000)
            #expect(fixture.local.entities(below: .server(2)).count == 2)
            #expect(fixture.local.entity(mine)?.entity.id == .server(40))
            #expect(fixture.local.entity(.server(40))?.uiKey == key)
            #expect(fixture.fields(mine)?["a"] == .int(choice == .mine ? 1 : 9))
            #expect(fixture.push().map(\.base) == (choice == .mine ? [1] : []))
        }
    }

    @Test("a duplicate of what is deleted here by now restores it with mine")
    func duplicateOfDeleted() throws {
        var fixture = Fixture()
        let mine = try fixture.create(Fixture.preference, ["key": .string("k"), "a": .int(1)])
        let other = Fixture.entity(
            40,
            Fixture.preference,
            below: 2,
            fields: ["key": .string("k"), "a": .int(9)]
        )
        _ = try fixture.exchange(.conflict(.duplicate, server: other))
        try fixture.delete(.server(40))
        _ = try fixture.local.resolve(mine, .mine, at: 9_000)
        let operation = try #require(fixture.push().first)
        #expect(operation.kind == .update)
        #expect(operation.fields["a"] == .int(1))
    }

    @Test("a duplicate is none once the other is deleted")
    func duplicateGone() throws {
        var fixture = Fixture()
        let mine = try fixture.create(Fixture.preference, ["key": .string("k")])
        let other = Fixture.entity(40, Fixture.preference, below: 2)
        _ = try fixture.exchange(.conflict(.duplicate, server: other))
        _ = fixture.local.pulled(
            [],
            tombstones: [Fixture.entity(40, Fixture.preference, below: 2, version: 2)]
        )
        #expect(fixture.local.conflicts.isEmpty)
        #expect(fixture.push().map(\.id) == [mine])
    }

    @Test("a duplicate in a series can only be dropped")
    func duplicateInSeries() throws {
        var fixture = Fixture()
        let mine = try fixture.create(Fixture.measurement, ["at": .int(1)])
        let other = Fixture.entity(40, Fixture.measurement, below: 2, fields: ["at": .int(1)])
        _ = try fixture.exchange(.conflict(.duplicate, server: other))
        #expect(fixture.local.conflict(mine)?.choices == [.theirs])
    }

    @Test("mine below a deleted parent needs another parent of the right type")
    func move() throws {
        var fixture = Fixture()
        _ = fixture.local.pulled([Fixture.entity(7, Fixture.profile, below: 1)])
        try fixture.update(["a": .int(2)])
        let created = try fixture.create(Fixture.note, ["a": .int(5)])
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        #expect(throws: LocalEntityError.parentNeeded) {
            try fixture.local.resolve(created, .mine, at: 9_000)
        }
        for parent in [EntityID.server(1), .server(2)] {
            #expect(throws: LocalEntityError.self) {
                try fixture.local.resolve(created, .mine, below: parent, at: 9_000)
            }
        }
        _ = try fixture.local.resolve(.server(3), .mine, below: .server(7), at: 9_000)
        _ = try fixture.local.resolve(created, .mine, below: .server(7), at: 9_000)
        let operations = fixture.push()
        #expect(operations.map(\.kind) == [.create, .create])
        #expect(operations.map(\.parent) == [.server(7), .server(7)])
        #expect(operations.map { $0.fields["a"] } == [.int(5), .int(2)])
        #expect(operations[0].id == created)
    }

    @Test("theirs below a deleted parent drops the change and what was created")
    func dropBelowDeleted() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        let created = try fixture.create(Fixture.note)
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        for id in [created, .server(3)] {
            _ = try fixture.local.resolve(id, .theirs, at: 9_000)
        }
        #expect(fixture.local.rows.updates.isEmpty)
        #expect(!fixture.local.rows.entities.map(\.id).contains(created))
    }

    @Test("the parent that the server misses may be known here as alive")
    func parentDeletedUnseen() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = try fixture.exchange(Fixture.rejected(.parentDeleted))
        #expect(fixture.local.conflicts.map(\.kind) == [.parentDeleted])
        #expect(fixture.push().isEmpty)
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        #expect(fixture.local.conflicts.map(\.kind) == [.parentDeleted])
    }

    @Test("changes to an entity in conflict become part of mine")
    func changeInConflict() throws {
        var fixture = try updateUpdate()
        try fixture.update(["b": .int(3)])
        #expect(fixture.local.conflicts.map(\.mine.fields) == [["a": .int(2), "b": .int(3)]])
        try fixture.delete()
        #expect(fixture.local.conflicts.map(\.kind) == [.deleteUpdate])
        _ = try fixture.local.restore(.server(3), fields: theirs.fields, at: 1_000)
        #expect(fixture.local.conflicts.isEmpty)
    }

    @Test("only what is offered can be chosen, and only where there is a conflict")
    func notOffered() throws {
        var fixture = Fixture()
        #expect(throws: LocalEntityError.noConflict) {
            try fixture.local.resolve(.server(3), .mine, at: 9_000)
        }
        try fixture.delete()
        _ = fixture.local.pulled([theirs])
        #expect(throws: LocalEntityError.choiceNotOffered) {
            try fixture.local.resolve(.server(3), .both, at: 9_000)
        }
    }

    @Test("actions that cannot be are refused and change nothing")
    func actions() throws {
        var fixture = Fixture()
        let element = try fixture.create(Fixture.measurement, ["at": .int(1)])
        let rows = fixture.local.rows
        let impossible: [(inout LocalEntities) throws -> Void] = [
            { _ = try $0.create(Fixture.note, below: nil, fields: [:], at: 0) },
            { _ = try $0.create(Fixture.note, below: .server(1), fields: [:], at: 0) },
            { _ = try $0.create(Fixture.note, below: .server(99), fields: [:], at: 0) },
            { _ = try $0.create(Fixture.account, below: .server(1), fields: [:], at: 0) },
            { _ = try $0.create(EntityType("diary"), below: nil, fields: [:], at: 0) },
            { _ = try $0.create(Fixture.note, below: .server(2), fields: ["c": .int(1)], at: 0) },
            { _ = try $0.update(.server(3), fields: ["a": .bool(true)], at: 0) },
            { _ = try $0.update(.server(99), fields: [:], at: 0) },
            { _ = try $0.update(element, fields: ["at": .int(2)], at: 0) },
            { _ = try $0.delete(element, at: 0) },
            { _ = try $0.delete(.server(99), at: 0) },
            { _ = try $0.restore(.server(3), fields: [:], at: 0) },
            { _ = try $0.restore(.server(99), fields: [:], at: 0) },
            {
                let text = FieldValue.string(String(repeating: "x", count: 100))
                _ = try $0.update(.server(3), fields: ["text": text], at: 0)
            },
        ]
        for action in impossible {
            #expect(throws: LocalEntityError.self) { try action(&fixture.local) }
        }
        #expect(fixture.local.rows == rows)
        try fixture.delete(.server(2))
        #expect(throws: LocalEntityError.notFound) { try fixture.update(["a": .int(1)]) }
        #expect(throws: LocalEntityError.notFound) {
            try fixture.local.restore(.server(3), fields: [:], at: 0)
        }
        #expect(try fixture.local.restore(.server(2), fields: [:], at: 0).count > 0)
    }
}
