import TambourClient
import TambourProtocol

/// A device that holds account 1 > profile 2 > note 3, all synced, with short forms of the calls
/// that tests make.
struct EntityFixture {
    static let account = EntityType("account")
    static let profile = EntityType("profile")
    static let note = EntityType("note")
    static let preference = EntityType("preference")
    static let measurement = EntityType("measurement")

    var local: LocalEntities
    let schema: EntitySchema

    init(
        note policy: EntitySchema.Policy = .cas,
        deletion: EntitySchema.Deletion = .deleteWins,
        preferenceCascades: Bool = true,
        maxOperations: Int = 200
    ) {
        schema = EntitySchema(
            [
                .init(type: Self.account, parent: nil, policy: .lww, fields: ["a": .int]),
                .init(type: Self.profile, parent: Self.account, policy: .cas, fields: ["a": .int]),
                .init(
                    type: Self.note,
                    parent: Self.profile,
                    policy: policy,
                    deletion: deletion,
                    fields: ["a": .int, "b": .int, "text": .string],
                    maxBytes: 100
                ),
                .init(
                    type: Self.preference,
                    parent: Self.profile,
                    policy: .lww,
                    fields: ["key": .string, "a": .int],
                    naturalKey: ["key"],
                    cascades: preferenceCascades
                ),
                .init(
                    type: Self.measurement,
                    parent: Self.profile,
                    policy: .append,
                    fields: ["at": .int]
                ),
            ],
            maxOperations: maxOperations
        )
        local = LocalEntities(
            schema: schema,
            rows: EntityRows(counters: EntityCounters(firstOpID: 500))
        )
        _ = local.pulled([
            Self.entity(1, Self.account, below: nil),
            Self.entity(2, Self.profile, below: 1),
            Self.entity(3, Self.note, below: 2, fields: ["a": .int(1), "b": .int(1)]),
        ])
    }

    static func entity(
        _ id: Int64,
        _ type: EntityType,
        below parent: Int64?,
        version: Int64 = 1,
        createdBy: Int64? = nil,
        fields: [String: FieldValue] = [:]
    ) -> Entity {
        Entity(
            id: .server(id),
            type: type,
            parent: parent.map { .server($0) },
            version: version,
            modified: 100 * version,
            createdBy: createdBy,
            fields: fields
        )
    }

    static func note3(version: Int64, _ fields: [String: FieldValue]) -> Entity {
        entity(3, note, below: 2, version: version, fields: fields)
    }

    /// The tombstones of the profile and its note.
    static let profileIsDeleted = [
        entity(2, profile, below: 1, version: 2), entity(3, note, below: 2, version: 2),
    ]

    mutating func create(
        _ type: EntityType,
        below parent: EntityID? = .server(2),
        _ fields: [String: FieldValue] = [:]
    ) throws -> EntityID {
        try local.create(type, below: parent, fields: fields, at: 1_000).id
    }

    mutating func update(_ fields: [String: FieldValue]) throws {
        try update(.server(3), fields)
    }

    mutating func update(_ id: EntityID, _ fields: [String: FieldValue]) throws {
        _ = try local.update(id, fields: fields, at: 1_000)
    }

    mutating func delete(_ id: EntityID = .server(3)) throws {
        _ = try local.delete(id, at: 1_000)
    }

    mutating func push() -> [EntityOperation] { local.nextPush().operations }

    mutating func reply(_ results: EntityResult...) throws {
        _ = try local.pushed(results, at: 2_000)
    }

    /// Pushes one operation and replies with `result`.
    mutating func exchange(_ result: EntityResult) throws -> EntityOperation? {
        let operation = push().first
        try reply(result)
        return operation
    }

    func fields(_ id: EntityID = .server(3)) -> [String: FieldValue]? {
        local.entity(id)?.entity.fields
    }

    static func applied(
        _ id: Int64,
        version: Int64 = 2,
        entity: Entity? = nil
    ) -> EntityResult {
        .applied(.init(id: .server(id), version: version, modified: 5_000, entity: entity))
    }

    static func rejected(_ error: ObjectError) -> EntityResult {
        .rejected(EntityRefusal(error, at: "/x"))
    }
}
