import TambourProtocol
import TambourStore
import TambourTesting
import Testing

/// A device of a user. Its functions build entity operations in a short form.
struct EntityDevice {
    let client: WireClient

    /// Sends operations in one request. `clientNow` is the time on the device's clock.
    func push(
        _ operations: [EntityOperation],
        clientNow: Int64 = 1_000_000
    ) throws -> [EntityResult] {
        let request = ObjPushRequest(
            clientNow: clientNow,
            ops: operations.map { ObjectOperation($0) }
        )
        return try client.call(request).results.map { try EntityResult($0) }
    }

    func push(_ operation: EntityOperation) throws -> EntityResult {
        try #require(try push([operation]).first)
    }

    /// Creates an entity and returns its id.
    func create(
        _ type: EntityType,
        below parent: EntityID? = nil,
        _ fields: [String: FieldValue] = [:],
        opID: Int64
    ) throws -> EntityID {
        let result = try push(.create(type, below: parent, fields, opID: opID))
        guard case .applied(let applied) = result else {
            throw WireClient.Failure.unexpected("\(result)")
        }
        return applied.id
    }

    func pull(since mark: Int64 = 0, count: Int64? = nil, after: Int64 = 0) throws -> ObjPullReply {
        try client.call(ObjPullRequest(since: mark, count: count, after: after))
    }

    /// Requests all pages after a mark. Returns the entities of these pages, the next mark, and the
    /// number of pages.
    func pullAll(since mark: Int64 = 0, count: Int64? = nil) throws
        -> (entities: [Entity], time: Int64, pages: Int)
    {
        var (entities, since, after, pages) = ([Entity](), mark, Int64(0), 0)
        while true {
            let reply = try pull(since: since, count: count, after: after)
            entities += try reply.objects.map { try Entity($0) }
            pages += 1
            guard reply.more == true else { return (entities, reply.time, pages) }
            (since, after) = (reply.time, reply.last ?? 0)
        }
    }
}

extension EntityOperation {
    static func create(
        _ type: EntityType,
        _ id: EntityID = .local(1),
        below parent: EntityID? = nil,
        _ fields: [String: FieldValue] = [:],
        opID: Int64,
        modified: Int64 = 1_000_000
    ) -> EntityOperation {
        EntityOperation(
            opID: opID,
            kind: .create,
            id: id,
            type: type,
            parent: parent,
            base: 0,
            modified: modified,
            fields: fields
        )
    }

    static func update(
        _ type: EntityType,
        _ id: EntityID,
        base: Int64,
        _ fields: [String: FieldValue],
        opID: Int64,
        modified: Int64 = 1_000_000
    ) -> EntityOperation {
        EntityOperation(
            opID: opID,
            kind: .update,
            id: id,
            type: type,
            parent: nil,
            base: base,
            modified: modified,
            fields: fields
        )
    }

    static func delete(
        _ type: EntityType,
        _ id: EntityID,
        base: Int64,
        opID: Int64
    ) -> EntityOperation {
        EntityOperation(
            opID: opID,
            kind: .delete,
            id: id,
            type: type,
            parent: nil,
            base: base,
            modified: 1_000_000,
            fields: [:]
        )
    }
}

extension EntityResult {
    var applied: Applied? {
        if case .applied(let applied) = first { applied } else { nil }
    }

    var isReplayed: Bool {
        if case .replayed = self { true } else { false }
    }

    static func refused(_ error: ObjectError, _ path: String) -> EntityResult {
        .rejected(EntityRefusal(error, at: path))
    }
}

/// Runs `body` with the server, Alice's phone, her tablet, and the id of a profile below an
/// account.
func withEntityDevices(
    limits overrides: [String: Int] = [:],
    _ body: (TestServer, EntityDevice, EntityDevice, EntityID) throws -> Void
) throws {
    try withServer(limits: overrides) { server in
        let phone = try server.signUp("Alice")
        let tablet = try server.signIn(
            phoneOf: phone,
            device: "tablet",
            capabilities: ["objects"]
        )
        let device = EntityDevice(client: phone)
        let account = try device.create(.account, ["name": .string("Home")], opID: 1)
        let profile = try device.create(
            .profile,
            below: account,
            ["name": .string("Ann")],
            opID: 2
        )
        for client in [phone, tablet] { _ = try client.takePushes() }
        try body(server, device, EntityDevice(client: tablet), profile)
    }
}
