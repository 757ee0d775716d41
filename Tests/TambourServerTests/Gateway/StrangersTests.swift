import TambourNet
import TambourProtocol
import TambourQueues
import TambourTesting
import Testing

@testable import TambourGateway
@testable import TambourMessenger
@testable import TambourServer

@Suite("Connections without a login")
struct StrangersTests {
    private func withSteppedServer(
        limits: [String: Int],
        users: Int = 0,
        _ body: (SteppedServer) throws -> Void
    ) throws {
        let server = try SteppedServer(limits: limits, users: users)
        defer { server.remove() }
        try body(server)
    }

    /// Connects a client slightly later than all earlier clients.
    private func arrive(
        at server: SteppedServer,
        from address: String = "10.0.0.1",
        saysHello: Bool = true
    ) throws -> SteppedClient {
        server.scheduler.advance(by: .milliseconds(10))
        return try server.connect(from: address, saysHello: saysHello)
    }

    private func closed(_ clients: [SteppedClient], on server: SteppedServer) -> [Int] {
        server.settle()
        for client in clients { client.look() }
        return clients.indices.filter { clients[$0].isClosed }
    }

    /// Returns an admission check for 1,000 descriptors.
    private func admission(of server: SteppedServer) -> Admission {
        Admission(
            descriptors: 1000,
            limits: .standard,
            strangers: server.server.gateway.shared.strangers,
            metrics: server.server.metrics,
            logger: server.server.messenger.logger,
            nowMs: { [queue = server.server.gateway.lanes[0].queue] in queue.nowMs }
        )
    }

    @Test("of one address are bounded: the oldest that has said nothing goes first")
    func bound() throws {
        let limits = ["maxStrangersPerAddress": 4, "strangerGraceMs": 1]
        try withSteppedServer(limits: limits) { server in
            var clients = [try arrive(at: server)]
            for _ in 0..<3 { clients.append(try arrive(at: server, saysHello: false)) }
            #expect(closed(clients, on: server) == [])
            clients.append(try arrive(at: server))
            #expect(closed(clients, on: server) == [1])
            for _ in 0..<2 { clients.append(try arrive(at: server)) }
            #expect(closed(clients, on: server) == [1, 2, 3])
            clients.append(try arrive(at: server))
            #expect(closed(clients, on: server) == [0, 1, 2, 3])
            #expect(server.server.gateway.shared.strangers.count == 4)
            #expect(server.server.metrics.strangersClosedForAddress.count == 4)
            // Other addresses are not affected.
            let others = try (0..<4).map { try arrive(at: server, from: "10.0.0.\(2 + $0)") }
            #expect(closed(others, on: server) == [])
        }
    }

    @Test("of one /64 are bounded together, however their addresses are written")
    func networks() throws {
        let limits = ["maxStrangersPerAddress": 4, "strangerGraceMs": 1]
        try withSteppedServer(limits: limits) { server in
            let clients = try (0..<8).map {
                try arrive(at: server, from: "2001:db8::\($0 + 1):b:c:d")
            }
            #expect(closed(clients, on: server) == [0, 1, 2, 3])
            let others = try (0..<4).map { try arrive(at: server, from: "2001:db8:0:1::\($0)") }
            #expect(closed(others, on: server) == [])
            #expect(closed(clients, on: server) == [0, 1, 2, 3])
        }
    }

    @Test("who has just come is not idle: everybody may come at once after an outage")
    func grace() throws {
        let limits = ["maxStrangersPerAddress": 4, "strangerGraceMs": 2000]
        try withSteppedServer(limits: limits, users: 20) { server in
            let phones = try (0..<20).map { _ in try server.connect(saysHello: false) }
            #expect(closed(phones, on: server) == [])
            let members = try (0..<20).map { _ in try server.logIn() }
            #expect(closed(phones + members, on: server) == [])
            server.scheduler.advance(by: .seconds(3))
            // Each new connection closes two strangers until the number of strangers is within the
            // limit.
            let late = try (0..<20).map { _ in try server.connect(saysHello: false) }
            #expect(closed(phones, on: server) == Array(0..<20))
            #expect(closed(members, on: server) == [])
            // All late connections are too young to be closed.
            #expect(closed(late, on: server) == [])
        }
    }

    @Test("count to their account from LOGIN on, and to their address again when it fails")
    func login() throws {
        let limits = ["maxStrangersPerAddress": 2, "strangerGraceMs": 1]
        try withSteppedServer(limits: limits, users: 10) { server in
            let members = try (0..<10).map { _ in try server.logIn() }
            #expect(server.server.gateway.shared.strangers.count == 0)
            #expect(closed(members, on: server) == [])
            let stranger = try arrive(at: server)
            #expect(server.server.gateway.shared.strangers.count == 1)
            let number = try stranger.send(LoginRequest(token: "none"))
            server.settle()
            server.scheduler.advance(by: .seconds(1))
            server.settle()
            #expect(stranger.hasReply(to: number))
            #expect(server.server.gateway.shared.strangers.count == 1)
            let more = try (0..<2).map { _ in try arrive(at: server) }
            #expect(closed([stranger] + more, on: server) == [0])
        }
    }

    @Test("are forgotten when they go")
    func forgotten() throws {
        try withSteppedServer(limits: [:]) { server in
            for _ in 0..<300 {
                _ = try server.connect()
                server.settle()
            }
            server.settle()
            #expect(server.server.gateway.shared.strangers.count == 0)
            #expect(server.server.connectionCount == 0)
        }
    }

    @Test("make room when descriptors run out, those that have said least first")
    func room() throws {
        try withSteppedServer(limits: [:], users: 1) { server in
            let silent = try (0..<2).map { _ in try server.connect(saysHello: false) }
            let talking = try server.connect()
            let member = try server.logIn()
            let admission = admission(of: server)
            let clients = silent + [talking, member]
            // The server keeps 64 descriptors free.
            #expect(admission.admits(935))
            #expect(closed(clients, on: server) == [])
            #expect(admission.admits(936))
            #expect(closed(clients, on: server) == [0])
            #expect(admission.admits(937))
            #expect(closed(clients, on: server) == [0, 1])
            // Half of these 64 descriptors are reserved for administrators.
            #expect(!admission.admits(968))
            #expect(closed(clients, on: server) == [0, 1, 2])
            // No stranger is left to make room.
            #expect(!admission.admits(936))
            #expect(closed(clients, on: server) == [0, 1, 2])
            #expect(server.server.metrics.connectionsRefused.count == 2)
            #expect(server.server.metrics.strangersClosedForRoom.count == 3)
            #expect(server.lines.all.count { $0.hasPrefix("file descriptors are nearly") } == 1)
        }
    }

    @Test("make room when nothing can be accepted, which a metric and one line say")
    func exhausted() throws {
        try withSteppedServer(limits: [:], users: 1) { server in
            let silent = try (0..<40).map { _ in try server.connect(saysHello: false) }
            let clients = silent + [try server.logIn()]
            let admission = admission(of: server)
            admission.exhausted()
            #expect(closed(clients, on: server) == Array(0..<32))
            admission.exhausted()
            #expect(closed(clients, on: server) == Array(0..<40))
            #expect(server.server.metrics.acceptPauses.count == 2)
            #expect(server.lines.all.count { $0.hasPrefix("out of file descriptors") } == 1)
        }
    }

    @Test("who has stayed long makes room before who has just come, whatever they have said")
    func roomForNewcomers() throws {
        try withSteppedServer(limits: ["strangerGraceMs": 2000]) { server in
            let squatters = try (0..<2).map { _ in try server.connect() }
            server.scheduler.advance(by: .seconds(3))
            let newcomer = try server.connect(saysHello: false)
            let clients = squatters + [newcomer]
            let strangers = server.server.gateway.shared.strangers
            for expected in [[0], [0, 1], [0, 1, 2]] {
                let oldest = strangers.takeOldest(nowMs: server.server.gateway.lanes[0].queue.nowMs)
                let leaving = try #require(oldest)
                leaving.gateway.post(.makeRoom(leaving))
                #expect(closed(clients, on: server) == expected)
            }
        }
    }

    @Test("have one LOGIN at a time: the next ones stay unread until it is answered")
    func oneLogin() throws {
        try withSteppedServer(limits: [:]) { server in
            let stranger = try server.connect()
            let logins = 8
            let bad = SteppedClient.packet(LoginRequest(token: "none"), 1000)
            let ping = SteppedClient.packet(PingRequest(), 2000)
            try stranger.send(raw: bad + ping + (1..<logins).flatMap { _ in bad })
            for taken in 1...logins {
                server.settle()
                #expect(server.server.metrics.requestCounts[Opcode.login.rawValue] == taken)
                let lookups = server.server.metrics.queueTimes.histogram(.login, isStranger: true)
                #expect(lookups.count == taken)
                // Requests sent before the second LOGIN are served in the meantime.
                #expect(stranger.hasReply(to: 2000))
                #expect(stranger.hasReply(to: 1000) == (taken > 1))
                server.scheduler.advance(by: .seconds(1))
            }
            server.settle()
            #expect(server.server.metrics.refusalCounts["login.token"] == logins)
        }
    }

    @Test("with a LOGIN that waits for another request are read no further either")
    func loginBehindCommand() throws {
        try withSteppedServer(limits: [:], users: 1) { server in
            let stranger = try server.connect()
            let ask = SteppedClient.packet(AuthRequestRequest(phone: "+79990000001"), 1)
            let bad = SteppedClient.packet(LoginRequest(token: "none"), 1000)
            try stranger.send(raw: ask + bad + bad + bad)
            server.poke()
            server.scheduler.step()
            #expect(server.server.metrics.requestCounts[Opcode.login.rawValue] == 1)
            for _ in 0..<3 {
                server.settle()
                server.scheduler.advance(by: .seconds(1))
            }
            server.settle()
            #expect(server.server.metrics.refusalCounts["login.token"] == 3)
        }
    }

    @Test(
        "pay for requests pipelined after a LOGIN once it is refused",
        arguments: ["stranger", "address"]
    )
    func pipelinedAfterRefusedLogin(bucket: String) throws {
        // SESSION_INIT uses one unit of the connection's bucket.
        let burst = bucket == "stranger" ? 5 : 4
        let limits = ["\(bucket)Burst": burst, "\(bucket)RequestsPerMinute": 1]
        try withSteppedServer(limits: limits) { server in
            let stranger = try server.connect()
            let login = SteppedClient.packet(LoginRequest(token: "none"), 1000)
            let query = SteppedClient.packet(GetQrStatusRequest(trackID: "none"), 1)
            let command = SteppedClient.packet(GetQrRequest(), 2)
            for round in 1...2 {
                try stranger.send(raw: login + (0..<10).flatMap { _ in query + command })
                server.settle()
                server.scheduler.advance(by: .seconds(1))
                server.settle()
                let refusals = server.server.metrics.refusalCounts
                #expect(refusals["login.token"] == round)
                #expect(refusals["too.many.requests"] == round * 20 - 4)
            }
        }
    }

    @Test("pay once for a request that waits behind another of theirs")
    func paidOnce() throws {
        let limits = ["strangerBurst": 4, "strangerRequestsPerMinute": 1]
        try withSteppedServer(limits: limits) { server in
            let stranger = try server.connect()
            let command = SteppedClient.packet(GetQrRequest(), 1)
            let query = SteppedClient.packet(GetQrStatusRequest(trackID: "none"), 2)
            let login = SteppedClient.packet(LoginRequest(token: "none"), 3)
            try stranger.send(raw: command + query + login + query)
            server.settle()
            server.scheduler.advance(by: .seconds(1))
            server.settle()
            let refusals = server.server.metrics.refusalCounts
            #expect(refusals["track.not.found"] == 2)
            #expect(refusals["login.token"] == 1)
            #expect(refusals["too.many.requests"] == nil)
        }
    }

    @Test("pay nothing for what follows a LOGIN that is accepted: its user pays")
    func pipelinedAfterLogin() throws {
        let limits = ["strangerBurst": 1, "strangerRequestsPerMinute": 1]
        try withSteppedServer(limits: limits, users: 1) { server in
            let token = try server.logIn().token
            let client = try server.connect()
            let login = SteppedClient.packet(LoginRequest(token: token), 1000)
            let query = SteppedClient.packet(FoldersGetRequest(), 1)
            try client.send(raw: login + (0..<10).flatMap { _ in query })
            server.settle()
            #expect(client.hasReply(to: 1))
            #expect(server.server.metrics.refusalCounts == [:])
        }
    }

    @Test("whose LOGIN was refused are no longer spared, while the refusal is held back either")
    func refusedLogin() throws {
        let limits = ["maxStrangersPerAddress": 1, "strangerGraceMs": 1]
        try withSteppedServer(limits: limits) { server in
            let first = try arrive(at: server)
            let number = try first.send(LoginRequest(token: "none"))
            server.settle()
            #expect(!first.hasReply(to: number))
            let second = try arrive(at: server)
            #expect(closed([first, second], on: server) == [0])
        }
    }

    @Test("bad LOGINs of hundreds of connections look at no more places than there are LOGINs")
    func badLogins() throws {
        try withSteppedServer(limits: [:]) { server in
            let crowd = try (0..<200).map { _ in try server.connect() }
            let logins = 8
            let bad = SteppedClient.packet(LoginRequest(token: "none"), 1000)
            for client in crowd { try client.send(raw: (0..<logins).flatMap { _ in bad }) }
            let before = server.server.gateway.shared.strangers.looks
            for _ in 0...logins {
                server.settle()
                server.scheduler.advance(by: .seconds(1))
            }
            server.settle()
            let refusals = server.server.metrics.refusalCounts
            let answered = (refusals["login.token"] ?? 0) + (refusals["login.flood"] ?? 0)
            #expect(answered == crowd.count * logins)
            #expect(server.server.gateway.shared.strangers.looks - before <= answered)
        }
    }

    @Test(
        "an account and a token have a limited number of connections; the oldest is closed",
        arguments: [true, false]
    )
    func perAccount(isToken: Bool) throws {
        let limits =
            isToken
            ? ["maxConnectionsPerUser": 4, "maxConnectionsPerToken": 2]
            : ["maxConnectionsPerUser": 2, "maxConnectionsPerToken": 4]
        try withSteppedServer(limits: limits, users: 2) { server in
            let bob = try server.logIn()
            let first = try server.logIn()
            let second = try server.logIn(token: first.token)
            #expect(closed([first, second], on: server) == [])
            let third = try server.logIn(token: first.token)
            server.scheduler.advance(by: .seconds(2))
            #expect(closed([first, second, third, bob], on: server) == [0])
            #expect(server.server.gateway.shared.accounts.count == 3)
        }
    }
}
