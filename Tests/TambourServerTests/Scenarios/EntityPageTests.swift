import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourServer
import TambourStore
import TambourTesting
import Testing

@Suite("Pages of entities")
struct EntityPageTests {
    @Test("answers that a reply has no room for are left to the next request")
    func replyRoom() throws {
        try withEntityDevices(limits: ["maxReplyBytes": 20_000]) { _, phone, tablet, profile in
            let text = FieldValue.string(String(repeating: "x", count: 6_000))
            let notes = try (0..<8).map { number in
                try phone.create(.note, below: profile, ["text": text], opID: Int64(100 + number))
            }
            for (number, note) in notes.enumerated() {
                _ = try tablet.push(
                    .update(.note, note, base: 1, ["title": .string("b")], opID: Int64(number))
                )
            }
            var waiting = notes.enumerated().map { number, note in
                EntityOperation.update(
                    .note,
                    note,
                    base: 1,
                    ["title": .string("c")],
                    opID: Int64(200 + number)
                )
            }
            var requests = 0
            while !waiting.isEmpty, requests < 8 {
                let results = try phone.push(waiting)
                requests += 1
                var left: [EntityOperation] = []
                for (operation, result) in zip(waiting, results) {
                    switch result {
                    case .conflict(.updateUpdate, let server?): #expect(server.version == 2)
                    case .skipped(let because):
                        #expect(because == operation.opID)
                        left.append(operation)
                    default: Issue.record("\(result)")
                    }
                }
                #expect(left.count < waiting.count)
                waiting = left
            }
            #expect(waiting.isEmpty)
            #expect(requests > 1)
        }
    }

    @Test("of a series hold no more bytes than a reply may")
    func series() throws {
        try withEntityDevices(limits: ["maxReplyBytes": 2_000]) { _, phone, tablet, profile in
            for at in 1...20 {
                _ = try phone.create(
                    .measurement,
                    below: profile,
                    ["at": .int(Int64(at)), "unit": .string(String(repeating: "x", count: 150))],
                    opID: Int64(100 + at)
                )
            }
            var (found, from, after, pages) = ([FieldValue?](), Int64(0), Int64(0), 0)
            while pages < 20 {
                let range = ObjectRange(type: "measurement", parent: profile.number, from: from)
                let reply = try tablet.client.call(ObjPullRequest(after: after, series: range))
                found += try reply.objects.map { try Entity($0).fields["at"] }
                pages += 1
                guard reply.more == true else { break }
                (from, after) = (reply.time, reply.last ?? 0)
            }
            #expect(found == (1...20).map { .int($0) })
            #expect(pages > 2)
        }
    }

    /// A device's copy of the entities. The device applies each page to the result of earlier
    /// pages.
    private struct Copy {
        var live: [EntityID: Entity] = [:]
        var seen: [EntityID] = []

        mutating func take(_ reply: ObjPullReply) throws {
            for copy in reply.objects {
                let entity = try Entity(copy)
                seen.append(entity.id)
                live[entity.id] = entity.isDeleted ? nil : entity
            }
        }
    }

    /// The clock stands still. So all changes share one millisecond, even changes that are made
    /// after a page was read.
    @Test("go on where they ended, also within the clock's last moment")
    func mark() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let phone = EntityDevice(client: try server.signUp("Alice"))
            let home = try phone.create(.account, opID: 1)
            let profile = try phone.create(.profile, below: home, opID: 2)
            var notes = try (0..<5).map {
                try phone.create(.note, below: profile, opID: Int64(10 + $0))
            }
            var copy = Copy()
            var (since, after, pages, isDone) = (Int64(0), Int64(0), 0, false)
            while pages < 30, !isDone {
                let reply = try phone.pull(since: since, count: 2, after: after)
                try copy.take(reply)
                pages += 1
                if pages < 4 {
                    notes.append(
                        try phone.create(.note, below: profile, opID: Int64(20 + pages))
                    )
                }
                isDone = reply.more != true
                (since, after) = (reply.time, reply.last ?? 0)
            }
            #expect(isDone)
            clock.advance(ms: 1_000)
            let rest = try phone.pull(since: since)
            try copy.take(rest)
            #expect(rest.more == nil)
            #expect(Set(copy.live.keys) == Set(notes + [home, profile]))
            clock.advance(ms: 1_000)
            #expect(try phone.pull(since: rest.time).objects.isEmpty)
        }
    }

    @Test("of everything after a restored backup tell what is deleted while they are read")
    func restored() throws {
        let clock = ManualClock()
        let server = try TestServer(environment: clock.environment)
        defer { TestServer.removeDirectory(server.dataDirectory) }
        let alice = try server.signUp("Alice")
        let phone = EntityDevice(client: alice)
        let home = try phone.create(.account, opID: 1)
        let profile = try phone.create(.profile, below: home, opID: 2)
        let gone = try phone.create(.note, below: profile, opID: 3)
        var notes: [EntityID] = []
        for number in 0..<6 {
            clock.advance(ms: 1_000)
            notes.append(try phone.create(.note, below: profile, opID: Int64(10 + number)))
        }
        _ = try phone.push(.delete(.note, gone, base: 1, opID: 20))
        let mark = try phone.pullAll().time
        let place = "\(server.dataDirectory)-backup"
        let backup = Backup(place, environment: clock.environment)
        defer { TestServer.removeDirectory(place) }
        clock.advance(ms: 1_000)
        try backup.take(from: server.dataDirectory) { _ in }
        server.stop()
        clock.advance(ms: 1_000)
        let directory = "\(server.dataDirectory)-restored"
        defer { TestServer.removeDirectory(directory) }
        try backup.restore(to: directory) { _ in }
        clock.advance(ms: 60_000)
        let restored = try TestServer(
            environment: clock.environment,
            dataDirectory: directory
        )
        defer { restored.stop() }
        let client = try restored.connect(device: "phone")
        client.token = alice.token
        _ = try restored.login(client)
        let device = EntityDevice(client: client)

        // The restored store has no commit this late, so the server knows that the mark is from
        // before the restore.
        #expect(try device.pull(since: mark + 3_600_000, count: 3).resync == true)
        var copy = Copy()
        var reply = try device.pull(since: mark, count: 3)
        #expect(reply.resync == true)
        #expect(!reply.objects.contains { $0.deleted == true })
        try copy.take(reply)
        // Delete one note of the first page and one note of a later page.
        _ = try device.push([
            .delete(.note, notes[0], base: 1, opID: 30),
            .delete(.note, notes[5], base: 1, opID: 31),
        ])
        var pages = 1
        while reply.more == true, pages < 20 {
            clock.advance(ms: 1_000)
            reply = try device.pull(since: reply.time, count: 3, after: reply.last ?? 0)
            #expect(reply.resync == nil)
            try copy.take(reply)
            pages += 1
        }
        #expect(Set(copy.live.keys) == Set([home, profile] + notes[1..<5]))
        #expect(copy.seen.contains(notes[5]))
    }
}

@Suite("Entities below one that is deleted")
struct EntityCascadeTests {
    @Test("go at once, of every type and depth, and only those")
    func all() throws {
        let limits = ["maxObjects": 5_000, "purgedRowsPerStep": 5_000]
        try withEntityDevices(limits: limits) { _, phone, tablet, profile in
            let all = try phone.pullAll().entities
            let account = try #require(all.first { $0.type == .account })
            let other = try phone.create(.profile, below: account.id, opID: 3)
            let kept = try phone.create(.note, below: other, opID: 4)
            var expected: Set<EntityID> = [profile]
            for batch in 0..<10 {
                let operations = (0..<200).map { index in
                    let number = Int64(batch * 200 + index)
                    return index % 50 == 0
                        ? EntityOperation.create(
                            .preference,
                            .local(number),
                            below: profile,
                            ["key": .string("k\(number)"), "value": .string("v")],
                            opID: 100 + number
                        )
                        : .create(
                            .note,
                            .local(number),
                            below: profile,
                            ["text": .string("x")],
                            opID: 100 + number
                        )
                }
                expected.formUnion(try phone.push(operations).compactMap { $0.applied?.id })
            }
            #expect(expected.count == 2_001)
            let mark = try tablet.pullAll().time
            _ = try tablet.client.takePushes()
            let delete = EntityOperation.delete(.profile, profile, base: 1, opID: 5_000)
            let first = try phone.push(delete)
            let told = try tablet.client.takePushes()
                .filter { $0.opcode == .notifObj }
                .flatMap { try $0.decode(as: NotifObj.self).objects }
            #expect(Set(told.map { EntityID.server($0.id) }) == expected)
            let changed = try tablet.pullAll(since: mark).entities
            #expect(Set(changed.map(\.id)) == expected)
            #expect(changed.count == expected.count)
            #expect(changed.allSatisfy { $0.isDeleted && $0.version == 2 && $0.fields.isEmpty })
            #expect(Set(changed.map(\.modified)).count == 1)
            #expect(Set(try tablet.pullAll().entities.map(\.id)) == [account.id, other, kept])
            // The user has fewer entities now. A retry of the deletion still gets the stored
            // answer.
            #expect(try phone.push(delete) == .replayed(first))
            try tablet.client.expectSilence()
        }
    }

    /// Deleting the account deletes its profiles and everything below them.
    @Test("make room for others, also two levels down")
    func counts() throws {
        let limits = ["maxObjects": 4, "maxSeriesElements": 2]
        try withEntityDevices(limits: limits) { _, phone, _, profile in
            let account = try #require(phone.pullAll().entities.first { $0.type == .account })
            for opID in 10...11 {
                _ = try phone.create(.note, below: profile, opID: Int64(opID))
                _ = try phone.create(.measurement, below: profile, opID: Int64(opID + 10))
            }
            #expect(
                try phone.push(.create(.account, opID: 30)) == .refused(.tooMany, "/type")
            )
            _ = try phone.push(.delete(.account, account.id, base: 1, opID: 31))
            let home = try phone.create(.account, opID: 40)
            let ann = try phone.create(.profile, below: home, opID: 41)
            for opID in 42...43 {
                _ = try phone.create(.note, below: ann, opID: Int64(opID))
                _ = try phone.create(.measurement, below: ann, opID: Int64(opID + 10))
            }
            #expect(
                try phone.push(.create(.profile, below: home, opID: 60))
                    == .refused(.tooMany, "/type")
            )
        }
    }

    @Test("leave the fields of those that a later update may bring back, and no word of others")
    func left() throws {
        try withEntityDevices { server, phone, _, profile in
            let setting = ["key": FieldValue.string("units"), "value": .string("kg")]
            let preference = try phone.create(.preference, below: profile, setting, opID: 10)
            let note = try phone.create(.note, below: profile, ["text": .string("x")], opID: 11)
            _ = try phone.push(.delete(.profile, profile, base: 1, opID: 12))
            let file = try SQLiteConnection(
                path: "\(server.dataDirectory)/tambour.db",
                mode: .readOnly
            )
            try StoreConnection(file, limits: .standard).read { snapshot in
                for (id, fields) in [(preference, setting), (note, [:])] {
                    let stored = try snapshot.entity(id.number, of: phone.client.userID)
                    #expect(stored?.entity.isDeleted == true)
                    #expect(stored?.entity.fields == fields)
                }
            }
        }
    }

    @Test("do not come back below one that is deleted")
    func notBroughtBack() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let fields = ["key": FieldValue.string("units"), "value": .string("kg")]
            let preference = try phone.create(.preference, below: profile, fields, opID: 10)
            let note = try phone.create(.note, below: profile, ["text": .string("x")], opID: 11)
            _ = try phone.push(.delete(.profile, profile, base: 1, opID: 12))
            for (type, id) in [(EntityType.preference, preference), (.note, note)] {
                let name = type == .note ? "text" : "value"
                #expect(
                    try tablet.push(
                        .update(type, id, base: 1, [name: .string("lb")], opID: id.number)
                    ) == .refused(.parentDeleted, "/parent")
                )
            }
        }
    }
}

@Suite("Values of fields")
struct EntityValueTests {
    private func nested(_ depth: Int) -> FieldValue {
        (1..<depth).reduce(.list([])) { value, _ in .list([value]) }
    }

    @Test("lie no deeper than eight lists, and are no more than 256")
    func modest() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let wide = { (count: Int) in FieldValue.list(.init(repeating: .null, count: count)) }
            let refused = EntityResult.refused(.tooLarge, "/fields/tags")
            for (index, (value, isFine)) in [
                (nested(8), true), (nested(9), false), (wide(255), true), (wide(256), false),
            ].enumerated() {
                let result = try phone.push(
                    .create(.note, below: profile, ["tags": value], opID: Int64(100 + index))
                )
                #expect(isFine ? result.applied != nil : result == refused, "\(index): \(result)")
            }
            let notes = try tablet.pullAll().entities.filter { $0.type == .note }
            #expect(Set(notes.map { $0.fields["tags"] }) == [nested(8), wide(255)])
        }
    }
}
