import Foundation
import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

@Suite("What stands below a deleted entity goes in steps")
struct EntityPurgeTests {
    /// An engine that a test drives, and a user with an account of 2 profiles. Each profile has 30
    /// notes and 40 measurements.
    private final class Machine {
        let limits: Limits
        let writing: StoreConnection
        let reading: StoreConnection
        let user: UserID
        private let directory: URL
        private var clock: CommitClock
        private(set) var core: EngineCore
        private var wall: Int64 = 1_700_000_000_000
        private var lastOperation: Int64 = 0
        private(set) var told: [Entity] = []

        init(limits overrides: [String: Int] = [:]) throws {
            limits = try Limits(overrides: overrides.merging(["purgedRowsPerStep": 7]) { $1 })
            directory = try SyncMachine.scratchDirectory("purge")
            let path = directory.appendingPathComponent("tambour.db").path
            let connection = try SQLiteConnection(path: path, mode: .readWrite)
            try StoreConnection.migrate(connection)
            writing = try StoreConnection(connection, limits: limits)
            reading = try StoreConnection(
                SQLiteConnection(path: path, mode: .readOnly),
                limits: limits
            )
            (core, clock) = try Self.start(writing, limits)
            user = UserID(1)
            _ = core.run(
                [
                    Command { tx in
                        _ = try tx.createAccount(phone: 1, firstName: "A", lastName: nil)
                        return .done
                    }
                ],
                wall: { 1_700_000_000_000 }
            )
        }

        func remove() { try? FileManager.default.removeItem(at: directory) }

        private static func start(
            _ store: StoreConnection,
            _ limits: Limits
        ) throws -> (EngineCore, CommitClock) {
            let writer = try StoreWriter(store, userIDs: .rising(from: 1))
            let clock = CommitClock(
                persistedLeaseEnd: try writer.persistedLeaseEnd(),
                leaseMs: limits.commitLeaseMs
            )
            let core = EngineCore(
                writer: writer,
                clock: clock,
                metrics: ServerMetrics(startedMs: 0),
                report: { Issue.record("\($0)") }
            )
            return (core, clock)
        }

        /// Restarts the engine, which loses everything that is not on disk.
        func restart() throws { (core, clock) = try Self.start(writing, limits) }

        var handler: EntitiesHandler {
            EntitiesHandler(limits: limits, restored: RestoredMarks(last: 0), clock: clock)
        }

        private var caller: Caller {
            Caller(
                userID: user,
                sessionID: SessionID(1),
                deviceID: DeviceID(1),
                connectionID: ConnectionID(1),
                replyBudget: limits.maxReplyBytes
            )
        }

        /// Runs a query of the caller on a snapshot.
        private func call(
            _ caller: Caller,
            _ time: Int64,
            _ snapshot: ReadTransaction
        ) -> QueryCall {
            let origin = SessionOrigin(installation: "", client: "", info: "", address: "")
            let requester = Requester(caller: caller, origin: origin)
            return QueryCall(requester: requester, time: time, snapshot: snapshot)
        }

        private func note(_ events: [Event]) {
            for case .push(.notifObj(let push), _, _) in events {
                told += push.objects.compactMap { try? Entity($0) }
            }
        }

        func push(_ operations: [EntityOperation]) throws -> [EntityResult] {
            wall += 1_000
            let request = ObjPushRequest(
                clientNow: 1_000_000,
                ops: operations.map { ObjectOperation($0) }
            )
            let (handler, caller) = (handler, caller)
            let result = core.run(
                [
                    Command { .stepped(try handler.objPush(request, from: caller, in: $0)) }
                ],
                wall: { self.wall }
            )
            note(result.events)
            guard case .reply(let reply as ObjPushReply) = result.answers[0].outcome else {
                throw Failure()
            }
            return try reply.results.map { try EntityResult($0) }
        }

        func create(_ type: EntityType, below parent: EntityID?, count: Int) throws -> [EntityID] {
            let operations = (0..<count).map { number in
                lastOperation += 1
                // An account's natural key is its name.
                let fields: [String: FieldValue] =
                    type == .account ? ["name": .string("\(lastOperation)")] : [:]
                return EntityOperation.create(
                    type,
                    .local(Int64(number)),
                    below: parent,
                    fields,
                    opID: lastOperation
                )
            }
            return try push(operations).compactMap { $0.applied?.id }
        }

        func operation() -> Int64 {
            lastOperation += 1
            return lastOperation
        }

        /// Runs one purge step.
        ///
        /// - Returns: The number of rows that the step read.
        func step() throws -> Int {
            wall += 1_000
            let before = writing.sql.rowsStepped
            note(try #require(core.runSpareWork(wall: { self.wall })))
            return writing.sql.rowsStepped - before
        }

        func pull(since mark: Int64 = 0) throws -> (entities: [Entity], time: Int64) {
            let request = ObjPullRequest(since: mark, count: 1_000)
            let reply = try reading.read {
                try handler.objPull(request, from: call(caller, wall, $0), in: $0)
            }
            return (try reply.objects.map { try Entity($0) }, reply.time)
        }

        func elements(below parent: EntityID) throws -> Int {
            let range = ObjectRange(type: "measurement", parent: parent.number, from: .min)
            let request = ObjPullRequest(count: 1_000, series: range)
            return try reading.read {
                try handler.objPull(request, from: call(caller, wall, $0), in: $0).objects.count
            }
        }

        /// Returns the number of stored replies to operations whose id is `operation` or higher.
        func replies(from operation: Int64 = 0) throws -> Int64 {
            let statement = try reading.sql.prepare(
                "SELECT count(*) FROM object_reply WHERE op_id >= $1"
            )
            defer { statement.reset() }
            statement.bind(1, operation)
            _ = try statement.step()
            return statement.int(0)
        }

        func stored() throws -> (live: Int64, counts: EntityCounts) {
            let statement = try reading.sql.prepare(
                "SELECT count(*) FROM object WHERE deleted = 0"
            )
            defer { statement.reset() }
            _ = try statement.step()
            return (statement.int(0), try reading.read { try $0.entityCounts(of: user) })
        }
    }

    private struct Failure: Error {}

    @Test(
        "is gone for its readers at once, and nothing is lost or left over by a restart"
    )
    func steps() throws {
        let machine = try Machine()
        defer { machine.remove() }
        let account = try machine.create(.account, below: nil, count: 1)[0]
        let other = try machine.create(.account, below: nil, count: 1)[0]
        let kept = try machine.create(.profile, below: other, count: 1)[0]
        let keptNotes = try machine.create(.note, below: kept, count: 3)
        _ = try machine.create(.measurement, below: kept, count: 5)
        var gone: Set<EntityID> = [account]
        let profiles = try machine.create(.profile, below: account, count: 2)
        gone.formUnion(profiles)
        for profile in profiles {
            gone.formUnion(try machine.create(.note, below: profile, count: 30))
            #expect(try machine.create(.measurement, below: profile, count: 40).count == 40)
        }
        let note = try #require(gone.max())
        let mark = try machine.pull().time
        let delete = EntityOperation.delete(
            .account,
            account,
            base: 1,
            opID: machine.operation()
        )
        let first = try #require(try machine.push([delete]).first)
        #expect(first.applied?.version == 2)
        // The push itself deletes only a few of the 142 rows below the account.
        #expect(try machine.stored().live > 100)

        var delta: [EntityID: Entity] = [:]
        var steps = 0
        while try machine.stored().live > 10, steps < 200 {
            // Clients see the rows that wait for the purge as already deleted.
            for entity in try machine.pull().entities where gone.contains(entity.id) {
                #expect(entity.isDeleted && entity.version == 2 && entity.fields.isEmpty)
            }
            for profile in profiles { #expect(try machine.elements(below: profile) == 0) }
            #expect(try machine.elements(below: kept) == 5)
            let results = try machine.push([
                .create(.note, .local(900), below: profiles[0], opID: machine.operation()),
                .update(.note, note, base: 1, ["text": .string("y")], opID: machine.operation()),
            ])
            for result in results { #expect(result.isRejected(because: .parentDeleted)) }
            if steps % 3 == 2 { try machine.restart() }
            // A step reads the rows it deletes, and a few more to find them.
            #expect(try machine.step() <= 30)
            steps += 1
        }
        #expect((15...60).contains(steps))
        while machine.core.hasSpareWork, steps < 300 {
            _ = try machine.step()
            steps += 1
        }
        #expect(!machine.core.hasSpareWork)
        for entity in try machine.pull(since: mark).entities { delta[entity.id] = entity }
        #expect(Set(delta.keys) == gone)
        #expect(delta.values.allSatisfy { $0.isDeleted && $0.version == 2 })
        #expect(Set(delta.values.map(\.modified)).count == 1)
        #expect(Set(machine.told.filter(\.isDeleted).map(\.id)) == gone)
        let left = try machine.pull().entities.filter { !$0.isDeleted }.map(\.id)
        #expect(Set(left) == Set([other, kept] + keptNotes))
        let counts = try machine.stored().counts
        #expect(counts.live == 5 && counts.elements == 5)
        #expect(try machine.push([delete]) == [.replayed(first)])
    }

    @Test(
        "does not come back before all that stood below it is gone, and then takes children again"
    )
    func undeleted() throws {
        let machine = try Machine()
        defer { machine.remove() }
        let account = try machine.create(.account, below: nil, count: 1)[0]
        _ = try machine.create(.profile, below: account, count: 60)
        let delete = EntityOperation.delete(.account, account, base: 1, opID: machine.operation())
        #expect(try machine.push([delete]).first?.applied?.version == 2)
        let update = EntityOperation.update(
            .account,
            account,
            base: 1,
            ["settings": .map(["a": .int(1)])],
            opID: machine.operation()
        )
        #expect(try machine.push([update]) == [.skipped(because: update.opID)])
        var steps = 0
        while machine.core.hasSpareWork, steps < 300 {
            _ = try machine.step()
            steps += 1
        }
        let back = try #require(try machine.push([update]).first)
        #expect(back.applied?.version == 3, "\(back)")
        #expect(try machine.create(.profile, below: account, count: 3).count == 3)
    }

    @Test("what was refused leaves nothing behind, and is judged again")
    func refused() throws {
        let machine = try Machine()
        defer { machine.remove() }
        for round in 0..<5 {
            let nonsense = (0..<100).map { number in
                [
                    EntityOperation.create(
                        EntityType("nothing"),
                        .local(Int64(number)),
                        opID: Int64(round * 1_000 + number)
                    )
                ]
            }
            for operations in nonsense { _ = try machine.push(operations) }
            // Deleting a missing entity counts as done.
            let deletions = (0..<100).map {
                EntityOperation.delete(
                    .note,
                    .server(Int64($0 + 1)),
                    base: 1,
                    opID: Int64(round * 1_000 + 500 + $0)
                )
            }
            for result in try machine.push(deletions) { #expect(result.first.applied != nil) }
        }
        #expect(try machine.replies() == 0)
        // The server refuses the operation while the parent is missing; later the parent exists.
        let lost = EntityOperation.create(.profile, below: .server(77), opID: 9_000)
        #expect(try machine.push([lost])[0].isRejected(because: .parentDeleted))
        #expect(try machine.push([lost])[0].isRejected(because: .parentDeleted))
        let account = try machine.create(.account, below: nil, count: 1)[0]
        let found = EntityOperation.create(.profile, below: account, opID: 9_000)
        #expect(try machine.push([found])[0].applied != nil)
        #expect(try machine.replies() == 2)
        #expect(try machine.stored().counts.replies == 2)
    }

    @Test("of the answers that are kept the oldest are forgotten")
    func forgotten() throws {
        let machine = try Machine(limits: ["maxObjectReplies": 10])
        defer { machine.remove() }
        let name: [String: FieldValue] = ["name": .string("first")]
        let first = EntityOperation.create(.account, .local(1), below: nil, name, opID: 9_000)
        #expect(try machine.push([first])[0].applied != nil)
        #expect(try machine.replies(from: 9_000) == 1)
        for _ in 0..<6 {
            #expect(try machine.create(.account, below: nil, count: 5).count == 5)
            let replies = try machine.replies()
            #expect(replies <= 10)
            #expect(try machine.stored().counts.replies == replies)
        }
        #expect(try machine.replies() == 10)
        #expect(try machine.replies(from: 9_000) == 0)
    }
}

extension EntityResult {
    fileprivate func isRejected(because error: ObjectError) -> Bool {
        if case .rejected(let refusal) = first { refusal.error == error } else { false }
    }
}
