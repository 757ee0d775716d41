import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourGateway
@testable import TambourMessenger
@testable import TambourServer

@Suite("How many sessions a user has")
struct SessionQuotaTests {
    /// Waits until the server has noticed that all other connections are closed.
    private func waitUntilAlone(_ client: WireClient, on server: TestServer) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while server.server.gateway.shared.accounts.count > 1 {
            try #require(ContinuousClock.now < deadline)
            try client.call(PingRequest())
        }
    }

    @Test("one more than there may be ends one that is not connected, the one seen longest ago")
    func quota() throws {
        let clock = ManualClock()
        try withServer(limits: ["maxSessions": 3], environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            var others: [WireClient] = []
            for number in 0..<4 {
                clock.advance(ms: 60_000)
                others.append(try server.signIn(phoneOf: alice, device: "device \(number)"))
                if number < 3 { others[number].close() }
                if number < 3 { try waitUntilAlone(alice, on: server) }
            }
            // The first session is the oldest. The server keeps it, because it is connected.
            #expect(try alice.call(SessionsInfoRequest()).sessions.count == 3)
            let again = try server.connect()
            for dead in others.prefix(2) {
                #expect(try again.code(of: LoginRequest(token: dead.token)) == .loginToken)
            }
            for live in [alice, others[2], others[3]] { _ = try server.reconnect(live) }
        }
    }

    @Test("of a user who has more, all that are too many end")
    func above() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let first = try TestServer(dataDirectory: directory)
        let alice = try first.signUp("Alice")
        for number in 0..<5 { _ = try first.signIn(phoneOf: alice, device: "device \(number)") }
        first.stop()
        let server = try TestServer(overrides: ["maxSessions": 3], dataDirectory: directory)
        defer { server.stop() }
        let (again, _) = try server.reconnect(alice)
        #expect(try again.call(SessionsInfoRequest()).sessions.count == 6)
        _ = try server.signIn(phoneOf: again, device: "one more")
        #expect(try again.call(SessionsInfoRequest()).sessions.count == 3)
    }
}

@Suite("When somebody was last there")
struct StoredPresenceTests {
    @Test("is stored once in a while, however often an app comes and goes")
    func comesAndGoes() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            let (start, step) = (clock.now, Int64(Limits.standard.seenStepMs))
            func stored() throws -> Int64? {
                try server.run { _ in }
                return try server.server.messenger.openStore().read { snapshot in
                    try snapshot.sessions(of: alice.userID).first?.lastSeen
                }
            }
            for number in 0..<10 {
                clock.advance(ms: step / 10)
                try alice.call(PingRequest(interactive: false))
                try alice.call(PingRequest(interactive: true))
                #expect(try stored() == (number < 9 ? start : start + step))
            }
        }
    }
}
