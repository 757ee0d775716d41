import TambourClient
import TambourProtocol
import Testing

/// Pulled entities, with and without local changes to them.
@Suite("Pulling entities")
struct EntityPullTests {
    private typealias Fixture = EntityFixture

    @Test("tombstones are written children first, new entities parents first, then changed ones")
    func order() {
        var fixture = Fixture()
        let changes = fixture.local.pulled(
            [
                Fixture.entity(1, Fixture.account, below: nil, version: 2),
                Fixture.entity(8, Fixture.note, below: 7),
                Fixture.entity(7, Fixture.profile, below: 1),
            ],
            tombstones: Fixture.profileIsDeleted
        )
        let ids = changes.compactMap { change -> EntityID? in
            if case .putEntity(let row) = change { row.id } else { nil }
        }
        #expect(ids == [.server(3), .server(2), .server(7), .server(8), .server(1)])
    }

    @Test("an older copy never replaces a newer one, nor a tombstone")
    func stale() {
        var fixture = Fixture()
        _ = fixture.local.pulled([Fixture.note3(version: 3, ["a": .int(3)])])
        #expect(fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(2)])]).isEmpty)
        #expect(fixture.fields() == ["a": .int(3)])
        _ = fixture.local.pulled([], tombstones: [Fixture.note3(version: 4, ["a": .int(4)])])
        #expect(fixture.fields() == nil)
        #expect(fixture.local.pulled([Fixture.note3(version: 3, ["a": .int(3)])]).isEmpty)
        #expect(fixture.local.rows.entities.last?.server?.fields == [:])
    }

    @Test("an entity whose parent has not come yet is not shown")
    func childFirst() {
        var fixture = Fixture()
        _ = fixture.local.pulled([Fixture.entity(8, Fixture.note, below: 7)])
        #expect(fixture.local.entity(.server(8)) == nil)
        _ = fixture.local.pulled([Fixture.entity(7, Fixture.profile, below: 1)])
        #expect(fixture.local.entity(.server(8)) != nil)
        let profiles = fixture.local.entities(below: .server(1)).map(\.entity.id)
        #expect(profiles == [.server(2), .server(7)])
    }

    @Test("types of a newer app are left out")
    func unknownType() {
        var fixture = Fixture()
        #expect(fixture.local.pulled([Fixture.entity(8, EntityType("diary"), below: 2)]).isEmpty)
    }

    @Test("an update under cas becomes a conflict at once")
    func updateUnderCAS() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(1), "b": .int(2)])])
        #expect(fixture.local.conflicts.map(\.kind) == [.updateUpdate])
    }

    @Test("an update under merge moves to the new copy if no field meets another")
    func updateUnderMerge() throws {
        for contested in [EntitySchema.Contest.cas, .lww] {
            var fixture = Fixture(note: .merge(contested: contested))
            try fixture.update(["a": .int(2)])
            _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(1), "b": .int(2)])])
            #expect(fixture.fields() == ["a": .int(2), "b": .int(2)])
            #expect(fixture.push().map(\.base) == [2])
        }
    }

    @Test("where fields meet under merge it is a conflict, or the server decides by time")
    func collisionUnderMerge() throws {
        for contested in [EntitySchema.Contest.cas, .lww] {
            var fixture = Fixture(note: .merge(contested: contested))
            try fixture.update(["a": .int(2)])
            _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(3), "b": .int(2)])])
            #expect(fixture.local.conflicts.count == (contested == .cas ? 1 : 0))
            #expect(fixture.push().map(\.base) == (contested == .cas ? [] : [1]))
        }
    }

    @Test("a field that got the same value on both sides does not meet under merge")
    func sameValueUnderMerge() throws {
        var fixture = Fixture(note: .merge(contested: .cas))
        try fixture.update(["a": .int(2), "b": .int(3)])
        _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(2), "b": .int(1)])])
        #expect(fixture.local.conflicts.isEmpty)
        #expect(fixture.push().map(\.base) == [2])
    }

    @Test("an update under last-writer-wins keeps its base, and shows its fields over the new copy")
    func updateUnderLWW() throws {
        var fixture = Fixture(note: .lww)
        try fixture.update(["a": .int(2)])
        _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(3), "b": .int(2)])])
        #expect(fixture.fields() == ["a": .int(2), "b": .int(2)])
        #expect(fixture.push().map(\.base) == [1])
    }

    @Test("an update that the server's copy already contains is done")
    func contained() throws {
        for policy in [EntitySchema.Policy.cas, .lww, .merge(contested: .cas)] {
            var fixture = Fixture(note: policy)
            try fixture.update(["a": .int(2)])
            _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(2), "b": .int(2)])])
            #expect(fixture.local.entity(.server(3))?.state == .synced)
        }
    }

    @Test("a deletion of what was updated is a conflict under cas, and else the server's to decide")
    func deletion() throws {
        for policy in [EntitySchema.Policy.cas, .lww, .merge(contested: .cas)] {
            var fixture = Fixture(note: policy)
            try fixture.delete()
            _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(2)])])
            #expect(fixture.local.conflicts.map(\.kind) == (policy == .lww ? [] : [.deleteUpdate]))
        }
    }

    @Test("an update of what was deleted is a conflict, or goes on where updates win")
    func tombstone() throws {
        for deletion in [EntitySchema.Deletion.deleteWins, .updateWins] {
            var fixture = Fixture(deletion: deletion)
            try fixture.update(["a": .int(2)])
            _ = fixture.local.pulled([], tombstones: [Fixture.note3(version: 2, [:])])
            #expect(fixture.fields() == ["a": .int(2), "b": .int(1)])
            if deletion == .deleteWins {
                #expect(fixture.local.conflicts.map(\.kind) == [.updateDelete])
            } else {
                #expect(fixture.push().map(\.base) == [1])
            }
        }
    }

    @Test("a deletion of what was deleted is done")
    func bothDeleted() throws {
        var fixture = Fixture()
        let note = try fixture.create(Fixture.note)
        try fixture.update(["a": .int(2)])
        try fixture.delete(.server(2))
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        #expect(fixture.local.rows.updates.isEmpty)
        #expect(fixture.local.entity(note) == nil)
    }

    @Test("what is below a deleted parent becomes a conflict, also what exists only here")
    func parentDeleted() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        let note = try fixture.create(Fixture.note)
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        #expect(fixture.local.conflicts.map(\.id) == [.server(3), note])
        #expect(fixture.local.conflicts.allSatisfy { $0.kind == .parentDeleted })
    }

    @Test("what waits for a parent goes on when the parent comes back")
    func parentReturns() throws {
        var fixture = Fixture()
        let note = try fixture.create(Fixture.note)
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        _ = fixture.local.pulled([Fixture.entity(2, Fixture.profile, below: 1, version: 3)])
        #expect(fixture.local.conflicts.isEmpty)
        #expect(fixture.push().map(\.id) == [note])
    }

    @Test("a newer copy reaches a conflict that waits for the user")
    func newerConflict() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(3)])])
        let newer = Fixture.note3(version: 3, ["a": .int(4)])
        _ = fixture.local.pulled([newer])
        #expect(fixture.local.conflicts.map(\.theirs) == [newer])
        _ = fixture.local.pulled([Fixture.note3(version: 4, ["a": .int(2)])])
        #expect(fixture.local.conflicts.isEmpty)
    }

    @Test("a frozen change is left alone until its reply")
    func inFlight() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        let first = fixture.push()
        _ = fixture.local.pulled([Fixture.note3(version: 3, ["a": .int(2), "b": .int(3)])])
        #expect(fixture.local.conflicts.isEmpty)
        fixture.local.dropped()
        #expect(fixture.push() == first)
        // The pull arrived before the reply.
        try fixture.reply(.replayed(Fixture.applied(3, version: 2)))
        #expect(fixture.local.entity(.server(3))?.entity.version == 3)
        #expect(fixture.fields() == ["a": .int(2), "b": .int(3)])
    }

    @Test("what came after a frozen change is not in conflict with that change's own effect")
    func behindInFlight() throws {
        var fixture = Fixture()
        try fixture.update(["a": .int(2)])
        _ = fixture.push()
        try fixture.update(["b": .int(3)])
        _ = fixture.local.pulled([Fixture.note3(version: 2, ["a": .int(2), "b": .int(1)])])
        #expect(fixture.local.conflicts.isEmpty)
        try fixture.reply(Fixture.applied(3, version: 2))
        #expect(fixture.push().map(\.base) == [2])
    }

    @Test("a creation whose reply is late is not shown twice")
    func ownCreation() throws {
        var fixture = Fixture()
        let note = try fixture.create(Fixture.note, ["a": .int(2)])
        let opID = try #require(fixture.push().first?.opID)
        let key = fixture.local.entity(note)?.uiKey
        let copy = Fixture.entity(
            30,
            Fixture.note,
            below: 2,
            version: 2,
            createdBy: opID,
            fields: ["a": .int(5)]
        )
        _ = fixture.local.pulled([copy])
        #expect(fixture.local.entities(below: .server(2)).count == 2)
        fixture.local.dropped()
        #expect(fixture.push().map(\.id) == [note])
        try fixture.reply(.replayed(Fixture.applied(30, version: 1)))
        #expect(fixture.local.entities(below: .server(2)).count == 2)
        #expect(fixture.local.entity(.server(30))?.entity == copy)
        #expect(fixture.local.entity(.server(30))?.uiKey == key)
    }

    @Test("a creation that arrived, was forgotten by the server and is made again leaves no trace")
    func forgottenCreation() throws {
        var fixture = Fixture()
        _ = fixture.local.pulled([Fixture.entity(7, Fixture.profile, below: 1)])
        let note = try fixture.create(Fixture.note, ["a": .int(2)])
        let opID = try #require(fixture.push().first?.opID)
        let copy = Fixture.entity(30, Fixture.note, below: 2, version: 5, createdBy: opID)
        _ = fixture.local.pulled([copy])
        fixture.local.dropped()
        _ = fixture.push()
        try fixture.reply(Fixture.rejected(.parentDeleted))
        _ = try fixture.local.resolve(note, .mine, below: .server(7), at: 3_000)
        _ = try fixture.exchange(Fixture.applied(31, version: 1))
        let row = fixture.local.rows.entities.first { $0.id == .server(31) }
        #expect(row?.server?.id == .server(31))
        #expect(row?.server?.version == 1)
    }

    @Test("what a full list does not have is deleted, except what waits to be sent")
    func fullList() throws {
        var fixture = Fixture()
        _ = fixture.local.pulled([Fixture.entity(4, Fixture.note, below: 2)])
        try fixture.update(["a": .int(2)])
        let note = try fixture.create(Fixture.note)
        let restored = Fixture.entity(2, Fixture.profile, below: 1, version: 0)
        _ = fixture.local.pulledAll([restored], of: [Fixture.profile, Fixture.note])
        #expect(fixture.local.entity(.server(1)) != nil)
        #expect(fixture.local.entity(.server(2))?.entity == restored)
        #expect(fixture.local.entity(.server(4)) == nil)
        #expect(fixture.local.conflicts.map(\.kind) == [.updateDelete])
        #expect(fixture.local.entity(note)?.state == .pending)
    }

    @Test("what a full list did not have comes back with a copy of the same version")
    func inferredDeletion() {
        var fixture = Fixture()
        let copy = Fixture.note3(version: 1, ["a": .int(1)])
        _ = fixture.local.pulledAll([], of: [Fixture.note])
        #expect(fixture.fields() == nil)
        _ = fixture.local.pulled([copy])
        #expect(fixture.local.entity(.server(3))?.entity == copy)
    }

    @Test("old tombstones and replaced ids are forgotten, what something still needs is not")
    func prune() throws {
        var fixture = Fixture()
        let note = try fixture.create(Fixture.note)
        _ = try fixture.exchange(Fixture.applied(30, version: 1))
        try fixture.update(["a": .int(2)])
        _ = fixture.local.pulled([], tombstones: Fixture.profileIsDeleted)
        _ = fixture.local.prune(before: 150)
        #expect(fixture.local.current(note) == .server(30))
        #expect(fixture.local.rows.entities.count == 4)
        _ = fixture.local.prune(before: 2_001)
        #expect(fixture.local.current(note) == note)
        #expect(fixture.local.rows.entities.count == 4)
        _ = try fixture.local.resolve(.server(3), .theirs, at: 3_000)
        _ = fixture.local.pulled(
            [],
            tombstones: [Fixture.entity(30, Fixture.note, below: 2, version: 2)]
        )
        _ = fixture.local.prune(before: 2_001)
        #expect(fixture.local.rows.entities.map(\.id) == [.server(1)])
    }
}
