import GRDB
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

extension Client {
    fileprivate func waitUntilSent(
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await until("all is sent", sourceLocation: sourceLocation) {
            guard await $0.isEntitySyncDone() else { return false }
            return try await $0.pendingEntityChanges() == 0
        }
    }

    /// Returns the entities below a parent, keyed by a field that identifies them.
    fileprivate func named(
        _ field: String,
        below parent: EntityID?
    ) async throws -> [FieldValue: LocalEntity] {
        let found = try await entities(below: parent)
        return Dictionary(
            found.compactMap { entity in entity.entity.fields[field].map { ($0, entity) } }
        ) { first, _ in first }
    }
}

/// A phone and a laptop of Alice, which both hold the same account, profile, note and preference.
private struct Pair {
    let phone: Client
    let laptop: Client
    let account: EntityID
    let profile: EntityID
    let note: EntityID
    let preference: EntityID

    init(_ world: World) async throws {
        let alice = try world.server.signUp("Alice")
        let phone = try await world.onlineClient(of: alice, device: "phone")
        let laptop = try await world.onlineClient(of: alice, device: "laptop")
        let home = try await phone.createEntity(.account, fields: ["name": .string("Home")])
        let ann = try await phone.createEntity(
            .profile,
            below: home,
            fields: ["name": .string("Ann")]
        )
        let milk = try await phone.createEntity(
            .note,
            below: ann,
            fields: ["title": .string("Milk")]
        )
        let units = try await phone.createEntity(
            .preference,
            below: ann,
            fields: ["key": .string("units"), "value": .string("kg")]
        )
        try await phone.waitUntilSent()
        var ids: [EntityID] = []
        for local in [home, ann, milk, units] {
            ids.append(try #require(try await phone.entity(local)).entity.id)
        }
        (account, profile, note, preference) = (ids[0], ids[1], ids[2], ids[3])
        (self.phone, self.laptop) = (phone, laptop)
        try await laptop.until("all is there") { [note, preference] client in
            let found = [try await client.entity(note), try await client.entity(preference)]
            return !found.contains(nil)
        }
    }
}

@Suite("Entities that are brought together")
struct EntitySyncTests {
    /// Makes a client's file look as an older version would leave it. The file then lacks entities
    /// of `types`, and `known` is the stored list of types that the older version knows.
    private func forget(
        _ types: [EntityType],
        named known: String?,
        in client: Client
    ) async throws {
        try await client.call { core throws(ClientError) in
            try core.attempt { tx in
                for type in types {
                    try tx.execute("DELETE FROM entity WHERE type = ?", [type.rawValue])
                }
                try tx.set(.entityTypes, known)
            }
        }
        await client.stop()
    }

    @Test(
        "come when a newer version of the client knows their type, and nothing of the user is lost",
        arguments: [nil, "account measurement note profile"]
    )
    func newTypes(known: String?) async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            try await pair.laptop.waitUntilSent()
            await pair.laptop.stop()
            let old = try world.open("laptop")
            try await old.updateEntity(pair.note, fields: ["title": .string("Oat milk")])
            let bread = try await old.createEntity(
                .note,
                below: pair.profile,
                fields: ["title": .string("Bread")]
            )
            try await forget([.preference], named: known, in: old)

            let new = try world.open("laptop")
            #expect(try await new.entity(pair.preference) == nil)
            try await new.startAndSync()
            try await new.until("the preference") {
                try await $0.entity(pair.preference)?.entity.fields["value"] == .string("kg")
            }
            try await new.waitUntilSent()
            #expect(try await new.entityConflicts().isEmpty)
            #expect(try await new.entity(bread)?.state == .synced)
            try await pair.phone.until("what the laptop did") {
                let notes = try await $0.named("title", below: pair.profile)
                return Set(notes.keys) == [.string("Oat milk"), .string("Bread")]
            }
        }
    }

    @Test("are pulled behind the mark when the types are those of before")
    func sameTypes() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            try await pair.laptop.waitUntilSent()
            await pair.laptop.stop()
            let old = try world.open("laptop")
            try await forget([.preference], named: LocalEntities.knownTypes, in: old)
            let new = try world.open("laptop")
            try await new.startAndSync()
            try await new.waitUntilSent()
            // A pull of everything would have brought the preference back.
            #expect(try await new.entity(pair.preference) == nil)
            #expect(try await new.entity(pair.note) != nil)
        }
    }

    @Test("let go of what is held of series when everything is pulled, and ask for it again")
    func series() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            for at in 1...3 {
                try await pair.phone.createEntity(
                    .measurement,
                    below: pair.profile,
                    fields: ["at": .int(Int64(at))]
                )
            }
            try await pair.phone.waitUntilSent()
            let all = try await pair.laptop.elements(
                of: .measurement,
                below: pair.profile,
                in: 0...10
            )
            #expect(all.count == 3)
            await pair.laptop.stop()
            let old = try world.open("laptop")
            let unsent = try await old.createEntity(
                .measurement,
                below: pair.profile,
                fields: ["at": .int(4)]
            )
            // This entity does not exist on the server, as after a restore.
            try await old.call { core throws(ClientError) in
                try core.attempt { tx in
                    let ghost = Entity(
                        id: .server(77),
                        type: .measurement,
                        parent: pair.profile,
                        version: 1,
                        modified: 1,
                        fields: ["at": .int(5)]
                    )
                    try core.entities.keep([ghost], tx)
                }
            }
            #expect(
                try await old.elements(of: .measurement, below: pair.profile, in: 0...10).count == 5
            )
            try await forget([], named: nil, in: old)
            let new = try world.open("laptop")
            try await new.startAndSync()
            try await new.waitUntilSent()
            let again = try await new.elements(of: .measurement, below: pair.profile, in: 0...10)
            #expect(again.map { $0.entity.fields["at"] } == (1...4).map { .int($0) })
            #expect(again.last?.uiKey == (try await new.entity(unsent)?.uiKey))
        }
    }

    @Test("that are deleted count as waiting until the server has answered")
    func pendingDeletion() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            await pair.phone.stop()
            let phone = try world.open("phone")
            #expect(try await phone.pendingEntityChanges() == 0)
            try await phone.deleteEntity(pair.note)
            #expect(try await phone.entity(pair.note) == nil)
            #expect(try await phone.pendingEntityChanges() == 1)
            try await pair.laptop.updateEntity(pair.note, fields: ["text": .string("two litres")])
            try await pair.laptop.waitUntilSent()
            try await phone.startAndSync()
            try await phone.waitUntilSent()
            // A refused deletion counts as answered, too: the user must resolve the conflict.
            #expect(try await phone.entityConflicts().map(\.kind) == [.deleteUpdate])
            try await phone.resolveConflict(pair.note, .mine)
            try await phone.waitUntilSent()
            try await pair.laptop.until("the deletion") { try await $0.entity(pair.note) == nil }
        }
    }

    @Test("that hold what no field can are an answer that cannot be read")
    func unreadable() {
        // A MessagePack extension, which no field can hold.
        let odd = AnyValue(unchecked: Bytes([0xD4, 1, 0]))
        let copy = ObjectCopy(
            id: 1,
            type: "measurement",
            parent: 2,
            version: 1,
            modified: 1,
            fields: NameMap([(Text("at"), odd)])
        )
        let reply = ObjPullReply(objects: [copy], time: 1)
        #expect {
            try reply.entities()
        } throws: { error in
            if case ClientError.unreadable = error { true } else { false }
        }
    }
}

/// One device deletes a profile while another device changes entities below it offline.
@Suite("What was done below a deleted profile")
struct EntityBelowDeletionTests {
    /// - Parameter isTold: Whether the editing device learns of the deletion before it sends its
    ///   changes.
    @Test("waits for the user, who can take it elsewhere", arguments: [true, false])
    func deletedFirst(isTold: Bool) async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            let other = try await pair.phone.createEntity(
                .profile,
                below: pair.account,
                fields: ["name": .string("Bob")]
            )
            try await pair.phone.waitUntilSent()
            try await pair.laptop.until("the other profile") {
                try await $0.named("name", below: pair.account).count == 2
            }
            await pair.laptop.stop()
            let laptop = try world.open("laptop")
            try await laptop.updateEntity(pair.note, fields: ["title": .string("Oat milk")])
            try await laptop.updateEntity(pair.preference, fields: ["value": .string("lb")])
            let bread = try await laptop.createEntity(
                .note,
                below: pair.profile,
                fields: ["title": .string("Bread")]
            )
            let weight = try await laptop.createEntity(
                .measurement,
                below: pair.profile,
                fields: ["at": .int(5), "value": .double(61)]
            )
            if !isTold {
                // Freeze the batch, as if its request were in flight during the deletion.
                try await laptop.call { core throws(ClientError) in
                    try core.attempt { tx in
                        var entities = try core.entities.use(tx)
                        try tx.apply(entities.nextPush().rows)
                    }
                }
            }
            await laptop.stop()
            try await pair.phone.deleteEntity(pair.profile)
            try await pair.phone.waitUntilSent()
            #expect(try await pair.phone.entityConflicts().isEmpty)

            let again = try world.open("laptop")
            try await again.startAndSync()
            try await again.waitUntilSent()
            let conflicts = try await again.entityConflicts()
            #expect(conflicts.count == 4)
            #expect(conflicts.allSatisfy { $0.kind == .parentDeleted })
            #expect(conflicts.allSatisfy { $0.choices == [.mine, .theirs] })
            let edit = try #require(conflicts.first { $0.id == pair.note })
            #expect(edit.mine.fields == ["title": .string("Oat milk")])
            #expect(edit.mine.base?.fields == ["title": .string("Milk")])
            #expect(edit.theirs?.isDeleted == true)

            let bob = try #require(
                try await again.named("name", below: pair.account)[.string("Bob")]
            ).entity.id
            for id in [pair.note, pair.preference, bread, weight] {
                await #expect(
                    throws: ClientError.invalid(
                        reason: "name another parent, for the old one is gone"
                    )
                ) {
                    try await again.resolveConflict(id, .mine)
                }
                try await again.resolveConflict(id, .mine, below: bob)
            }
            try await again.waitUntilSent()
            #expect(try await again.entityConflicts().isEmpty)
            try await pair.phone.until("all of it below the other") {
                let notes = try await $0.named("title", below: other)
                let preferences = try await $0.named("key", below: other)
                return Set(notes.keys) == [.string("Oat milk"), .string("Bread")]
                    && preferences[.string("units")]?.entity.fields["value"] == .string("lb")
            }
            let series = try await pair.phone.elements(of: .measurement, below: other, in: 0...9)
            #expect(series.map { $0.entity.fields["value"] } == [.double(61)])
        }
    }

    /// Deleting a profile deletes everything that the server then has below it.
    @Test("goes along when the server had it before, on all devices alike")
    func editedFirst() async throws {
        try await withWorld { world in
            let pair = try await Pair(world)
            await pair.phone.stop()
            let phone = try world.open("phone")
            try await phone.deleteEntity(pair.profile)
            await phone.stop()
            try await pair.laptop.updateEntity(pair.note, fields: ["title": .string("Oat milk")])
            try await pair.laptop.waitUntilSent()
            let again = try world.open("phone")
            try await again.startAndSync()
            try await again.waitUntilSent()
            #expect(try await again.entityConflicts().isEmpty)
            try await pair.laptop.until("the deletion") {
                try await $0.entity(pair.profile) == nil
            }
            #expect(try await pair.laptop.entity(pair.note) == nil)
            #expect(try await pair.laptop.entityConflicts().isEmpty)
        }
    }
}
