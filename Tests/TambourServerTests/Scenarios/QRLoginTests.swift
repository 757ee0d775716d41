import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@Suite("Logging in by a QR code (288 to 291)")
struct QRLoginTests {
    @Test("a link is shown, approved on a phone, and brings a token once")
    func wholeWay() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            let web = try server.connect(device: "web")
            let shown = try web.call(GetQrRequest())
            #expect(shown.ttl == Int64(Limits.standard.qrLifetimeMs))
            #expect(shown.expiresAt == clock.now + shown.ttl)
            #expect(shown.pollingInterval > 0)
            #expect(!shown.qrLink.contains(shown.trackID))
            let ask = GetQrStatusRequest(trackID: shown.trackID)
            let take = LoginByQrRequest(trackID: shown.trackID)
            #expect(try web.call(ask).status.loginAvailable == false)
            #expect(try web.call(ask).status.expiresAt == shown.expiresAt)
            #expect(try web.code(of: take) == .notAllowed)

            try alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            try alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            #expect(try web.call(ask).status.loginAvailable)
            let taken = try web.call(take)
            #expect(taken.profile?.contact.id == alice.userID)
            web.token = try #require(taken.tokenAttrs.login?.token)
            _ = try server.login(web)
            #expect(try alice.call(SessionsInfoRequest()).sessions.count == 2)
            #expect(try web.code(of: take) == .trackNotFound)
            #expect(try web.code(of: ask) == .trackNotFound)
        }
    }

    @Test("a link is somebody's, gets old, and tells nothing to others")
    func strangers() throws {
        let clock = ManualClock()
        try withPair(environment: clock.environment) { server, alice, bob, _ in
            let web = try server.connect(device: "web")
            let shown = try web.call(GetQrRequest())
            for link in ["", "tambour:login/", "https://example.org", shown.trackID] {
                let approve = AuthQrApproveRequest(qrLink: link)
                #expect(try alice.code(of: approve) == .trackNotFound, "\(link)")
            }
            try alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            let late = AuthQrApproveRequest(qrLink: shown.qrLink)
            #expect(try bob.code(of: late) == .trackNotFound)
            // The server does not accept the secret of the link as a track id.
            let secret = String(shown.qrLink.dropFirst("tambour:login/".count))
            #expect(try bob.code(of: LoginByQrRequest(trackID: secret)) == .trackNotFound)
            #expect(try web.code(of: GetQrStatusRequest(trackID: "x")) == .trackNotFound)
            clock.advance(ms: Int64(Limits.standard.qrLifetimeMs))
            let take = LoginByQrRequest(trackID: shown.trackID)
            #expect(try web.code(of: take) == .trackNotFound)
            #expect(try alice.code(of: late) == .trackNotFound)
        }
    }

    @Test("a second factor is asked for all the same")
    func password() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let web = try server.connect(device: "web")
            let shown = try web.call(GetQrRequest())
            try alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            let taken = try web.call(LoginByQrRequest(trackID: shown.trackID))
            #expect(taken.tokenAttrs.login == nil && taken.profile == nil)
            let answer = AuthLoginCheckPasswordRequest(
                trackID: try #require(taken.passwordChallenge?.trackID),
                password: "correct horse"
            )
            web.token = try #require(try web.call(answer).tokenAttrs.login?.token)
            _ = try server.login(web)
            #expect(web.userID == alice.userID)
        }
    }

    @Test("a blocked user's approval opens nothing")
    func blocked() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let web = try server.connect(device: "web")
            let shown = try web.call(GetQrRequest())
            try alice.call(AuthQrApproveRequest(qrLink: shown.qrLink))
            try server.block(alice.userID)
            let take = LoginByQrRequest(trackID: shown.trackID)
            #expect(try web.code(of: take) == .trackNotFound)
        }
    }

    @Test("the approvals of an hour are limited, also when some of them are used or void")
    func manyApprovals() throws {
        let clock = ManualClock()
        let limits = ["maxQRApprovalsPerHour": 3]
        try withServer(limits: limits, environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            let web = try server.connect(device: "web")
            func approve() throws -> AuthQrApproveRequest {
                AuthQrApproveRequest(qrLink: try web.call(GetQrRequest()).qrLink)
            }
            let first = try web.call(GetQrRequest())
            try alice.call(AuthQrApproveRequest(qrLink: first.qrLink))
            // The new device uses the first approval to log in. Alice's request to close her other
            // sessions ends the new session.
            let taker = try server.connect(device: "web")
            _ = try taker.call(LoginByQrRequest(trackID: first.trackID))
            try alice.call(approve())
            try alice.call(SessionsCloseRequest())
            let last = try approve()
            try alice.call(last)
            try alice.call(last)
            #expect(try alice.code(of: approve()) == .authBlocked)
            clock.advance(ms: 3_600_001)
            try alice.call(approve())
        }
    }
}
