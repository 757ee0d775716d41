import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

extension Client {
    /// Returns all entities, parents first.
    fileprivate func tree(below parent: EntityID? = nil) async throws -> [LocalEntity] {
        var found: [LocalEntity] = []
        for entity in try await entities(below: parent) {
            found.append(entity)
            found += try await tree(below: entity.entity.id)
        }
        return found
    }

    /// Waits until a condition on the entities holds; checks it after each change.
    fileprivate func untilEntities(
        _ what: String,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ holds: @escaping @Sendable ([LocalEntity]) -> Bool
    ) async throws {
        try await until(what, sourceLocation: sourceLocation) { holds(try await $0.tree()) }
    }

    fileprivate func untilSynced(
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await untilEntities("nothing is pending", sourceLocation: sourceLocation) {
            $0.allSatisfy { $0.state != .pending }
        }
    }
}

extension [LocalEntity] {
    /// The titles, names and values of the entities, without order.
    fileprivate var names: Set<String> {
        Set(
            compactMap { local in
                for name in ["name", "title", "value"] {
                    if case .string(let text) = local.entity.fields[name] { return text }
                }
                return nil
            }
        )
    }

    fileprivate func id(_ name: String) throws -> EntityID {
        let found = first { [$0].names == [name] }
        return try #require(found, "no \(name)").entity.id
    }
}

/// Runs `body` with a phone and a laptop of Alice, which both hold the same account, profile, note
/// and preference.
private func withDevices(
    _ body: (World, Client, Client) async throws -> Void
) async throws {
    try await withWorld { world in
        let alice = try world.server.signUp("Alice")
        let phone = try await world.onlineClient(of: alice, device: "phone")
        let laptop = try await world.onlineClient(of: alice, device: "laptop")
        let home = try await phone.createEntity(.account, fields: ["name": .string("Home")])
        let ann = try await phone.createEntity(
            .profile,
            below: home,
            fields: ["name": .string("Ann")]
        )
        try await phone.createEntity(.note, below: ann, fields: ["title": .string("Milk")])
        try await phone.createEntity(
            .preference,
            below: ann,
            fields: ["key": .string("units"), "value": .string("kg")]
        )
        try await phone.untilSynced()
        try await laptop.untilEntities("all there") { $0.count == 4 }
        try await body(world, phone, laptop)
    }
}

@Suite("Entities of a client")
struct EntityClientTests {
    @Test("come to the other devices, and local ids stay good")
    func shared() async throws {
        try await withDevices { _, phone, laptop in
            let note = try await laptop.tree().id("Milk")
            try await laptop.updateEntity(note, fields: ["text": .string("two litres")])
            try await phone.untilEntities("the text") {
                $0.contains { $0.entity.fields["text"] == .string("two litres") }
            }
            let ann = try await phone.tree().id("Ann")
            let local = try await phone.createEntity(
                .note,
                below: ann,
                fields: ["title": .string("Bread")]
            )
            #expect(local.isLocal)
            try await phone.untilSynced()
            try await phone.updateEntity(local, fields: ["title": .string("Rye")])
            #expect(try await phone.entity(local)?.entity.id.isLocal == false)
            try await laptop.untilEntities("renamed") { $0.names.contains("Rye") }
            try await laptop.deleteEntity(ann)
            try await phone.untilEntities("all gone below") { $0.names == ["Home"] }
        }
    }

    /// Both devices edit, delete and create offline, and come online in either order.
    @Test("lose nothing silently on a day offline", arguments: [true, false])
    func offlineDay(isPhoneFirst: Bool) async throws {
        try await withDevices { world, phone, laptop in
            await phone.stop()
            await laptop.stop()
            let devices = try ["phone", "laptop"].map { try world.open($0) }
            for (device, name) in zip(devices, ["phone", "laptop"]) {
                let tree = try await device.tree()
                try await device.updateEntity(
                    tree.id("Milk"),
                    fields: ["title": .string("Milk of the \(name)")]
                )
                try await device.createEntity(
                    .note,
                    below: tree.id("Ann"),
                    fields: ["title": .string("New on the \(name)")]
                )
                if name == "phone" { try await device.deleteEntity(tree.id("kg")) }
                if name == "laptop" {
                    try await device.updateEntity(
                        tree.id("kg"),
                        fields: ["value": .string("lb")]
                    )
                }
                // Both devices change different fields.
                try await device.updateEntity(
                    tree.id("Ann"),
                    fields: name == "phone" ? ["color": .string("red")] : ["born": .int(5)]
                )
            }
            let (first, second) =
                isPhoneFirst ? (devices[0], devices[1]) : (devices[1], devices[0])
            let winner = isPhoneFirst ? "phone" : "laptop"
            let loser = isPhoneFirst ? "laptop" : "phone"
            try await first.startAndSync()
            try await first.untilSynced()
            try await second.startAndSync()
            try await second.untilSynced()

            // The device that comes online later has both texts, and the user chooses.
            let conflicts = try await second.entityConflicts()
            let conflict = try #require(conflicts.first)
            #expect(conflicts.count == 1)
            #expect(conflict.kind == .updateUpdate)
            #expect(conflict.mine.fields["title"] == .string("Milk of the \(loser)"))
            #expect(conflict.theirs?.fields["title"] == .string("Milk of the \(winner)"))
            try await second.resolveConflict(conflict.id, .both)
            try await second.untilSynced()
            #expect(try await second.entityConflicts().isEmpty)

            let expected: Set<String> = [
                "Home", "Ann", "lb", "Milk of the phone", "Milk of the laptop",
                "New on the phone", "New on the laptop",
            ]
            for device in devices {
                try await device.untilEntities("the same on both") { $0.names == expected }
                let ann = try #require(
                    try await device.tree().first { $0.entity.type == .profile }
                )
                #expect(ann.entity.fields["color"] == .string("red"))
                #expect(ann.entity.fields["born"] == .int(5))
            }
        }
    }

    @Test("survive a crash between the request and its reply")
    func crash() async throws {
        try await withDevices { world, phone, laptop in
            let ann = try await phone.tree().id("Ann")
            try await world.restartServer {
                try await phone.until("offline") { $0.state != .online }
                for number in 1...250 {
                    try await phone.createEntity(
                        .note,
                        below: ann,
                        fields: ["title": .string("note \(number)")]
                    )
                }
                // Freeze and store the batch, as the client does before it sends one.
                try await phone.call { core throws(ClientError) in
                    try core.attempt { tx in
                        var entities = try core.entities.use(tx)
                        try tx.apply(entities.nextPush().rows)
                    }
                }
                await phone.stop()
            }
            let again = try world.open("phone")
            try await again.startAndSync()
            try await again.untilSynced()
            await laptop.stop()
            let laptop = try world.open("laptop")
            try await laptop.startAndSync()
            try await laptop.untilEntities("all of them") { $0.count == 254 }
            #expect(try await laptop.tree().names.count == 254)
        }
    }

    @Test("of a large batch go in parts, and conflicts come in parts")
    func large() async throws {
        try await withDevices { world, phone, laptop in
            let ann = try await phone.tree().id("Ann")
            let text = String(repeating: "x", count: 15_000)
            await phone.stop()
            await laptop.stop()
            let writer = try world.open("phone")
            for number in 1...100 {
                try await writer.createEntity(
                    .note,
                    below: ann,
                    fields: ["title": .string("note \(number)"), "text": .string(text)]
                )
            }
            try await writer.startAndSync()
            try await writer.untilSynced()
            let reader = try world.open("laptop")
            try await reader.startAndSync()
            try await reader.untilEntities("all of them") { $0.count == 104 }
            await reader.stop()
            let offline = try world.open("laptop")
            for (client, name) in [(writer, "phone"), (offline, "laptop")] {
                for note in try await client.tree() where note.entity.fields["text"] != nil {
                    try await client.updateEntity(
                        note.entity.id,
                        fields: ["title": .string("of the \(name)")]
                    )
                }
            }
            try await writer.untilSynced()
            // The conflicts return a hundred copies, which do not fit into one reply.
            try await offline.startAndSync()
            try await offline.untilSynced()
            #expect(try await offline.entityConflicts().count == 100)
            #expect(offline.state == .online)
        }
    }

    @Test("of one account are not those of the next that signs in")
    func signOut() async throws {
        try await withWorld { world in
            let (alice, bob, _) = try world.aliceAndBob()
            let client = try await world.onlineClient(of: alice)
            try await client.createEntity(.account, fields: ["name": .string("hers")])
            try await client.signOut()
            let session = try world.server.signIn(phoneOf: bob, device: "other")
            session.close()
            try await client.signIn(token: session.token)
            try await client.until("online again") { $0.state == .online }
            #expect(try await client.tree().isEmpty)
            try await client.createEntity(.account, fields: ["name": .string("his")])
            try await client.untilSynced()
            #expect(try await client.tree().names == ["his"])
        }
    }

    @Test(
        "are nobody's request until somebody uses them, and then one more in the flight of a login"
    )
    func cost() async throws {
        try await withWorld { world in
            let alice = try world.server.signUp("Alice")
            let client = try await world.client(of: alice, tapsFrames: true)
            let events = client.events()
            try await client.startAndSync()
            await client.stop()
            var opcodes: [String] = []
            for await event in events {
                if case .frame(let frame) = event, frame.direction == .sent {
                    opcodes.append(frame.opcode)
                }
            }
            #expect(!opcodes.contains { $0.contains("OBJ") })
        }
    }

    @Test("that form a series are pulled by range, and are there offline")
    func series() async throws {
        try await withDevices { world, phone, laptop in
            let ann = try await phone.tree().id("Ann")
            // An online laptop would receive the measurements as pushes.
            await laptop.stop()
            for at in 1...30 {
                try await phone.createEntity(
                    .measurement,
                    below: ann,
                    fields: ["at": .int(Int64(at * 10)), "value": .double(Double(at))]
                )
            }
            try await phone.untilSynced()
            var client = try world.open("laptop")
            try await client.startAndSync()
            #expect(try await client.tree().count == 4)
            func positions(_ range: ClosedRange<Int64>) async throws -> [FieldValue?] {
                try await client.elements(of: .measurement, below: ann, in: range)
                    .map { $0.entity.fields["at"] }
            }
            let there = try await positions(55...100)
            #expect(there == [60, 70, 80, 90, 100].map { .int($0) })
            await client.stop()
            client = try world.open("laptop")
            #expect(try await positions(0...1000) == there)
        }
    }
}
