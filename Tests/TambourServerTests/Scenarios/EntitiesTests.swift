import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@Suite("OBJ_PUSH (1041)")
struct ObjPushTests {
    @Test("what is created together finds its parent by its local id")
    func together() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let results = try phone.push([
                .create(.profile, .local(7), below: .server(0), opID: 10),
                .create(.note, .local(8), below: profile, ["title": .string("a")], opID: 11),
                .create(.note, .local(9), below: .local(7), opID: 12),
            ])
            #expect(results[0] == .refused(.parentDeleted, "/parent"))
            #expect(results[1].applied?.version == 1)
            #expect(results[2] == .skipped(because: 10))
            let note = try #require(results[1].applied)
            let pushed = try tablet.client.only(.notifObj, as: NotifObj.self)
            #expect(pushed.flatMap(\.objects).map(\.id) == [note.id.number])
            let account = try accountID(phone)
            let below = try phone.push([
                .create(.profile, .local(1), below: account, opID: 13),
                .create(.note, .local(2), below: .local(1), ["text": .string("x")], opID: 14),
            ])
            let all = try tablet.pullAll().entities
            let child = all.first { $0.id == below[1].applied?.id }
            #expect(child?.parent == below[0].applied?.id)
            #expect(child?.createdBy == 14)
            #expect(child?.fields == ["text": .string("x")])
        }
    }

    private func accountID(_ device: EntityDevice) throws -> EntityID {
        try #require(device.pullAll().entities.first { $0.type == .account }).id
    }

    @Test("sent again it gets the first result, and nobody is told")
    func again() throws {
        try withEntityDevices { server, phone, tablet, profile in
            let create = EntityOperation.create(
                .note,
                below: profile,
                ["title": .string("a")],
                opID: 10
            )
            let first = try phone.push(create)
            let id = try #require(first.applied).id
            let update = EntityOperation.update(
                .note,
                id,
                base: 1,
                ["title": .string("b")],
                opID: 11
            )
            let second = try phone.push(update)
            #expect(second.applied?.version == 2)
            _ = try tablet.client.takePushes()
            #expect(try phone.push([create, update]) == [.replayed(first), .replayed(second)])
            try tablet.client.expectSilence()
            // Another device may use the same operation number.
            let other = try tablet.push(
                .update(.note, id, base: 2, ["title": .string("c")], opID: 11)
            )
            #expect(other.applied?.version == 3)
            var changed = update
            changed.fields = ["title": .string("z")]
            #expect(try phone.push(changed) == .refused(.reusedOperation, "/opId"))
        }
    }

    @Test("a cas type wants the present version")
    func cas() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let id = try phone.create(.note, below: profile, ["title": .string("a")], opID: 10)
            _ = try tablet.push(.update(.note, id, base: 1, ["title": .string("b")], opID: 1))
            let result = try phone.push(
                .update(.note, id, base: 1, ["text": .string("mine")], opID: 11)
            )
            guard case .conflict(.updateUpdate, let server?) = result else {
                Issue.record("\(result)")
                return
            }
            #expect(server.version == 2)
            #expect(server.fields == ["title": .string("b")])
            #expect(try phone.pullAll().entities.first { $0.id == id } == server)
        }
    }

    @Test("fields of a merge type that do not meet are both applied, those that meet are not")
    func merge() throws {
        try withEntityDevices { _, phone, tablet, profile in
            _ = try tablet.push(
                .update(.profile, profile, base: 1, ["color": .string("red")], opID: 1)
            )
            let merged = try phone.push(
                .update(.profile, profile, base: 1, ["born": .int(5)], opID: 10)
            )
            #expect(merged.applied?.version == 3)
            #expect(
                merged.applied?.entity?.fields
                    == ["name": .string("Ann"), "color": .string("red"), "born": .int(5)]
            )
            let met = try phone.push(
                .update(.profile, profile, base: 1, ["color": .string("blue")], opID: 11)
            )
            guard case .conflict(.updateUpdate, _) = met else {
                Issue.record("\(met)")
                return
            }
        }
    }

    @Test("the later one of an lww type wins, and a wrong clock does not")
    func lastWriter() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let id = try phone.create(
                .preference,
                below: profile,
                ["key": .string("units"), "value": .string("kg")],
                opID: 10
            )
            let now: Int64 = 2_000_000_000_000
            let late = EntityOperation.update(
                .preference,
                id,
                base: 1,
                ["value": .string("lb")],
                opID: 1,
                modified: now + 31_536_000_000
            )
            // The tablet's clock is a year ahead. The server uses the age of the change, not its
            // time.
            let results = try tablet.push([late], clientNow: now + 31_536_000_000)
            #expect(results.first?.applied?.version == 2)
            let old = EntityOperation.update(
                .preference,
                id,
                base: 1,
                ["value": .string("st")],
                opID: 11,
                modified: now - 3_600_000
            )
            let lost = try phone.push([old], clientNow: now)
            guard case .conflict(.superseded, let server?) = lost.first else {
                Issue.record("\(lost)")
                return
            }
            #expect(server.fields["value"] == .string("lb"))
            let new = EntityOperation.update(
                .preference,
                id,
                base: 1,
                ["value": .string("g")],
                opID: 12,
                modified: now
            )
            let won = try phone.push([new], clientNow: now)
            #expect(won.first?.applied?.loser?.fields["value"] == .string("lb"))
        }
    }

    @Test("what finds a tombstone goes by its type")
    func deleted() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let note = try phone.create(.note, below: profile, ["title": .string("a")], opID: 10)
            let preference = try phone.create(
                .preference,
                below: profile,
                ["key": .string("units"), "value": .string("kg")],
                opID: 11
            )
            _ = try tablet.push([
                .delete(.note, note, base: 1, opID: 1),
                .delete(.preference, preference, base: 1, opID: 2),
            ])
            let results = try phone.push([
                .update(.note, note, base: 1, ["title": .string("b")], opID: 12),
                .update(.preference, preference, base: 1, ["value": .string("lb")], opID: 13),
            ])
            guard case .conflict(.updateDelete, let tombstone?) = results[0] else {
                Issue.record("\(results)")
                return
            }
            #expect(tombstone.isDeleted)
            #expect(tombstone.fields.isEmpty)
            #expect(
                results[1].applied?.entity?.fields
                    == ["key": .string("units"), "value": .string("lb")]
            )
            _ = try tablet.push(.delete(.profile, profile, base: 1, opID: 3))
            let orphan = try phone.push(
                .update(.note, note, base: 1, ["title": .string("c")], opID: 14)
            )
            #expect(orphan == .refused(.parentDeleted, "/parent"))
        }
    }

    @Test("a deletion of what changed is a conflict, of what is deleted nothing new")
    func deleting() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let note = try phone.create(.note, below: profile, opID: 10)
            _ = try tablet.push(.update(.note, note, base: 1, ["title": .string("b")], opID: 1))
            let conflict = try phone.push(.delete(.note, note, base: 1, opID: 11))
            guard case .conflict(.deleteUpdate, _) = conflict else {
                Issue.record("\(conflict)")
                return
            }
            #expect(try phone.push(.delete(.note, note, base: 2, opID: 12)).applied?.version == 3)
            let again = try tablet.push(.delete(.note, note, base: 2, opID: 2))
            #expect(again.isReplayed)
            #expect(again.applied?.version == 3)
        }
    }

    @Test("what stands below goes along, elements of series too")
    func cascade() throws {
        try withEntityDevices { server, phone, tablet, profile in
            let note = try phone.create(.note, below: profile, opID: 10)
            for at in 1...3 {
                _ = try phone.create(
                    .measurement,
                    below: profile,
                    ["at": .int(Int64(at))],
                    opID: Int64(10 + at)
                )
            }
            let mark = try tablet.pullAll().time
            _ = try tablet.client.takePushes()
            _ = try phone.push(.delete(.profile, profile, base: 1, opID: 20))
            let pushed = try tablet.client.only(.notifObj, as: NotifObj.self).flatMap(\.objects)
            #expect(Set(pushed.map(\.id)) == [profile.number, note.number])
            let changed = try tablet.pullAll(since: mark).entities
            #expect(Set(changed.map(\.id)) == [profile, note])
            #expect(changed.allSatisfy { $0.isDeleted })
            let range = ObjectRange(type: "measurement", parent: profile.number)
            let series = try tablet.client.call(ObjPullRequest(series: range))
            #expect(series.objects.isEmpty)
        }
    }

    @Test("a natural key names one entity below one parent, until it is deleted")
    func naturalKey() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let fields: [String: FieldValue] = ["key": .string("units"), "value": .string("kg")]
            let first = try phone.create(.preference, below: profile, fields, opID: 10)
            let twin = try tablet.push(.create(.preference, below: profile, fields, opID: 1))
            guard case .conflict(.duplicate, let server?) = twin else {
                Issue.record("\(twin)")
                return
            }
            #expect(server.id == first)
            let renamed = try tablet.push(
                .update(.preference, first, base: 1, ["key": .string("other")], opID: 2)
            )
            #expect(renamed == .refused(.keyIsFixed, "/fields/key"))
            _ = try phone.push(.delete(.preference, first, base: 1, opID: 11))
            let next = try tablet.push(.create(.preference, below: profile, fields, opID: 3))
            #expect(next.applied?.version == 1)
            // The new preference uses the name of the deleted one, so the deleted one cannot come
            // back.
            let back = try phone.push(
                .update(.preference, first, base: 1, ["value": .string("lb")], opID: 12)
            )
            guard case .conflict(.updateDelete, _) = back else {
                Issue.record("\(back)")
                return
            }
        }
    }

    @Test("what no entity can hold is refused with its place")
    func refusals() throws {
        try withEntityDevices(limits: ["maxObjectBytes": 100]) { _, phone, _, profile in
            let results = try phone.push([
                .create(EntityType("song"), below: profile, opID: 10),
                .create(.note, .local(2), below: profile, ["titel": .string("a")], opID: 11),
                .create(.note, .local(3), below: profile, ["title": .int(1)], opID: 12),
                .create(
                    .note,
                    .local(4),
                    below: profile,
                    ["title": .string(String(repeating: "a", count: 100))],
                    opID: 13
                ),
                .create(.measurement, .local(5), below: profile, ["at": .int(1)], opID: 14),
                .update(.note, .local(5), base: 1, ["title": .string("a")], opID: 15),
                .update(.measurement, .local(5), base: 1, ["at": .int(2)], opID: 16),
                .update(.note, .local(99), base: 1, [:], opID: 17),
                .create(.note, .local(6), below: profile, opID: 18),
            ])
            #expect(
                results.enumerated().filter { $0.offset != 4 }.map(\.element) == [
                    .refused(.unknownType, "/type"),
                    .refused(.unknownField, "/fields/titel"),
                    .refused(.wrongFieldKind, "/fields/title"),
                    .refused(.tooLarge, "/fields"),
                    .refused(.wrongType, "/type"),
                    .refused(.appendOnly, "/op"),
                    .refused(.unknownReference, "/id"),
                    .refused(.outOfOrder, "/op"),
                ]
            )
            #expect(results[4].applied?.version == 1)
        }
    }

    @Test("the entities of a user and their elements are limited")
    func many() throws {
        let limits = ["maxObjects": 3, "maxSeriesElements": 2]
        try withEntityDevices(limits: limits) { _, phone, _, profile in
            let note = try phone.create(.note, below: profile, opID: 10)
            #expect(
                try phone.push(.create(.note, below: profile, opID: 11))
                    == .refused(.tooMany, "/type")
            )
            for opID in 12...13 {
                _ = try phone.create(.measurement, below: profile, opID: Int64(opID))
            }
            #expect(
                try phone.push(.create(.measurement, below: profile, opID: 14))
                    == .refused(.tooMany, "/type")
            )
            _ = try phone.push(.delete(.note, note, base: 1, opID: 15))
            _ = try phone.create(.note, below: profile, opID: 16)
        }
    }

    @Test("what is no operation refuses the request as a whole")
    func broken() throws {
        try withEntityDevices { _, phone, _, profile in
            var operations = [
                ObjectOperation(.create(.note, below: profile, opID: 10)),
                ObjectOperation(.create(.note, .local(2), below: profile, opID: 11)),
            ]
            operations[1].id = AnyValue("l2")
            let request = ObjPushRequest(clientNow: 1, ops: operations)
            #expect(try phone.client.code(of: request) == .protoPayload)
            let all = try phone.pullAll().entities
            #expect(!all.contains { $0.type == .note })
        }
    }
}

@Suite("OBJ_PULL (1040)")
struct ObjPullTests {
    @Test("a delta is what changed, deletions among it")
    func delta() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let kept = try phone.create(.note, below: profile, ["title": .string("a")], opID: 10)
            let gone = try phone.create(.note, below: profile, ["title": .string("b")], opID: 11)
            let first = try tablet.pull()
            #expect(first.resync == true)
            #expect(first.objects.count == 4)
            let mark = first.time
            #expect(try tablet.pull(since: mark).objects.isEmpty)
            _ = try phone.push([
                .delete(.note, gone, base: 1, opID: 12),
                .update(.note, kept, base: 1, ["title": .string("c")], opID: 13),
            ])
            let delta = try tablet.pull(since: mark)
            #expect(delta.resync == nil)
            #expect(delta.more == nil)
            #expect(Set(delta.objects.map(\.id)) == [kept.number, gone.number])
            let tombstone = try #require(delta.objects.first { $0.id == gone.number })
            #expect(tombstone.deleted == true)
            #expect(tombstone.fields == nil)
            #expect(delta.objects.first { $0.id == kept.number }?.version == 2)
            // A full pull contains no tombstones.
            #expect(try tablet.pull().objects.map(\.id).contains(gone.number) == false)
        }
    }

    @Test("pages go on without a gap, also within what changed together")
    func pages() throws {
        try withEntityDevices { _, phone, tablet, profile in
            for round in 0..<4 {
                let results = try phone.push(
                    (0..<10).map { index in
                        let number = Int64(round * 10 + index)
                        return .create(.note, .local(number), below: profile, opID: 100 + number)
                    }
                )
                #expect(results.allSatisfy { $0.applied != nil })
            }
            for count in [1, 3, 7, 42, 100] {
                let all = try tablet.pullAll(count: Int64(count))
                #expect(all.entities.count == 42)
                #expect(Set(all.entities.map(\.id)).count == 42)
                #expect(all.pages >= 42 / count)
            }
        }
    }

    @Test("a page holds no more bytes than a reply may")
    func bytes() throws {
        let limits = ["maxReplyBytes": 20_000]
        try withEntityDevices(limits: limits) { _, phone, tablet, profile in
            for number in 0..<8 {
                let text = String(repeating: "x", count: 6_000)
                _ = try phone.create(
                    .note,
                    below: profile,
                    ["text": .string(text)],
                    opID: Int64(100 + number)
                )
            }
            let all = try tablet.pullAll()
            #expect(all.entities.count == 10)
            #expect(all.pages >= 3)
        }
    }

    @Test("nobody sees what is another's")
    func others() throws {
        try withEntityDevices { server, _, _, profile in
            let bob = EntityDevice(client: try server.signUp("Bob"))
            #expect(try bob.pull().objects.isEmpty)
            #expect(
                try bob.push(.create(.note, below: profile, opID: 1))
                    == .refused(.parentDeleted, "/parent")
            )
            let range = ObjectRange(type: "measurement", parent: profile.number)
            #expect(try bob.client.call(ObjPullRequest(series: range)).objects.isEmpty)
        }
    }

    @Test("a range of a series comes in its order, both ends included")
    func series() throws {
        try withEntityDevices { _, phone, tablet, profile in
            let times: [Int64] = [50, 10, 30, 20, 40, 30, 30]
            for (index, time) in times.enumerated() {
                _ = try phone.create(
                    .measurement,
                    below: profile,
                    ["at": .int(time), "value": .double(Double(index))],
                    opID: Int64(100 + index)
                )
            }
            #expect(try tablet.pullAll().entities.count == 2)
            var found: [FieldValue?] = []
            var (from, after, pages) = (Int64(20), Int64(0), 0)
            while true {
                let range = ObjectRange(
                    type: "measurement",
                    parent: profile.number,
                    from: from,
                    to: 40
                )
                let reply = try tablet.client.call(
                    ObjPullRequest(count: 2, after: after, series: range)
                )
                found += try reply.objects.map { try Entity($0).fields["at"] }
                pages += 1
                guard reply.more == true else { break }
                (from, after) = (reply.time, reply.last ?? 0)
            }
            #expect(found == [20, 30, 30, 30, 40].map { .int($0) })
            #expect(pages == 3)
        }
    }

    @Test("odd requests are refused")
    func odd() throws {
        try withEntityDevices { _, phone, _, profile in
            for request in [
                ObjPullRequest(since: -1), ObjPullRequest(count: 0),
                ObjPullRequest(series: ObjectRange(type: "note", parent: profile.number)),
            ] {
                let code = try phone.client.code(of: request)
                #expect(code == .protoPayload)
            }
        }
    }
}
