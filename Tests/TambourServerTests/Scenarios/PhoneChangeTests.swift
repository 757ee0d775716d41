import TambourMessenger
import TambourProtocol
import TambourTesting
import Testing

extension TestServer {
    /// Moves the account of `client` to another phone.
    fileprivate func move(_ client: WireClient, to phone: Int64) throws {
        let asked = try client.call(
            PhoneBindRequestRequest(phone: PhoneNumber.format(phone))
        )
        try client.call(
            PhoneBindConfirmRequest(token: asked.token, verifyCode: receivedCode(of: phone))
        )
    }
}

@Suite("What was shown for a phone before an account moved to it")
struct PhoneChangeTests {
    @Test("a registration token is void, and logs nobody in")
    func registration() throws {
        try withServer { server in
            let phone = server.freshPhone()
            let stranger = try server.connect()
            let token = try #require(
                try server.enterCode(phone: phone, on: stranger).tokenAttrs.register?.token
            )
            let alice = try server.signUp("Alice")
            try server.move(alice, to: phone)
            let confirm = AuthConfirmRequest(firstName: "Eve", token: token)
            #expect(try stranger.code(of: confirm) == .errorCodeExpired)
            #expect(try alice.call(SessionsInfoRequest()).sessions.count == 1)
        }
    }

    @Test("a code that nobody has entered is void")
    func code() throws {
        try withServer { server in
            let phone = server.freshPhone()
            let stranger = try server.connect()
            let asked = try stranger.call(
                AuthRequestRequest(phone: PhoneNumber.format(phone))
            )
            let code = try server.receivedCode(of: phone)
            let alice = try server.signUp("Alice")
            try server.move(alice, to: phone)
            let check = AuthCodeRequest(token: asked.token, verifyCode: code)
            #expect(try stranger.code(of: check) == .errorCodeExpired)
            // The server now sends a new code to the phone. It logs in to the account of the
            // phone's present owner.
            let login = try server.enterCode(phone: phone, on: stranger)
            #expect(login.profile?.contact.id == alice.userID)
        }
    }

    @Test("a password challenge that the old phone has opened is void")
    func challenge() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let thief = try server.connect()
            let opened = try server.enterCode(phone: alice.phone, on: thief)
            let track = try #require(opened.passwordChallenge?.trackID)
            try server.move(alice, to: server.freshPhone())
            let answer = AuthLoginCheckPasswordRequest(trackID: track, password: "correct horse")
            #expect(try thief.code(of: answer) == .trackNotFound)
        }
    }
}
