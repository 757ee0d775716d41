import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

extension TestServer {
    /// Creates an invitation with an admin command.
    ///
    /// - Returns: The id and the code of the invitation.
    fileprivate func invitation(uses: Int = 1, days: Int = 1) throws -> (id: String, code: String) {
        let line = try admin(.createInvitation(uses: uses, days: days))[0]
        let words = line.split(separator: " ").map(String.init)
        return (words[0], words[1])
    }

    /// Requests a code, enters it, and returns the registration token.
    fileprivate func registration(
        of phone: Int64,
        on client: WireClient,
        with invitation: String? = nil
    ) throws -> String {
        let asked = try client.ask(phone, with: invitation)
        let code = try receivedCode(of: phone)
        let reply = try client.call(AuthCodeRequest(token: asked.token, verifyCode: code))
        return try #require(reply.tokenAttrs.register?.token)
    }

    /// Waits until the server has delivered all earlier codes. To do so, it requests one more code.
    /// The same queue delivers this code last.
    fileprivate func waitForCodes() throws {
        let phone = freshPhone()
        try run { _ = try $0.createAccount(phone: phone, firstName: "Later", lastName: nil) }
        _ = try connect().ask(phone)
        _ = try receivedCode(of: phone)
    }
}

extension WireClient {
    fileprivate func ask(_ phone: Int64, with invitation: String? = nil) throws -> AuthRequestReply
    {
        try call(
            AuthRequestRequest(
                phone: PhoneNumber.format(phone),
                type: "START_AUTH",
                invitation: invitation
            )
        )
    }

    /// Creates the account. Returns nil if the server does not register the phone.
    fileprivate func confirm(_ token: String) throws -> AuthConfirmReply? {
        let packet = try reply(to: send(AuthConfirmRequest(firstName: "A", token: token)))
        guard packet.header.command == PacketCommand.ok.rawValue else {
            let error = try ErrorReply.decode(packet.payload, limits: .standard).error
            #expect(error == "registration.closed")
            return nil
        }
        return try AuthConfirmReply.decode(packet.payload, limits: .standard)
    }
}

@Suite("Registration open, for invited people, or closed")
struct RegistrationTests {
    /// Runs `body` with a server and the phone of an account on it.
    private func withAccount(
        _ policy: RegistrationPolicy,
        userInvitations: Int = 0,
        limits: [String: Int] = [:],
        environment: Environment = .live,
        _ body: (TestServer, Int64) throws -> Void
    ) throws {
        try withServer(
            limits: limits,
            environment: environment,
            registration: policy,
            userInvitations: userInvitations
        ) { server in
            let phone = server.freshPhone()
            try server.run { tx in
                _ = try tx.createAccount(phone: phone, firstName: "Known", lastName: nil)
            }
            try body(server, phone)
        }
    }

    @Test("a code of an invitation lets in as many people as it is for")
    func codes() throws {
        try withAccount(.invite) { server, _ in
            let (id, code) = try server.invitation(uses: 2)
            for text in [code, code.lowercased().filter { $0 != "-" }] {
                let client = try server.connect()
                let token = try server.registration(
                    of: server.freshPhone(),
                    on: client,
                    with: text
                )
                client.token = try #require(try client.confirm(token)).token
                _ = try server.login(client)
            }
            let late = server.freshPhone()
            _ = try server.connect().ask(late, with: code)
            try server.waitForCodes()
            #expect(!server.hasCode(of: late))
            let line = try #require(
                try server.admin(.invitations(AdminFilter())).first { $0.hasPrefix("\(id) ") }
            )
            #expect(line.contains(" used 2/2 "))
        }
    }

    @Test("an invited phone registers as on an open server, with any client")
    func phones() throws {
        try withAccount(.invite) { server, _ in
            let phone = server.freshPhone()
            _ = try server.admin(.invite(phone: phone, days: 1))
            let client = try server.connect()
            let token = try server.registration(of: phone, on: client)
            #expect(try client.confirm(token) != nil)
            // The phone now has an account, so it needs no invitation.
            let known = try server.enterCode(phone: phone, on: client)
            #expect(known.tokenAttrs.login != nil)
            let lines = try server.admin(.invitations(AdminFilter()))
            #expect(lines.count == 1 && lines[0].contains(" used 1/1 "))
            #expect(!lines[0].contains(PhoneNumber.format(phone)))
            let shown = try server.admin(.user(PhoneNumber.format(phone)))
            #expect(shown.contains { $0.contains(" with invitation ") })
        }
    }

    @Test(
        "a phone that may not register gets the answer of any other, and no code",
        arguments: [RegistrationPolicy.invite, .closed]
    )
    func strangers(policy: RegistrationPolicy) throws {
        try withAccount(policy, limits: ["loginCodeTries": 2]) { server, known in
            let stranger = server.freshPhone()
            let invitations = [nil, "", "K7QF-9M2X-4TBW-8HRN", "nonsense"]
            var shapes: Set<String> = []
            var tokens: [String] = []
            for (phone, client) in try [known, stranger].map({ ($0, try server.connect()) }) {
                for invitation in invitations {
                    var reply = try client.ask(phone, with: invitation)
                    tokens.append(reply.token)
                    reply.token = String(repeating: "t", count: reply.token.count)
                    shapes.insert("\(reply)")
                }
            }
            // The four replies to one phone differ only in the number of requests left. Both phones
            // get the same four replies.
            #expect(shapes.count == invitations.count, "\(shapes)")
            try server.waitForCodes()
            #expect(server.hasCode(of: known) && !server.hasCode(of: stranger))
            // The server refuses every code, and counts the tries as for any other phone.
            let client = try server.connect()
            for digit in 0..<2 {
                let guess = AuthCodeRequest(
                    token: try #require(tokens.last),
                    verifyCode: String(repeating: "\(digit)", count: 6)
                )
                #expect(try client.code(of: guess) == .errorCodeWrong)
            }
            let empty = AuthCodeRequest(token: tokens[tokens.count - 2], verifyCode: "")
            #expect(try client.code(of: empty) == .errorCodeWrong)
            let third = AuthCodeRequest(token: try #require(tokens.last), verifyCode: "222222")
            #expect(try client.code(of: third) == .errorCodeExpired)
            #expect(server.server.metrics.codesWithheld.count == invitations.count)
        }
    }

    @Test("the limits for codes count for phones that may not register")
    func limits() throws {
        try withAccount(.closed, limits: ["maxCodesPerPhonePerHour": 2]) { server, known in
            for phone in [known, server.freshPhone()] {
                let client = try server.connect()
                #expect(try client.ask(phone).requestCountLeft == 1)
                #expect(try client.ask(phone).requestCountLeft == 0)
                let request = AuthRequestRequest(phone: PhoneNumber.format(phone))
                #expect(try client.code(of: request) == .authBlocked)
            }
        }
    }

    @Test(
        "every phone takes the same statements and writes",
        arguments: [nil, "ZZZZ-ZZZZ-ZZZZ-ZZZZ"]
    )
    func sameWork(invitation: String?) throws {
        let meter = CostMeter()
        var environment = ManualClock().environment
        environment.disk = meter.disk
        environment.doesSpareWork = false
        try withAccount(.invite, environment: environment) { server, known in
            let invited = server.freshPhone()
            _ = try server.admin(.invite(phone: invited, days: 1))
            let client = try server.connect()
            // The first request also prepares the queue and the clock, so do not count it.
            _ = try client.ask(server.freshPhone())
            let costs = try [known, invited, server.freshPhone()].map { phone in
                _ = meter.take()
                _ = try client.ask(phone, with: invitation)
                let cost = meter.take()
                return [cost.statements, cost.rowsWritten]
            }
            #expect(Set(costs).count == 1, "\(costs)")
            #expect(costs[0][0] > 0)
        }
    }

    @Test("a closed server lets in accounts, and nobody with an invitation")
    func closed() throws {
        try withAccount(.closed) { server, known in
            let (_, code) = try server.invitation()
            let invited = server.freshPhone()
            _ = try server.admin(.invite(phone: invited, days: 1))
            _ = try server.connect().ask(invited, with: code)
            let login = try server.enterCode(phone: known, on: server.connect())
            #expect(login.tokenAttrs.login != nil)
            try server.waitForCodes()
            #expect(!server.hasCode(of: invited))
            // The server keeps the invitations.
            let open = try server.admin(.invitations(AdminFilter([.state: "open"])))
            #expect(open.count == 2)
        }
    }

    @Test("of two registrations with an invitation for one, one is served")
    func race() throws {
        try withAccount(.invite) { server, _ in
            let (_, code) = try server.invitation()
            let clients = try (0..<2).map { _ in try server.connect() }
            let tokens = try clients.map {
                try server.registration(of: server.freshPhone(), on: $0, with: code)
            }
            // Send both requests before the server answers one of them.
            let numbers = try zip(clients, tokens).map {
                try $0.send(AuthConfirmRequest(firstName: "A", token: $1))
            }
            let packets = try zip(clients, numbers).map { try $0.reply(to: $1) }
            let errors = try packets.filter {
                $0.header.command != PacketCommand.ok.rawValue
            }.map { try ErrorReply.decode($0.payload, limits: .standard).error }
            #expect(errors == ["registration.closed"])
            #expect(try server.admin(.users(AdminFilter())).count == 2)
            #expect(try server.admin(.check) == ["ok"])
        }
    }

    @Test("one that was revoked, ended or replaced since the code was sent does not count")
    func lateChanges() throws {
        let clock = ManualClock()
        try withAccount(
            .invite,
            limits: ["loginCodeLifetimeMs": 172_800_000],
            environment: clock.environment
        ) { server, _ in
            let client = try server.connect()
            let revoked = try server.invitation()
            let first = try server.registration(
                of: server.freshPhone(),
                on: client,
                with: revoked.code
            )
            _ = try server.admin(.revokeInvitation(revoked.id))
            #expect(try client.confirm(first) == nil)
            // The invitation of this registration is revoked. A new invitation does not make the
            // registration valid.
            _ = try server.invitation()
            #expect(try client.confirm(first) == nil)

            let phone = server.freshPhone()
            let ended = try server.invitation()
            let second = try server.registration(of: phone, on: client, with: ended.code)
            clock.advance(ms: 86_401_000)
            #expect(try client.confirm(second) == nil)
            // The operator now invites the phone itself.
            _ = try server.admin(.invite(phone: phone, days: 1))
            #expect(try client.confirm(second) != nil)
        }
    }

    @Test("a registration without a name leaves the invitation unused")
    func refusedName() throws {
        try withAccount(.invite) { server, _ in
            let (_, code) = try server.invitation()
            let client = try server.connect()
            let token = try server.registration(of: server.freshPhone(), on: client, with: code)
            let empty = AuthConfirmRequest(firstName: " ", token: token)
            #expect(try client.code(of: empty) == .protoPayload)
            #expect(try client.confirm(token) != nil)
        }
    }

    @Test("a registration that was begun while the server was open is finished only with one")
    func restartedStricter() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let open = try TestServer(dataDirectory: directory)
        let phone = open.freshPhone()
        let token = try open.registration(of: phone, on: open.connect())
        open.stop()
        for policy in [RegistrationPolicy.closed, .invite, .open] {
            let server = try TestServer(registration: policy, dataDirectory: directory)
            let made = try server.connect().confirm(token)
            #expect((made != nil) == (policy == .open), "\(policy)")
            server.stop()
        }
    }

    @Test("an account moves to a phone that may not register")
    func movedPhone() throws {
        try withAccount(.closed) { server, known in
            let client = try server.connect()
            let login = try server.enterCode(phone: known, on: client)
            client.token = try #require(login.tokenAttrs.login?.token)
            _ = try server.login(client)
            let next = server.freshPhone()
            let asked = try client.call(
                PhoneBindRequestRequest(phone: PhoneNumber.format(next))
            )
            let code = try server.receivedCode(of: next)
            try client.call(PhoneBindConfirmRequest(token: asked.token, verifyCode: code))
            #expect(
                try server.enterCode(phone: next, on: server.connect()).tokenAttrs.login != nil
            )
        }
    }

    /// Logs in to the account of a phone.
    private func logIn(_ phone: Int64, to server: TestServer) throws -> WireClient {
        let client = try server.connect()
        let login = try server.enterCode(phone: phone, on: client)
        client.token = try #require(login.tokenAttrs.login?.token)
        _ = try server.login(client)
        return client
    }

    @Test("a user invites as many people as the operator allows, each once")
    func userInvitations() throws {
        let clock = ManualClock()
        try withAccount(
            .invite,
            userInvitations: 2,
            limits: ["userInvitationDays": 1, "invitationsKeptDays": 3],
            environment: clock.environment
        ) { server, known in
            let alice = try logIn(known, to: server)
            let made = try (0..<2).map { _ in try alice.call(InvitationCreateRequest()) }
            #expect(made.map(\.left) == [1, 0])
            // The commit clock may be a little ahead of the wall clock.
            let day = clock.now + 86_400_000
            #expect((day...day + 500).contains(made[0].expires))
            #expect(try alice.code(of: InvitationCreateRequest()) == .tooManyRequests)
            let bob = try server.connect()
            let token = try server.registration(
                of: server.freshPhone(),
                on: bob,
                with: made[0].invitation
            )
            #expect(try bob.confirm(token) != nil)
            _ = try server.connect().ask(server.freshPhone(), with: made[0].invitation)
            // A used invitation and an expired invitation both count against the limit until the
            // window has passed.
            clock.advance(ms: 2 * 86_400_000)
            #expect(try alice.code(of: InvitationCreateRequest()) == .tooManyRequests)
            let lines = try server.admin(.invitations(AdminFilter()))
            #expect(lines.count == 2 && lines.allSatisfy { $0.contains(" by \(alice.userID)") })
            #expect(lines[0].contains(" used 1/1 ") && lines[1].contains(" ended 0/1 "))
            clock.advance(ms: 86_401_000)
            #expect(try alice.call(InvitationCreateRequest()).left == 1)
        }
    }

    @Test(
        "a user invites nobody where that has no effect, or the operator does not want it",
        arguments: [(RegistrationPolicy.open, 5), (.closed, 5), (.invite, 0)]
    )
    func noUserInvitations(policy: RegistrationPolicy, number: Int) throws {
        try withAccount(policy, userInvitations: number) { server, known in
            let alice = try logIn(known, to: server)
            #expect(try alice.code(of: InvitationCreateRequest()) == .notAllowed)
            #expect(try server.admin(.invitations(AdminFilter())).isEmpty)
        }
    }

    @Test("requests cost what is declared, also where registration is restricted")
    func costs() throws {
        let meter = CostMeter()
        var environment = ManualClock().environment
        environment.disk = meter.disk
        environment.doesSpareWork = false
        try withAccount(.invite, userInvitations: 100, environment: environment) { server, known in
            func measure<Request: WireRequest>(
                _ request: Request,
                _ client: WireClient
            ) throws -> Request.Reply {
                _ = meter.take()
                let reply = try client.call(request)
                let cost = meter.take()
                let declared = try #require(Request.opcode.info?.cost)
                #expect(cost.rowsRead <= declared.rowsRead, "\(Request.opcode)")
                #expect(cost.rowsWritten <= declared.rowsWritten, "\(Request.opcode)")
                return reply
            }
            let alice = try logIn(known, to: server)
            for _ in 0..<98 { _ = try alice.call(InvitationCreateRequest()) }
            // The server has not yet deleted these invitations, which ended long ago.
            try server.run { tx in
                for number in 0..<100 {
                    _ = try tx.createInvitation(
                        codeHash: Tokens.hash("\(number)"),
                        maxUses: 1,
                        expires: 1,
                        keptSince: 0
                    )
                }
            }
            let made = try measure(InvitationCreateRequest(), alice)
            let phone = server.freshPhone()
            _ = try server.admin(.invite(phone: phone, days: 1))
            let client = try server.connect()
            let asked = try measure(
                AuthRequestRequest(
                    phone: PhoneNumber.format(phone),
                    invitation: made.invitation
                ),
                client
            )
            let checked = try measure(
                AuthCodeRequest(
                    token: asked.token,
                    verifyCode: server.receivedCode(of: phone)
                ),
                client
            )
            let token = try #require(checked.tokenAttrs.register?.token)
            _ = try measure(AuthConfirmRequest(firstName: "New", token: token), client)
        }
    }

    @Test("only clients that can read it are told who may register")
    func greeting() throws {
        for policy in RegistrationPolicy.allCases {
            try withServer(registration: policy) { server in
                for capabilities in [nil, ["lz4-large"], ["registration"]] {
                    let client = try WireClient(address: server.address)
                    let reply = try client.call(SessionInitRequest(capabilities: capabilities))
                    let isTold = capabilities == ["registration"]
                    #expect(reply.registration == (isTold ? policy.mode : nil))
                }
            }
        }
    }
}
