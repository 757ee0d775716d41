import TambourMessenger
import TambourProtocol
import TambourTesting
import Testing

extension TestServer {
    fileprivate func signUp(phone: Int64) throws -> WireClient {
        let client = try connect(device: "phone")
        let checked = try enterCode(phone: phone, on: client)
        let confirm = AuthConfirmRequest(
            firstName: "Alice",
            token: try #require(checked.tokenAttrs.register?.token)
        )
        client.token = try client.call(confirm).token
        _ = try login(client)
        return client
    }
}

/// Combines every way to log in with every event that ends sessions while the login is in progress.
@Suite("Logins under way when sessions are taken away")
struct SignInsUnderWayTests {
    /// The login in progress.
    enum Way: CaseIterable {
        case approvedLink, challengeByLink, challengeByCode, code, codeForAnotherPhone, registration
    }

    enum Taking: CaseIterable {
        case logout, closedByAnother, closedByTheApprover, kicked, allKicked, kickedAfterLogout
        case blocked, erased
    }

    private static let password = "correct horse"

    @Test("lead to no session", arguments: Way.allCases, Taking.allCases)
    func dead(way: Way, taking: Taking) throws {
        // A logout of one device does not show that somebody has stolen the phone or the password.
        // The login in progress stays valid, so skip these cases.
        if taking == .logout, [.challengeByCode, .code].contains(way) { return }
        // If there is no other session to close, the login in progress may be the owner's. Skip
        // these cases.
        if taking == .closedByTheApprover, [.challengeByCode, .code].contains(way) { return }
        try withServer { server in
            let thief = try server.connect(device: "thief")
            let phone = server.freshPhone()
            let register =
                way == .registration ? try server.enterCode(phone: phone, on: thief) : nil
            let alice = try server.signUp(phone: phone)
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let enter = try prepare(way, thief, alice, phone, register, server)
            try take(taking, alice, laptop, server)
            do {
                _ = try enter()
                Issue.record("\(way) let somebody in after \(taking)")
            } catch WireClient.Failure.refused {}
        }
    }

    @Test("of a device that goes on stay good when another one logs out", arguments: Way.allCases)
    func others(way: Way) throws {
        guard way != .registration, way != .codeForAnotherPhone else { return }
        try withServer { server in
            let thief = try server.connect(device: "new")
            let phone = server.freshPhone()
            let alice = try server.signUp(phone: phone)
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let enter = try prepare(way, thief, alice, phone, nil, server)
            try laptop.call(LogoutRequest())
            thief.token = try #require(try enter().login?.token)
            _ = try server.login(thief)
            #expect(thief.userID == alice.userID)
        }
    }

    @Test("of an owner whose only session was stolen cannot be kept from succeeding by the thief")
    func owner() throws {
        try withServer { server in
            let stolen = try server.signUp("Alice")
            let phone = try stolen.phone
            let owner = try server.connect(device: "new")
            try stolen.setPassword(Self.password)
            let asked = try owner.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
            let code = try server.receivedCode(of: phone)
            try stolen.call(SessionsCloseRequest())
            let entered = try owner.call(AuthCodeRequest(token: asked.token, verifyCode: code))
            let track = try #require(entered.passwordChallenge?.trackID)
            try stolen.call(SessionsCloseRequest())
            let answer = AuthLoginCheckPasswordRequest(trackID: track, password: Self.password)
            owner.token = try #require(try owner.call(answer).tokenAttrs.login?.token)
            _ = try server.login(owner)
            try owner.call(SessionsCloseRequest())
            #expect(try owner.call(SessionsInfoRequest()).sessions.count == 1)
        }
    }

    @Test("do not come back with the account")
    func unblocked() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let phone = try alice.phone
            let thief = try server.connect(device: "thief")
            let shown = try thief.call(GetQrRequest())
            try alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            // After this logout, the account has no session left.
            try alice.call(LogoutRequest())
            let asked = try thief.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
            let code = try server.receivedCode(of: phone)
            for isBlocked in [true, false] {
                _ = try server.admin(.block(user: "\(alice.userID)", isBlocked: isBlocked))
            }
            let take = LoginByQrRequest(trackID: shown.trackID)
            #expect(try thief.code(of: take) == .trackNotFound)
            let enter = AuthCodeRequest(token: asked.token, verifyCode: code)
            #expect(try thief.code(of: enter) == .errorCodeExpired)
        }
    }

    /// - Returns: The last step of the login.
    private func prepare(
        _ way: Way,
        _ thief: WireClient,
        _ alice: WireClient,
        _ phone: Int64,
        _ register: AuthCodeReply?,
        _ server: TestServer
    ) throws -> () throws -> TokenAttrs {
        func approvedLink() throws -> LoginByQrRequest {
            let shown = try thief.call(GetQrRequest())
            try alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            return LoginByQrRequest(trackID: shown.trackID)
        }
        func answer(to challenge: PasswordChallenge?) throws -> () throws -> TokenAttrs {
            let request = AuthLoginCheckPasswordRequest(
                trackID: try #require(challenge?.trackID),
                password: Self.password
            )
            return { try thief.call(request).tokenAttrs }
        }
        switch way {
        case .approvedLink:
            let take = try approvedLink()
            return { try thief.call(take).tokenAttrs }
        case .challengeByLink:
            try alice.setPassword(Self.password)
            return try answer(to: thief.call(approvedLink()).passwordChallenge)
        case .challengeByCode:
            try alice.setPassword(Self.password)
            return try answer(to: server.enterCode(phone: phone, on: thief).passwordChallenge)
        case .code:
            let asked = try thief.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
            let enter = AuthCodeRequest(
                token: asked.token,
                verifyCode: try server.receivedCode(of: phone)
            )
            return { try thief.call(enter).tokenAttrs }
        case .codeForAnotherPhone:
            let other = server.freshPhone()
            let asked = try alice.call(PhoneBindRequestRequest(phone: PhoneNumber.format(other)))
            let enter = AuthCodeRequest(
                token: asked.token,
                verifyCode: try server.receivedCode(of: other)
            )
            return { try thief.call(enter).tokenAttrs }
        case .registration:
            let confirm = AuthConfirmRequest(
                firstName: "Thief",
                token: try #require(register?.tokenAttrs.register?.token)
            )
            return { TokenAttrs(login: TokenAttr(token: try thief.call(confirm).token)) }
        }
    }

    private func take(
        _ taking: Taking,
        _ alice: WireClient,
        _ laptop: WireClient,
        _ server: TestServer
    ) throws {
        let user = "\(alice.userID)"
        switch taking {
        case .logout: try alice.call(LogoutRequest())
        case .closedByAnother: try laptop.call(SessionsCloseRequest())
        case .closedByTheApprover:
            // After this logout, Alice's session is the only one, so her next request closes no
            // session.
            try laptop.call(LogoutRequest())
            try alice.call(SessionsCloseRequest())
        case .kicked:
            let sessions = try laptop.call(SessionsInfoRequest()).sessions
            let other = try #require(sessions.first { !$0.current }?.id)
            _ = try server.admin(.endSession("\(other)"))
        case .allKicked: _ = try server.admin(.endSessions(user: user))
        case .kickedAfterLogout:
            for device in [laptop, alice] { try device.call(LogoutRequest()) }
            _ = try server.admin(.endSessions(user: user))
        case .blocked:
            _ = try server.admin(.block(user: user, isBlocked: true))
            _ = try server.admin(.block(user: user, isBlocked: false))
        case .erased: _ = try server.admin(.erase(user: user, isConfirmed: true))
        }
    }
}
