import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

@Suite("What a login costs")
struct LoginCostTests {
    /// A server on which Alice has many dialogs, and the reply to her last login. Nothing has
    /// changed since that login.
    private struct World {
        let server: TestServer
        let clock: ManualClock
        let alice: WireClient
        let partners: [UserID]
        var login: LoginReply

        /// - Parameter dialogs: The number of accounts that Alice writes to.
        init(dialogs: Int, limits: [String: Int] = [:]) throws {
            clock = ManualClock()
            server = try TestServer(overrides: limits, environment: clock.environment)
            alice = try server.signUp("Alice")
            var ids: [UserID] = []
            try AdminClient(dataDirectory: server.dataDirectory).require(
                .createUsers(count: dialogs, firstPhone: 79_000_000_000)
            ) { line in
                ids.append(UserID(Int64(String(line.split(separator: " ")[1])) ?? 0))
            }
            partners = ids
            login = try alice.call(LoginRequest(token: alice.token))
            try write(to: ids, cid: 1)
            clock.advance(ms: 1_000)
            login = try relogin(alice).reply
            clock.advance(ms: 1_000)
        }

        /// Makes Alice send a message to each user. Sends all messages before it waits for the
        /// replies.
        func write(to users: some Sequence<UserID>, cid: Int64) throws {
            let numbers = try users.map {
                try alice.send(
                    MsgSendRequest(
                        userID: $0,
                        message: NewMessage(cid: cid, text: Text("See you at the station, \($0)."))
                    )
                )
            }
            for number in numbers { _ = try alice.reply(to: number, as: MsgSendReply.self) }
        }

        /// Logs in on a new connection, like a client that stores its marks.
        ///
        /// - Returns: The reply, and the bytes and packets that the server sent for the LOGIN.
        func relogin(_ client: WireClient, device: String = "phone") throws
            -> (reply: LoginReply, bytes: Int, packets: Int)
        {
            let next = try server.connect(device: device)
            let (bytes, packets) = (next.receivedBytes, next.receivedPackets)
            let reply = try next.call(
                LoginRequest(
                    token: client.token,
                    interactive: true,
                    chatsSync: login.time,
                    contactsSync: login.time,
                    draftsSync: login.time,
                    presenceSync: login.time,
                    configHash: login.config?.hash ?? configHash
                )
            )
            return (reply, next.receivedBytes - bytes, next.receivedPackets - packets)
        }

        private var configHash: Text? {
            ServiceConfig(limits: .standard).config(for: nil, version: 0, unlessKnown: nil)?.hash
        }

        /// Returns the store's work for one delta login.
        func cost() throws -> Cost {
            let sql = try SQLiteConnection(
                path: "\(server.dataDirectory)/tambour.db",
                mode: .readOnly
            )
            let store = try StoreConnection(sql, limits: .standard)
            let presence = PresenceRegistry(
                clock: CommitClock(persistedLeaseEnd: 0, leaseMs: 0),
                wall: 0,
                limits: .standard
            )
            let sync = LoginSync(
                limits: .standard,
                presence: presence,
                settings: ServiceConfig(limits: .standard)
            )
            let requester = Requester(
                caller: Caller(
                    userID: alice.userID,
                    sessionID: SessionID(1),
                    deviceID: DeviceID(1),
                    connectionID: ConnectionID(1),
                    replyBudget: Limits.standard.maxReplyBytes
                ),
                origin: SessionOrigin(installation: "", client: "", info: "", address: "")
            )
            let request = LoginRequest(
                token: "",
                chatsSync: login.time,
                contactsSync: login.time,
                presenceSync: login.time
            )
            // The first login also prepares statements and reads the schema, so measure only the
            // second login.
            return try store.read { snapshot in
                _ = try sync.login(request, from: requester, time: clock.now, in: snapshot)
                let before = Cost(sql)
                let login = try sync.login(request, from: requester, time: clock.now, in: snapshot)
                var cost = Cost(sql) - before
                guard case .finished(let result) = login else { return cost }
                cost.chats = result.reply.chats.count
                return cost
            }
        }
    }

    private struct Cost: Equatable {
        var statements: Int
        var rows: Int
        var steps: Int
        var chats = 0

        init(_ sql: SQLiteConnection) {
            statements = sql.statementCount
            rows = sql.rowsStepped
            steps = sql.virtualMachineSteps
        }

        static func - (left: Cost, right: Cost) -> Cost {
            var cost = left
            cost.statements -= right.statements
            cost.rows -= right.rows
            cost.steps -= right.steps
            return cost
        }
    }

    @Test("nothing changed in 1,000 dialogs: one request, at most 600 bytes back")
    func nothingChanged() throws {
        let world = try World(dialogs: 1_000)
        defer { world.server.remove() }
        let (reply, bytes, packets) = try world.relogin(world.alice)
        #expect(reply.chats.isEmpty)
        #expect(reply.contacts.isEmpty)
        #expect(packets == 1)
        #expect(bytes <= 600)
        print("nothing changed in 1,000 dialogs: \(bytes) bytes")
    }

    @Test("5 of 200 changed: at most 1,500 bytes")
    func fiveChanged() throws {
        let world = try World(dialogs: 200)
        defer { world.server.remove() }
        try world.write(to: world.partners.prefix(5), cid: 2)
        world.clock.advance(ms: 1_000)
        let (reply, bytes, packets) = try world.relogin(world.alice)
        #expect(reply.chats.count == 5)
        #expect(packets == 1)
        #expect(bytes <= 1_500)
        print("5 of 200 dialogs changed: \(bytes) bytes")
    }

    @Test("statements, rows and the steps of SQLite do not grow with the dialogs")
    func independent() throws {
        var costs: [(nothing: Cost, five: Cost)] = []
        for dialogs in [50, 200, 1_000] {
            let world = try World(dialogs: dialogs)
            defer { world.server.remove() }
            let nothing = try world.cost()
            try world.write(to: world.partners.prefix(5), cid: 2)
            world.clock.advance(ms: 1_000)
            costs.append((nothing, try world.cost()))
            print("\(dialogs) dialogs: \(costs[costs.count - 1])")
        }
        let first = costs[0]
        #expect(first.nothing.chats == 0)
        #expect(first.five.chats == 5)
        for cost in costs.dropFirst() {
            #expect(cost.nothing.statements == first.nothing.statements)
            #expect(cost.nothing.rows == first.nothing.rows)
            #expect(cost.five.statements == first.five.statements)
            #expect(cost.five.rows == first.five.rows)
            // The number of steps may differ by a few comparisons. It must not grow by a step for
            // each dialog.
            #expect(abs(cost.nothing.steps - first.nothing.steps) < 100)
            #expect(abs(cost.five.steps - first.five.steps) < 100)
        }
    }
}

extension AdminClient {
    fileprivate func require(
        _ request: AdminService.Request,
        output: (String) throws -> Void
    ) throws {
        let done = try run(request, output: output)
        #expect(done)
    }
}
