import TambourFraming
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

/// Checks the rate limit of every request: each test floods the server with one kind of request.
@Suite("A flood of one kind of request")
struct FloodTests {
    /// The burst of each bucket. With a smaller burst, the server would refuse a sign-up, which
    /// costs its address three units of `auth`.
    private static let burst = 3

    /// For a request that ends the caller's login, another request that drains the same bucket.
    private static let drained: [Opcode: any WireRequest] = [.logout: SessionsCloseRequest()]

    /// Replaces the specification's example, which adds members and is paid from another bucket.
    private static let removal = ChatMembersUpdateRequest(
        chatID: ChatID(-1),
        userIDs: [UserID(1)],
        operation: .remove
    )

    @Test(
        "of a user is refused with the time to wait, and served when that has passed",
        arguments: ExampleRequests.requests.map(\.opcode)
    )
    func ofUser(opcode: Opcode) throws {
        let cost = try #require(opcode.info?.cost)
        let clock = ManualClock()
        let limits = cost.bucket.limitNames
        try withServer(
            limits: [limits.burst: Self.burst, limits.perMinute: 60],
            environment: clock.environment
        ) { server in
            let alice = try server.signUp("Alice")
            clock.advance(ms: 60_000)
            let bob = try server.signUp("Bob")
            clock.advance(ms: 60_000)
            let flood = Self.drained[opcode]
            let number = flood.map { type(of: $0).opcode } ?? opcode
            let payload = try flood?.encoded() ?? self.payload(of: opcode, for: alice)
            var wait: Int64?
            for round in 0...Self.burst where wait == nil {
                wait = try waitOfRefusal(alice, number, payload)
                #expect(round > 0 || wait == nil, "the first one is served")
            }
            let refused = try #require(wait, "as many as anybody likes")
            #expect(refused > 0)
            // All devices of an account share one bucket; other accounts have separate buckets.
            if number != .login {
                let laptop = try server.reconnect(alice).client
                #expect(try waitOfRefusal(laptop, number, payload) != nil)
                #expect(try waitOfRefusal(bob, opcode, self.payload(of: opcode, for: bob)) == nil)
            }
            clock.advance(ms: refused)
            #expect(try waitOfRefusal(alice, opcode, self.payload(of: opcode, for: alice)) == nil)
        }
    }

    private static let beforeLogin = ExampleRequests.requests.filter {
        $0.opcode != .login && !$0.states.isDisjoint(with: [.connected, .initialized])
    }.map(\.opcode)

    @Test("of a stranger is refused on its connection", arguments: beforeLogin)
    func ofConnection(opcode: Opcode) throws {
        try flood(by: opcode, limits: ["strangerBurst": 3, "strangerRequestsPerMinute": 60]) {
            server,
            clock,
            stranger,
            wait,
            payload in
            // Another connection has a separate bucket.
            let other = try server.connect()
            #expect(try waitOfRefusal(other, opcode, payload) == nil)
            clock.advance(ms: wait)
            #expect(try waitOfRefusal(stranger, opcode, payload) == nil)
        }
    }

    /// Leaves out SESSION_INIT, because only the connection's bucket pays for it.
    @Test(
        "of strangers is refused at their address",
        arguments: beforeLogin.filter { $0 != .sessionInit }
    )
    func ofAddress(opcode: Opcode) throws {
        try flood(by: opcode, limits: ["addressBurst": 4, "addressRequestsPerMinute": 60]) {
            server,
            clock,
            stranger,
            wait,
            payload in
            let other = try WireClient(address: server.address)
            #expect(try waitOfRefusal(other, .ping, PingRequest().encoded()) != nil)
            clock.advance(ms: wait)
            #expect(try waitOfRefusal(stranger, opcode, payload) == nil)
        }
    }

    @Test("of strangers keeps nobody at their address from logging in")
    func loginAtFloodedAddress() throws {
        let clock = ManualClock()
        try withServer(
            limits: ["addressBurst": 5, "addressRequestsPerMinute": 1],
            environment: clock.environment
        ) { server in
            let alice = try server.signUp("Alice")
            let stranger = try WireClient(address: server.address)
            var wait: Int64?
            for _ in 0..<6 where wait == nil {
                wait = try waitOfRefusal(stranger, .ping, PingRequest().encoded())
            }
            #expect(wait != nil)
            // SESSION_INIT and LOGIN both succeed.
            let late = try server.connect()
            late.token = alice.token
            _ = try server.login(late)
            try late.call(PingRequest())
        }
    }

    /// Makes a stranger send requests until one is refused.
    private func flood(
        by opcode: Opcode,
        limits: [String: Int],
        then body: (TestServer, ManualClock, WireClient, Int64, [UInt8]) throws -> Void
    ) throws {
        let clock = ManualClock()
        try withServer(limits: limits, environment: clock.environment) { server in
            let stranger = try server.connect()
            let payload = try #require(ExampleRequests.payloads[opcode])
            var wait: Int64?
            for _ in 0...4 where wait == nil {
                wait = try waitOfRefusal(stranger, opcode, payload)
            }
            try body(server, clock, stranger, try #require(wait), payload)
        }
    }

    private func payload(of opcode: Opcode, for client: WireClient) throws -> [UInt8] {
        if opcode == .login { return LoginRequest(token: client.token).encoded() }
        if opcode == .chatMembersUpdate { return Self.removal.encoded() }
        return try #require(ExampleRequests.payloads[opcode], "no example of \(opcode)")
    }

    /// Sends a request. If the server refuses it for its rate, returns how long the client must
    /// wait; otherwise nil.
    private func waitOfRefusal(
        _ client: WireClient,
        _ opcode: Opcode,
        _ payload: [UInt8]
    ) throws -> Int64? {
        let packet = try client.reply(to: client.send(opcode, payload: payload))
        guard packet.header.command == PacketCommand.error.rawValue else { return nil }
        let refusal = try ErrorReply.decode(packet.payload, limits: .standard)
        guard refusal.error == "too.many.requests" || refusal.error == "login.flood" else {
            return nil
        }
        let wait: Int64 = try #require(refusal.retryAfter)
        return wait
    }
}
