import TambourSQL
import TambourStore
import Testing

@testable import TambourProtocol

@Suite("Entities in the store")
struct EntityStoreTests {
    private static let note = EntityType("note")
    private static let preference = EntityType("preference")

    private func entity(
        _ id: Int64,
        _ type: EntityType = note,
        below parent: Int64 = 1,
        modified: Int64 = 100,
        text: String = "x"
    ) -> StoredEntity {
        StoredEntity(
            entity: Entity(
                id: .server(id),
                type: type,
                parent: .server(parent),
                version: 3,
                modified: modified,
                createdBy: 1_000 + id,
                fields: ["text": .string(text)]
            ),
            device: 7,
            stamps: ["text": .init(version: 3, modified: modified, device: 7)],
            creator: 7
        )
    }

    @Test("go below their parent, all of one type and of one user", arguments: SQLEngine.available)
    func cascade(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let users = try store.users(2)
        let mine = [
            entity(10, modified: 100), entity(11, modified: 900), entity(12, Self.preference),
            entity(13, below: 2),
        ]
        try store.batch { tx in
            for entity in mine { try tx.putEntity(entity, key: nil, position: nil, of: users[0]) }
            try tx.putEntity(entity(10), key: nil, position: nil, of: users[1])
            try tx.putEntity(entity(14), key: nil, position: 5, of: users[0])
        }
        let stamp = StoredEntity.Stamp(version: 9, modified: 500, device: 8)
        func delete(_ type: EntityType, keepsFields: Bool) throws -> [Entity] {
            try store.batch { tx in
                try tx.deleteEntities(
                    of: type,
                    below: 1,
                    limit: 10,
                    by: stamp,
                    keepsFields: keepsFields,
                    of: users[0]
                )
            }
        }
        let tombstones = try delete(Self.note, keepsFields: false).sorted { $0.id < $1.id }
        #expect(tombstones.map(\.id) == [.server(10), .server(11)])
        #expect(tombstones.map(\.version) == [4, 4])
        #expect(tombstones.map(\.modified) == [500, 900])
        #expect(tombstones.map(\.createdBy) == [1_010, 1_011])
        #expect(try delete(Self.preference, keepsFields: true).map(\.id) == [.server(12)])
        #expect(try delete(Self.note, keepsFields: false).isEmpty)
        try store.read { snapshot in
            for tombstone in tombstones {
                let stored = try #require(try snapshot.entity(tombstone.id.number, of: users[0]))
                #expect(stored.entity == tombstone)
                #expect(stored.stamps.isEmpty)
                #expect(stored.device == 8)
                #expect(stored.creator == 7)
            }
            let preference = try #require(try snapshot.entity(12, of: users[0]))
            #expect(preference.entity.isDeleted)
            #expect(preference.entity.fields == ["text": .string("x")])
            #expect(preference.stamps == mine[2].stamps)
            #expect(try snapshot.entity(13, of: users[0]) == mine[3])
            #expect(try snapshot.entity(14, of: users[0]) == entity(14))
            #expect(try snapshot.entity(10, of: users[1]) == entity(10))
            let changed = try snapshot.entities(
                changedAfter: EntityPlace(position: store.now - 2_500, id: .max),
                isLive: false,
                of: users[0],
                limit: 10,
                room: .max
            )
            #expect(Set(changed.entities.map(\.stored.entity.id.number)) == [10, 11, 12])
        }
    }

    @Test("an id that nothing can follow is refused", arguments: SQLEngine.available)
    func lastID(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        func put(_ id: Int64) throws {
            try store.batch { tx in
                var counts = try tx.reader.entityCounts(of: user)
                counts.lastID = id
                try tx.setEntityCounts(counts, of: user)
            }
        }
        let last = Int64.max - 0xFFFF
        try put(last)
        #expect(try store.read { try $0.entityCounts(of: user) }.lastID == last)
        try put(.max)
        #expect(throws: ImpossibleRow("object_count \(user): last_id", .max)) {
            try store.read { try $0.entityCounts(of: user) }
        }
    }

    /// The test cuts off the end of the stored fields of two entities. Any attempt to read these
    /// fields then fails.
    @Test("behind the room of a page are not looked into", arguments: SQLEngine.available)
    func room(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        let text = String(repeating: "x", count: 1_000)
        try store.batch { tx in
            for id in 10...14 {
                try tx.putEntity(entity(Int64(id), text: text), key: nil, position: nil, of: user)
                try tx.putEntity(
                    entity(Int64(id + 10), text: text),
                    key: nil,
                    position: Int64(id),
                    of: user
                )
            }
        }
        let sql = store.writer.connection.sql
        try sql.execute("UPDATE object SET content = substr(content, 1, 900) WHERE id IN (12, 22)")
        func ids(limit: Int, room: Int) throws -> (changed: [Int64], series: [Int64]) {
            try store.read { snapshot in
                let start = EntityPlace(position: 0, id: 0)
                let changed = try snapshot.entities(
                    changedAfter: start,
                    isLive: false,
                    of: user,
                    limit: limit,
                    room: room
                )
                let series = try snapshot.elements(
                    of: Self.note,
                    below: 1,
                    after: start,
                    upTo: .max,
                    of: user,
                    limit: limit,
                    room: room
                )
                #expect(changed.isMore && series.isMore)
                return (
                    changed.entities.map(\.place.id), series.entities.map(\.place.id)
                )
            }
        }
        #expect(try ids(limit: 10, room: 3_000) == ([10, 11], [20, 21]))
        #expect(try ids(limit: 10, room: 1) == ([10], [20]))
        #expect(try ids(limit: 2, room: .max) == ([10, 11], [20, 21]))
        #expect(throws: PayloadError.self) { try ids(limit: 10, room: 4_000) }
    }
}
