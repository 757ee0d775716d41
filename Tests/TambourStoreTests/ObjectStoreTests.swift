import TambourSQL
import TambourStore
import Testing

@testable import TambourProtocol

@Suite("Objects in the store")
struct ObjectStoreTests {
    private static let note = EntityType("note")
    private static let preference = EntityType("preference")

    private func object(
        _ id: Int64,
        _ type: EntityType = note,
        below parent: Int64 = 1,
        modified: Int64 = 100,
        text: String = "x"
    ) -> StoredObject {
        StoredObject(
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
            object(10, modified: 100), object(11, modified: 900), object(12, Self.preference),
            object(13, below: 2),
        ]
        try store.batch { tx in
            for object in mine { try tx.putObject(object, key: nil, position: nil, of: users[0]) }
            try tx.putObject(object(10), key: nil, position: nil, of: users[1])
            try tx.putObject(object(14), key: nil, position: 5, of: users[0])
        }
        let stamp = StoredObject.Stamp(version: 9, modified: 500, device: 8)
        func delete(_ type: EntityType, keepsFields: Bool) throws -> [Entity] {
            try store.batch { tx in
                try tx.deleteObjects(
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
                let stored = try #require(try snapshot.object(tombstone.id.number, of: users[0]))
                #expect(stored.entity == tombstone)
                #expect(stored.stamps.isEmpty)
                #expect(stored.device == 8)
                #expect(stored.creator == 7)
            }
            let preference = try #require(try snapshot.object(12, of: users[0]))
            #expect(preference.entity.isDeleted)
            #expect(preference.entity.fields == ["text": .string("x")])
            #expect(preference.stamps == mine[2].stamps)
            #expect(try snapshot.object(13, of: users[0]) == mine[3])
            #expect(try snapshot.object(14, of: users[0]) == object(14))
            #expect(try snapshot.object(10, of: users[1]) == object(10))
            let changed = try snapshot.objects(
                changedAfter: ObjectPlace(position: store.now - 2_500, id: .max),
                isLive: false,
                of: users[0],
                limit: 10,
                room: .max
            )
            #expect(Set(changed.objects.map(\.object.entity.id.number)) == [10, 11, 12])
        }
    }

    /// Bytes that are no fields tell whether somebody looked into them.
    @Test("an id that nothing can follow is refused", arguments: SQLEngine.available)
    func lastID(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        func put(_ id: Int64) throws {
            try store.batch { tx in
                var counts = try tx.reader.objectCounts(of: user)
                counts.lastID = id
                try tx.setObjectCounts(counts, of: user)
            }
        }
        let last = Int64.max - 0xFFFF
        try put(last)
        #expect(try store.read { try $0.objectCounts(of: user) }.lastID == last)
        try put(.max)
        #expect(throws: ImpossibleRow("object_count \(user): last_id", .max)) {
            try store.read { try $0.objectCounts(of: user) }
        }
    }

    @Test("behind the room of a page are not looked into", arguments: SQLEngine.available)
    func room(engine: SQLEngine) throws {
        let store = try TestStore(engine)
        let user = try store.users(1)[0]
        let text = String(repeating: "x", count: 1_000)
        try store.batch { tx in
            for id in 10...14 {
                try tx.putObject(object(Int64(id), text: text), key: nil, position: nil, of: user)
                try tx.putObject(
                    object(Int64(id + 10), text: text),
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
                let start = ObjectPlace(position: 0, id: 0)
                let changed = try snapshot.objects(
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
                    changed.objects.map(\.place.id), series.objects.map(\.place.id)
                )
            }
        }
        #expect(try ids(limit: 10, room: 3_000) == ([10, 11], [20, 21]))
        #expect(try ids(limit: 10, room: 1) == ([10], [20]))
        #expect(try ids(limit: 2, room: .max) == ([10, 11], [20, 21]))
        #expect(throws: PayloadError.self) { try ids(limit: 10, room: 4_000) }
    }
}
