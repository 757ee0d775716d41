import TambourProtocol
import Testing

@testable import TambourClient

/// A server that has lost data, and damaged files.
@Suite("Entities after a loss")
struct EntityRestoreTests {
    private typealias Fixture = EntityFixture

    /// `lost` is note 3 as the device has it. `made` returns note 3 as another device wrote it
    /// after the server had lost that state. Both have the same version, but different times.
    private static let lost = Fixture.note3(version: 2, ["a": .int(2), "b": .int(1)])
    private static func made(_ fields: [String: FieldValue]) -> Entity {
        var copy = Fixture.note3(version: 2, fields)
        copy.modified = 777
        return copy
    }

    private func fixture(note policy: EntitySchema.Policy) -> Fixture {
        var fixture = Fixture(note: policy)
        _ = fixture.local.pulled([Self.lost])
        return fixture
    }

    @Test("take over another state of the version that is known")
    func equalVersion() {
        var fixture = fixture(note: .cas)
        let made = Self.made(["a": .int(9)])
        _ = fixture.local.pulled([made])
        #expect(fixture.local.entity(.server(3))?.entity == made)
        #expect(fixture.local.pulled([made]).isEmpty)
    }

    @Test("are in conflict where their base is another state of the same version")
    func conflict() throws {
        var fixture = fixture(note: .cas)
        try fixture.update(["a": .int(5)])
        let made = Self.made(["a": .int(9)])
        _ = fixture.local.pulledAll([made], of: [Fixture.note])
        let conflict = try #require(fixture.local.conflict(.server(3)))
        #expect(conflict.kind == .updateUpdate)
        #expect(conflict.mine.fields == ["a": .int(5)])
        #expect(conflict.theirs == made)
        #expect(fixture.push().isEmpty)
    }

    @Test("that are deleted here are in conflict as well")
    func deletion() throws {
        var fixture = fixture(note: .cas)
        try fixture.delete()
        _ = fixture.local.pulledAll([Self.made(["a": .int(9)])], of: [Fixture.note])
        #expect(fixture.local.conflict(.server(3))?.kind == .deleteUpdate)
    }

    /// The server applies the change to its own state, and replies with the version alone. So the
    /// device must already have the server's fields, from the pull before the change is sent.
    @Test("build on the state that the server has")
    func accepted() throws {
        var fixture = fixture(note: .merge(contested: .cas))
        try fixture.update(["b": .int(5)])
        _ = fixture.local.pulledAll([Self.made(["a": .int(9), "b": .int(1)])], of: [Fixture.note])
        let operation = try #require(try fixture.exchange(Fixture.applied(3, version: 3)))
        #expect(operation.base == 2)
        #expect(fixture.fields() == ["a": .int(9), "b": .int(5)])
    }

    @Test(
        "name no version that the server could take for its own",
        arguments: [1, 2, 3] as [Int64],
        [EntityChangeKind.update, .delete]
    )
    func unfounded(version: Int64, kind: EntityChangeKind) throws {
        var fixture = Fixture(note: .lww)
        _ = fixture.local.pulled([Self.lost])
        if kind == .update { try fixture.update(["a": .int(5)]) } else { try fixture.delete() }
        var made = Self.made(["a": .int(9)])
        made.version = version
        _ = fixture.local.pulledAll([made], of: [Fixture.note])
        // A later version may descend from the user's base, so the base is kept.
        #expect(fixture.push().map(\.base) == [version == 3 ? 2 : 0])
    }

    @Test("that were frozen upon what is lost are asked about, not applied by chance")
    func frozen() throws {
        var fixture = fixture(note: .cas)
        try fixture.update(["a": .int(5)])
        let first = try #require(fixture.push().first)
        #expect(first.base == 2)
        fixture.local.dropped()
        let made = Self.made(["a": .int(9)])
        _ = fixture.local.pulledAll([made], of: [Fixture.note])
        #expect(fixture.push().isEmpty)
        let conflict = try #require(fixture.local.conflict(.server(3)))
        #expect(conflict.mine.fields == ["a": .int(5)])
        #expect(conflict.theirs == made)
    }

    @Test("that were frozen upon what is still there are sent as they were")
    func frozenAndFounded() throws {
        var fixture = fixture(note: .cas)
        try fixture.update(["a": .int(5)])
        let first = fixture.push()
        fixture.local.dropped()
        _ = fixture.local.pulledAll([Self.lost], of: [Fixture.note])
        #expect(fixture.push() == first)
    }

    // MARK: Series

    @Test("leave no element of a series that may be gone")
    func elements() throws {
        var fixture = Fixture()
        let element = Fixture.entity(8, Fixture.measurement, below: 2, fields: ["at": .int(5)])
        _ = fixture.local.pulled([element])
        let unsent = try fixture.create(Fixture.measurement, ["at": .int(6)])
        #expect(!fixture.local.evictElements().isEmpty)
        let shown = fixture.local.entities(below: .server(2)).map(\.entity.id)
        #expect(shown == [.server(3), unsent])
        _ = fixture.push()
        #expect(fixture.local.evictElements().isEmpty)
        _ = fixture.local.pulled([element])
        #expect(fixture.local.entity(.server(8)) != nil)
    }

    @Test("forget elements of series with the tombstone above them")
    func prune() throws {
        var fixture = Fixture()
        _ = fixture.local.pulled([Fixture.entity(8, Fixture.measurement, below: 2)])
        let unsent = try fixture.create(Fixture.measurement, ["at": .int(6)])
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        _ = fixture.local.prune(before: 150)
        #expect(fixture.local.rows.entities.count == 5)
        _ = fixture.local.prune(before: 2_001)
        #expect(fixture.local.rows.entities.map(\.id) == [.server(1), .server(2), unsent])
        _ = try fixture.local.resolve(unsent, .theirs, at: 3_000)
        _ = fixture.local.prune(before: 2_001)
        #expect(fixture.local.rows.entities.map(\.id) == [.server(1)])
    }

    // MARK: Damage

    private func reread(_ change: (inout EntityRows) -> Void) -> LocalEntities {
        let fixture = Fixture()
        var rows = fixture.local.rows
        change(&rows)
        return LocalEntities(schema: fixture.schema, rows: rows)
    }

    private func row(_ id: Int64, _ type: EntityType, below parent: Int64?) -> EntityRow {
        EntityRow(
            id: .server(id),
            type: type,
            parent: parent.map { .server($0) },
            uiKey: 100 + id,
            server: Fixture.entity(id, type, below: parent)
        )
    }

    @Test("are read although a file has an id twice")
    func twice() throws {
        let alias = EntityAlias(local: .local(1), server: .server(3), since: 5)
        let local = reread { rows in
            rows.entities.append(row(3, Fixture.note, below: 2))
            rows.aliases = [alias, alias]
        }
        #expect(local.entities(below: .server(2)).map(\.entity.id) == [.server(3)])
        #expect(local.entity(.local(1))?.entity.fields == ["a": .int(1), "b": .int(1)])
    }

    @Test("are read although parents in a file form a circle")
    func circle() throws {
        var local = reread { rows in
            rows.entities += [
                row(20, Fixture.profile, below: 21), row(21, Fixture.profile, below: 20),
                row(22, Fixture.note, below: 22), row(23, EntityType("diary"), below: 23),
            ]
            for id in [20, 22, 23] as [Int64] {
                let change = EntityChange(kind: .delete, modified: 1)
                rows.updates.append(
                    LocalUpdate(id: .server(id), change: change, state: .pending, sequence: id)
                )
            }
        }
        for id in 20...23 as ClosedRange<Int64> { #expect(local.entity(.server(id)) == nil) }
        #expect(local.entities(below: .server(20)).isEmpty)
        #expect(local.nextPush().operations.isEmpty)
        #expect(local.conflicts.isEmpty)
        #expect(local.entities(below: nil).map(\.entity.id) == [.server(1)])
    }

    @Test("make no circle of parents that a server sends")
    func circleFromServer() throws {
        var fixture = Fixture()
        let circle = [
            Fixture.entity(20, Fixture.profile, below: 21),
            Fixture.entity(21, Fixture.profile, below: 20),
            Fixture.entity(22, Fixture.note, below: 22),
            Fixture.entity(23, Fixture.profile, below: 24),
            Fixture.entity(24, Fixture.account, below: 23),
        ]
        for entities in [circle, circle.reversed()] {
            _ = fixture.local.pulled(entities)
            _ = fixture.local.pulledAll(entities, of: [Fixture.note])
        }
        _ = fixture.local.pulled([], tombstones: circle)
        for id in 20...24 as ClosedRange<Int64> {
            #expect(fixture.local.entity(.server(id)) == nil)
            _ = fixture.local.entities(below: .server(id))
        }
        #expect(fixture.push().isEmpty)
        #expect(fixture.local.entities(below: nil).map(\.entity.id) == [.server(1)])
    }

    @Test("leave out what a damaged file has where its type cannot be, and changes of nothing")
    func damagedFile() throws {
        var fixture = fixture(note: .cas)
        try fixture.update(["a": .int(5)])
        var rows = fixture.local.rows
        let below = Fixture.entity(5, Fixture.note, below: 3)
        rows.entities.append(
            EntityRow(id: below.id, type: below.type, parent: below.parent, uiKey: 9, server: below)
        )
        var read = LocalEntities(schema: fixture.schema, rows: rows)
        #expect(read.entity(.server(3)) != nil)
        #expect(read.entity(below.id) == nil)
        #expect(read.rows.updates.count == 1)

        rows.entities.removeAll { $0.id == .server(3) }
        read = LocalEntities(schema: fixture.schema, rows: rows)
        #expect(read.rows.updates.isEmpty)
    }

    @Test("take nothing from the server that stands where its type cannot be")
    func misplaced() {
        var fixture = fixture(note: .cas)
        let below = Fixture.entity(5, Fixture.note, below: 3)
        _ = fixture.local.pulled([below])
        #expect(fixture.local.entity(below.id) == nil)
        #expect(!fixture.local.rows.entities.contains { $0.id == below.id })
    }
}
