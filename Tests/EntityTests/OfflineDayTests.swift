import TambourClient
import TambourProtocol
import Testing

/// Scenarios in which two devices were offline for a day. Each test performs the steps of one
/// scenario.
@Suite("Offline days")
struct OfflineDayTests {
    /// A server and two devices. Both devices have the same account, profile and note.
    private struct Day {
        var server: EntityServer
        var a: Device
        var b: Device
        var now: Int64 = 1_000_000

        init(_ schema: EntitySchema, skewOfA: Int64 = 0) throws {
            server = EntityServer(schema: schema)
            a = Device(number: 1, schema: schema, skew: 0)
            b = Device(number: 2, schema: schema, skew: 0)
            var parent: EntityID?
            for type in [EntityType.account, .profile, .note] {
                let name = type == .note ? "title" : "name"
                let above = parent
                _ = a.perform { entities throws(LocalEntityError) in
                    let creation = try entities.create(
                        type,
                        below: above,
                        fields: [name: .string("first")],
                        at: 1_000_000
                    )
                    parent = creation.id
                    return creation.rows
                }
            }
            try push(\.a)
            pull(\.b)
            a.skew = skewOfA
        }

        var profile: EntityID { server.live[1].id }
        var note: EntityID { server.live[2].id }

        mutating func push(_ device: WritableKeyPath<Day, Device>) throws {
            now += 1_000
            var online = self[keyPath: device]
            _ = online.send(to: &server, isLost: false, now: now)
            try online.receiveReply(now: now)
            self[keyPath: device] = online
        }

        mutating func pull(_ device: WritableKeyPath<Day, Device>) {
            self[keyPath: device].pull(from: server, isHeld: false)
        }

        /// Pushes and then pulls. A device does this when it comes online.
        mutating func comeOnline(_ device: WritableKeyPath<Day, Device>) throws {
            try push(device)
            pull(device)
        }

        mutating func delete(_ id: EntityID, on device: WritableKeyPath<Day, Device>) {
            now += 1_000
            let time = now + self[keyPath: device].skew
            _ = self[keyPath: device].perform { entities throws(LocalEntityError) in
                try entities.delete(id, at: time)
            }
        }

        mutating func edit(
            _ id: EntityID,
            _ fields: [String: FieldValue],
            on device: WritableKeyPath<Day, Device>
        ) {
            now += 1_000
            let time = now + self[keyPath: device].skew
            _ = self[keyPath: device].perform { entities throws(LocalEntityError) in
                try entities.update(id, fields: fields, at: time)
            }
        }
    }

    private static let schemas = Schemas.policies.flatMap { policy in
        [EntitySchema.Deletion.deleteWins, .updateWins].map { deletion in
            Schemas.tree(profile: policy, note: policy, deletion: deletion)
        }
    }

    @Test("a deletion before the edit of a child: the editor is asked", arguments: schemas)
    func deletionFirst(schema: EntitySchema) throws {
        for choice in [EntityChoice.mine, .theirs] {
            var day = try Day(schema)
            let note = day.note
            day.delete(day.profile, on: \.a)
            day.edit(note, ["title": .string("edited")], on: \.b)
            try day.comeOnline(\.a)
            try day.comeOnline(\.b)

            #expect(day.server.live.map(\.type) == [.account])
            let conflict = try #require(day.b.entities.conflicts.first)
            #expect(conflict.kind == .parentDeleted)
            #expect(conflict.mine.fields == ["title": .string("edited")])
            let account = day.server.live[0].id
            var other: EntityID?
            _ = day.b.perform { entities throws(LocalEntityError) in
                let creation = try entities.create(
                    .profile,
                    below: account,
                    fields: ["name": .string("other")],
                    at: 0
                )
                other = creation.id
                return creation.rows
            }
            let error = day.b.perform { [other] entities throws(LocalEntityError) in
                try entities.resolve(conflict.id, choice, below: other, at: 0)
            }
            #expect(error == nil)
            try day.comeOnline(\.b)
            try day.comeOnline(\.a)
            let titles = day.server.live.compactMap { $0.fields["title"] }
            #expect(titles == (choice == .mine ? [.string("edited")] : []))
            #expect(shown(day.a) == day.server.live)
            #expect(shown(day.b) == day.server.live)
        }
    }

    @Test("an edit of a child before the deletion: both are made", arguments: schemas)
    func editFirst(schema: EntitySchema) throws {
        var day = try Day(schema)
        day.delete(day.profile, on: \.a)
        day.edit(day.note, ["title": .string("edited")], on: \.b)
        try day.comeOnline(\.b)
        #expect(day.server.written.contains("edited"))
        try day.comeOnline(\.a)
        try day.comeOnline(\.b)
        // The profile has not changed since A has seen it. A's deletion of the profile therefore
        // applies, and includes the note.
        #expect(day.server.live.map(\.type) == [.account])
        for device in [day.a, day.b] {
            #expect(device.entities.conflicts.isEmpty)
            #expect(shown(device) == day.server.live)
        }
    }

    @Test("A deletes a note, B edits it; the policy decides, or the user", arguments: schemas)
    func noteItself(schema: EntitySchema) throws {
        let kind = try #require(schema[.note])
        for isDeletionFirst in [true, false] {
            var day = try Day(schema)
            let note = day.note
            day.delete(note, on: \.a)
            day.edit(note, ["title": .string("edited")], on: \.b)
            try day.comeOnline(isDeletionFirst ? \.a : \.b)
            try day.comeOnline(isDeletionFirst ? \.b : \.a)
            let conflicts = (day.a.entities.conflicts + day.b.entities.conflicts).map(\.kind)
            if isDeletionFirst {
                let isBack = kind.deletion == .updateWins
                #expect(conflicts == (isBack ? [] : [.updateDelete]))
                #expect(day.server.live.count == (isBack ? 3 : 2))
            } else {
                // The edit has the later time.
                #expect(conflicts == (kind.policy.contest == .cas ? [.deleteUpdate] : []))
                #expect(day.server.live.count == 3)
            }
        }
    }

    @Test("a clock that is a year ahead wins no more than its changes deserve")
    func clockAhead() throws {
        let year: Int64 = 31_536_000_000
        for isALater in [true, false] {
            var day = try Day(Schemas.tree(note: .lww), skewOfA: year)
            let note = day.note
            for device in isALater ? [\Day.b, \.a] : [\.a, \.b] {
                let text = device == \Day.a ? "from A" : "from B"
                day.edit(note, ["title": .string(text)], on: device)
            }
            try day.comeOnline(\.b)
            try day.comeOnline(\.a)
            try day.comeOnline(\.b)
            let title = FieldValue.string(isALater ? "from A" : "from B")
            #expect(day.server.live[2].fields["title"] == title)
            #expect(day.server.live[2].modified <= day.now)
            #expect(shown(day.a) == day.server.live)
            #expect(shown(day.b) == day.server.live)
        }
    }

    @Test("a refused parent takes its child along, and both arrive once it is mended")
    func parentRefused() throws {
        var day = try Day(Schemas.tree(maxBytes: 60))
        // This app allows larger entities than its server.
        var app = Device(number: 3, schema: Schemas.tree(), skew: 0)
        app.pull(from: day.server, isHeld: false)
        let account = day.server.live[0].id
        var profile: EntityID?
        let long = FieldValue.string(String(repeating: "x", count: 80))
        _ = app.perform { entities throws(LocalEntityError) in
            let parent = try entities.create(
                .profile,
                below: account,
                fields: ["name": long],
                at: 0
            )
            let child = try entities.create(
                .note,
                below: parent.id,
                fields: ["title": .string("child")],
                at: 0
            )
            profile = parent.id
            return parent.rows + child.rows
        }
        _ = app.send(to: &day.server, isLost: false, now: day.now)
        try app.receiveReply(now: day.now)
        #expect(app.entities.conflicts.count == 1)
        #expect(day.server.live.count == 3)
        let parent = try #require(profile)
        _ = app.perform { entities throws(LocalEntityError) in
            try entities.update(parent, fields: ["name": .string("short")], at: 0)
        }
        _ = app.send(to: &day.server, isLost: false, now: day.now)
        try app.receiveReply(now: day.now)
        #expect(day.server.live.count == 5)
        #expect(shown(app) == day.server.live)
    }

    private func shown(_ device: Device) -> [Entity] {
        var found: [Entity] = []
        var parents: [EntityID?] = [nil]
        while let parent = parents.popLast() {
            for local in device.entities.entities(below: parent) {
                found.append(local.entity)
                parents.append(local.entity.id)
            }
        }
        return found.sorted { $0.id < $1.id }
    }
}
