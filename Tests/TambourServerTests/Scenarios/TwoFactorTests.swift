import Synchronization
import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourTesting
import Testing

extension WireClient {
    fileprivate func track() throws -> String { try call(AuthCreateTrackRequest()).trackID }

    /// Sets a password as known clients do.
    func setPassword(_ password: String, hint: Text? = nil) throws {
        let track = try track()
        try call(AuthValidatePasswordRequest(trackID: track, password: password))
        if let hint { try call(AuthValidateHintRequest(trackID: track, hint: hint)) }
        try call(
            AuthSet2faRequest(
                trackID: track,
                password: password,
                hint: hint,
                expectedCapabilities: hint == nil ? [0] : [0, 3]
            )
        )
    }

    /// Returns a track on which the old password was checked.
    fileprivate func checkedTrack(_ password: String) throws -> String {
        let track = try track()
        try call(AuthCheckPasswordRequest(trackID: track, password: password))
        return track
    }

    var phone: Int64 {
        get throws {
            let own = try call(ContactInfoRequest(contactIDs: [userID])).contacts.first
            return try #require(own?.phone)
        }
    }
}

extension TestServer {
    /// Returns the reply of AUTH to the right code.
    func enterCode(phone: Int64, on client: WireClient) throws -> AuthCodeReply {
        let asked = try client.call(AuthRequestRequest(phone: PhoneNumber.format(phone)))
        return try client.call(
            AuthCodeRequest(token: asked.token, verifyCode: receivedCode(of: phone))
        )
    }
}

@Suite("The password beside the code")
struct TwoFactorTests {
    @Test("is set, asked for after the code, and brings the token")
    func wholeWay() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            try alice.setPassword("correct horse", hint: "a horse")
            for device in [alice, laptop] {
                let push = try device.next(.notifProfile, as: NotifProfile.self)
                #expect(push.profile.profileOptions == [2, 4])
                #expect(push.profile.contact.id == alice.userID)
            }
            let (again, login) = try server.reconnect(alice)
            #expect(login.profile.profileOptions == [2, 4])
            #expect(try again.call(Login2Request()).profile?.profileOptions == [2, 4])
            let details = try alice.call(Auth2faDetailsRequest()).password
            #expect((details.enabled, details.hint, details.email) == (true, "a horse", nil))

            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            #expect(reply.tokenAttrs.login == nil && reply.tokenAttrs.register == nil)
            #expect(reply.profile == nil)
            let challenge = try #require(reply.passwordChallenge)
            #expect(challenge.hint == "a horse")
            let wrong = AuthLoginCheckPasswordRequest(
                trackID: challenge.trackID,
                password: "Correct horse"
            )
            #expect(try client.code(of: wrong) == .errorPasswordWrong)
            let right = AuthLoginCheckPasswordRequest(
                trackID: challenge.trackID,
                password: "correct horse"
            )
            let admitted = try client.call(right)
            #expect(admitted.profile?.contact.id == alice.userID)
            client.token = try #require(admitted.tokenAttrs.login?.token)
            _ = try server.login(client)
            #expect(try client.code(of: right) == .trackNotFound)
        }
    }

    @Test("changes and goes only for who knows it")
    func changes() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("first one", hint: "one")
            let unchecked = try alice.track()
            let new = AuthValidatePasswordRequest(trackID: unchecked, password: "second one")
            #expect(try alice.code(of: new) == .notAllowed)
            let change = AuthSet2faRequest(
                trackID: unchecked,
                password: "second one",
                expectedCapabilities: [1]
            )
            #expect(try alice.code(of: change) == .notAllowed)
            let remove = AuthSet2faRequest(
                trackID: unchecked,
                removes: true,
                expectedCapabilities: [5]
            )
            #expect(try alice.code(of: remove) == .notAllowed)
            let guess = AuthCheckPasswordRequest(trackID: unchecked, password: "wrong one")
            #expect(try alice.code(of: guess) == .errorPasswordWrong)
            #expect(try alice.code(of: remove) == .notAllowed)

            let track = try alice.checkedTrack("first one")
            try alice.call(AuthValidatePasswordRequest(trackID: track, password: "second one"))
            // The server refuses a change that is announced as a first password, as a removal or as
            // something unknown. It also refuses a change that announces a hint or an e-mail
            // address that is missing.
            for expected: [Int64] in [[0], [1, 3], [1, 4], [5], [9]] {
                let request = AuthSet2faRequest(
                    trackID: track,
                    password: "second one",
                    expectedCapabilities: expected
                )
                #expect(try alice.code(of: request) == .notAllowed, "\(expected)")
            }
            // The server refuses a removal that is announced as a change of the password.
            for expected: Int64 in [1, 2] {
                let request = AuthSet2faRequest(
                    trackID: track,
                    password: "second one",
                    removes: true,
                    expectedCapabilities: [expected]
                )
                #expect(try alice.code(of: request) == .notAllowed, "\(expected)")
            }
            try alice.call(
                AuthSet2faRequest(
                    trackID: track,
                    password: "second one",
                    expectedCapabilities: [1]
                )
            )
            #expect(try alice.call(Auth2faDetailsRequest()).password.hint == "one")
            #expect(
                try alice.code(of: AuthSet2faRequest(trackID: track, removes: true))
                    == .trackNotFound
            )
            _ = try alice.takePushes()

            let last = try alice.checkedTrack("second one")
            try alice.call(
                AuthSet2faRequest(trackID: last, removes: true, expectedCapabilities: [5])
            )
            let push = try alice.next(.notifProfile, as: NotifProfile.self)
            #expect(push.profile.profileOptions == [])
            #expect(try alice.call(Auth2faDetailsRequest()).password.enabled == false)
            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            #expect(reply.tokenAttrs.login != nil)
        }
    }

    @Test("tries are counted over all tracks, and end after an hour")
    func tries() throws {
        let clock = ManualClock()
        try withServer(
            limits: ["maxPasswordTriesPerHour": 4],
            environment: clock.environment
        ) { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            let challenge = try #require(reply.passwordChallenge?.trackID)
            func answer(_ password: String) -> AuthLoginCheckPasswordRequest {
                AuthLoginCheckPasswordRequest(trackID: challenge, password: password)
            }
            func check(_ password: String) throws -> AuthCheckPasswordRequest {
                AuthCheckPasswordRequest(trackID: try alice.track(), password: password)
            }
            // A right password resets the count of wrong passwords.
            for _ in 0..<3 { #expect(try alice.code(of: check("no")) == .errorPasswordWrong) }
            try alice.call(check("correct horse"))
            let guesses = try (0..<5).map { _ in try client.send(answer("guess")) }
            let errors = try guesses.map {
                try ErrorReply.decode(client.reply(to: $0).payload, limits: .standard).error
            }
            let wrong = [Text](repeating: "error.password.wrong", count: 4)
            #expect(errors == wrong + ["auth.blocked"])
            #expect(try alice.code(of: check("correct horse")) == .authBlocked)
            let refusal = try client.refusal(
                .authLoginCheckPassword,
                payload: answer("correct horse").encoded()
            )
            #expect(refusal.error == "auth.blocked")
            #expect(refusal.retryAfter == 3_600_000)
            clock.advance(ms: 3_600_001)
            try alice.call(check("correct horse"))
        }
    }

    @Test("tracks belong to a session, get old, and are not had without end")
    func tracks() throws {
        let clock = ManualClock()
        try withServer(limits: ["maxTracksPerHour": 3], environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let bob = try server.signUp("Bob")
            let track = try alice.track()
            let request = AuthValidateHintRequest(trackID: track, hint: "x")
            try alice.call(request)
            for other in [laptop, bob] { #expect(try other.code(of: request) == .trackNotFound) }
            clock.advance(ms: Int64(Limits.standard.trackLifetimeMs))
            #expect(try alice.code(of: request) == .trackNotFound)
            for _ in 0..<2 { _ = try laptop.track() }
            #expect(try alice.code(of: AuthCreateTrackRequest()) == .authBlocked)
            _ = try bob.track()
            clock.advance(ms: 3_600_001)
            _ = try alice.track()
        }
    }

    @Test("too short, too long, empty: refused where it is asked and where it is set")
    func bounds() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let track = try alice.track()
            for password in ["", "12345", String(repeating: "ж", count: 65)] {
                let validate = AuthValidatePasswordRequest(trackID: track, password: password)
                #expect(try alice.code(of: validate) == .protoPayload)
                let set = AuthSet2faRequest(trackID: track, password: password)
                #expect(try alice.code(of: set) == .protoPayload)
            }
            let nothing = AuthSet2faRequest(trackID: track)
            #expect(try alice.code(of: nothing) == .protoPayload)
            let telling = AuthSet2faRequest(trackID: track, password: "123456", hint: "is 123456")
            #expect(try alice.code(of: telling) == .protoPayload)
            let hint = AuthValidateHintRequest(trackID: track, hint: "")
            #expect(try alice.code(of: hint) == .protoPayload)
            try alice.call(
                AuthSet2faRequest(trackID: track, password: String(repeating: "ж", count: 64))
            )
        }
    }

    @Test("an e-mail address is checked by a code and restores a forgotten password")
    func email() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let track = try alice.track()
            for address in ["", "a", "a@b", "a@@b.c", "a b@c.d", "a@b.c\n", "-x@b.c", "a@.b"] {
                let request = AuthVerifyEmailRequest(trackID: track, email: address)
                #expect(try alice.code(of: request) == .protoPayload, "\(address)")
            }
            let address = "alice@example.org"
            let ask = AuthVerifyEmailRequest(trackID: track, email: address)
            #expect(try alice.call(ask).codeLength == 6)
            let first = try server.receivedCode(of: address)
            try alice.call(ask)
            let second = try server.receivedCode(of: address)
            func check(_ code: String) -> AuthCheckEmailRequest {
                AuthCheckEmailRequest(trackID: track, verifyCode: code)
            }
            if first != second { #expect(try alice.code(of: check(first)) == .errorCodeWrong) }
            let early = AuthSet2faRequest(
                trackID: track,
                password: "correct horse",
                expectedCapabilities: [0, 4]
            )
            #expect(try alice.code(of: early) == .notAllowed)
            #expect(try alice.call(check(second)).email == address)
            #expect(try alice.code(of: check(second)) == .errorCodeExpired)
            try alice.call(early)
            let push = try alice.next(.notifProfile, as: NotifProfile.self)
            #expect(push.profile.profileOptions == [2, 3])
            #expect(try alice.call(Auth2faDetailsRequest()).password.email == "a***e@example.org")

            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            let challenge = try #require(reply.passwordChallenge?.trackID)
            func restore(_ code: String?) -> AuthLoginRestorePasswordRequest {
                AuthLoginRestorePasswordRequest(trackID: challenge, verifyCode: code)
            }
            #expect(try client.code(of: restore("000000")) == .errorCodeExpired)
            #expect(try client.call(restore(nil)).email == "a***e@example.org")
            let code = try server.receivedCode(of: address)
            #expect(try client.code(of: restore("x")) == .errorCodeWrong)
            let restored = try client.call(restore(code))
            client.token = try #require(restored.tokenAttrs?.login?.token)
            _ = try server.login(client)
            let gone = try alice.next(.notifProfile, as: NotifProfile.self)
            #expect(gone.profile.profileOptions == [])
            let next = try server.connect(device: "newer")
            #expect(try server.enterCode(phone: alice.phone, on: next).tokenAttrs.login != nil)
        }
    }

    @Test("an address gets few codes, whoever asks, and an account sends few")
    func emailRecipients() throws {
        let clock = ManualClock()
        let limits = ["maxCodesPerEmailPerHour": 4, "maxEmailCodesPerUserPerHour": 3]
        try withServer(limits: limits, environment: clock.environment) { server in
            func ask(_ client: WireClient, _ email: String) throws -> AuthVerifyEmailRequest {
                AuthVerifyEmailRequest(trackID: try client.track(), email: email)
            }
            let alice = try server.signUp("Alice")
            let eve = try server.signUp("Eve")
            for _ in 0..<3 { try eve.call(ask(eve, "bob@example.org")) }
            #expect(try eve.code(of: ask(eve, "carol@example.org")) == .authBlocked)
            try alice.call(ask(alice, "bob@example.org"))
            // This is the address of the same mailbox, in another spelling.
            #expect(try alice.code(of: ask(alice, "Bob@Example.org")) == .authBlocked)
            try alice.call(ask(alice, "alice@example.org"))
            clock.advance(ms: 3_600_001)
            try eve.call(ask(eve, "bob@example.org"))
        }
    }

    @Test("others cannot use up the codes by which a forgotten password is restored")
    func restoreIsKept() throws {
        try withServer(limits: ["maxCodesPerEmailPerHour": 1]) { server in
            let alice = try server.signUp("Alice")
            let track = try alice.track()
            let address = "alice@example.org"
            try alice.call(AuthVerifyEmailRequest(trackID: track, email: address))
            let code = try server.receivedCode(of: address)
            try alice.call(AuthCheckEmailRequest(trackID: track, verifyCode: code))
            try alice.call(
                AuthSet2faRequest(
                    trackID: track,
                    password: "correct horse",
                    expectedCapabilities: [0, 4]
                )
            )
            let eve = try server.signUp("Eve")
            let verify = AuthVerifyEmailRequest(trackID: try eve.track(), email: address)
            #expect(try eve.code(of: verify) == .authBlocked)
            let client = try server.connect(device: "new")
            let challenge = try #require(
                try server.enterCode(phone: alice.phone, on: client).passwordChallenge?.trackID
            )
            try client.call(AuthLoginRestorePasswordRequest(trackID: challenge))
            _ = try server.receivedCode(of: address)
        }
    }

    @Test("codes by e-mail are few, and tries too")
    func emailLimits() throws {
        try withServer(limits: ["maxEmailCodesPerTrack": 2, "loginCodeTries": 2]) { server in
            let alice = try server.signUp("Alice")
            let track = try alice.track()
            let ask = AuthVerifyEmailRequest(trackID: track, email: "a@example.org")
            try alice.call(ask)
            try alice.call(ask)
            #expect(try alice.code(of: ask) == .authBlocked)
            let code = try server.receivedCode(of: "a@example.org")
            for _ in 0..<2 {
                let guess = AuthCheckEmailRequest(trackID: track, verifyCode: "x")
                #expect(try alice.code(of: guess) == .errorCodeWrong)
            }
            let late = AuthCheckEmailRequest(trackID: track, verifyCode: code)
            #expect(try alice.code(of: late) == .errorCodeExpired)
            try alice.call(AuthSet2faRequest(trackID: try alice.track(), password: "123456"))
            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            let restore = AuthLoginRestorePasswordRequest(
                trackID: try #require(reply.passwordChallenge?.trackID)
            )
            #expect(try client.code(of: restore) == .notAllowed)
        }
    }

    @Test("a registration that was begun before does not get around it")
    func oldRegistration() throws {
        try withServer { server in
            let phone = server.freshPhone()
            let old = try server.connect(device: "old")
            let token = try #require(
                try server.enterCode(phone: phone, on: old).tokenAttrs.register?.token
            )
            let client = try server.connect()
            let own = try #require(
                try server.enterCode(phone: phone, on: client).tokenAttrs.register?.token
            )
            client.token = try client.call(
                AuthConfirmRequest(firstName: "Alice", token: own)
            ).token
            _ = try server.login(client)
            try client.setPassword("correct horse")
            let confirm = AuthConfirmRequest(firstName: "Eve", token: token)
            #expect(try old.code(of: confirm) == .errorCodeExpired)
        }
    }

    @Test("a change while somebody answers makes the challenge void")
    func changedMeanwhile() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("first one")
            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            let challenge = try #require(reply.passwordChallenge?.trackID)
            let track = try alice.checkedTrack("first one")
            try alice.call(AuthSet2faRequest(trackID: track, password: "second one"))
            for password in ["first one", "second one"] {
                let answer = AuthLoginCheckPasswordRequest(trackID: challenge, password: password)
                #expect(try client.code(of: answer) == .trackNotFound)
            }
        }
    }

    /// A change of the second factor, made while tracks are open.
    enum Change: CaseIterable {
        case password, email, hint, removal, restoring
    }

    @Test("a change ends every track, however far it has come", arguments: Change.allCases)
    func changeEndsTracks(change: Change) throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let thief = try server.signIn(phoneOf: alice, device: "stolen")
            let address = "alice@example.org"
            func verify(_ address: String, on track: String, _ client: WireClient) throws {
                try client.call(AuthVerifyEmailRequest(trackID: track, email: address))
                let code = try server.receivedCode(of: address)
                try client.call(AuthCheckEmailRequest(trackID: track, verifyCode: code))
            }
            let first = try alice.track()
            try verify(address, on: first, alice)
            try alice.call(AuthSet2faRequest(trackID: first, password: "first one"))
            // The thief has stolen a session and knows the present password.
            let unchecked = try thief.track()
            let checked = try thief.checkedTrack("first one")
            let asked = try thief.checkedTrack("first one")
            try thief.call(AuthVerifyEmailRequest(trackID: asked, email: "thief@example.org"))
            let verified = try thief.checkedTrack("first one")
            try verify("other@example.org", on: verified, thief)

            switch change {
            case .password:
                let track = try alice.checkedTrack("first one")
                try alice.call(AuthSet2faRequest(trackID: track, password: "second one"))
            case .email:
                let track = try alice.checkedTrack("first one")
                try verify("new@example.org", on: track, alice)
                try alice.call(AuthSet2faRequest(trackID: track, expectedCapabilities: [4]))
            case .hint:
                let track = try alice.checkedTrack("first one")
                try alice.call(AuthSet2faRequest(trackID: track, hint: "a hint"))
            case .removal:
                let track = try alice.checkedTrack("first one")
                try alice.call(AuthSet2faRequest(trackID: track, removes: true))
            case .restoring:
                let client = try server.connect(device: "new")
                let reply = try server.enterCode(phone: alice.phone, on: client)
                let challenge = try #require(reply.passwordChallenge?.trackID)
                let ask = AuthLoginRestorePasswordRequest(trackID: challenge)
                try client.call(ask)
                let code = try server.receivedCode(of: address)
                let restore = AuthLoginRestorePasswordRequest(
                    trackID: challenge,
                    verifyCode: code
                )
                try client.call(restore)
            }
            let after = try alice.call(Auth2faDetailsRequest()).password

            for track in [unchecked, checked, asked, verified] {
                let set = AuthSet2faRequest(trackID: track, password: "evil one")
                #expect(try thief.code(of: set) == .trackNotFound)
                let address = AuthSet2faRequest(trackID: track, expectedCapabilities: [4])
                #expect(try thief.code(of: address) == .trackNotFound)
                let remove = AuthSet2faRequest(trackID: track, removes: true)
                #expect(try thief.code(of: remove) == .trackNotFound)
                let ask = AuthVerifyEmailRequest(trackID: track, email: "a@example.org")
                #expect(try thief.code(of: ask) == .trackNotFound)
                let check = AuthCheckEmailRequest(trackID: track, verifyCode: "000000")
                #expect(try thief.code(of: check) == .trackNotFound)
                let guess = AuthCheckPasswordRequest(trackID: track, password: "first one")
                #expect(try thief.code(of: guess) == .trackNotFound)
            }
            #expect(try alice.call(Auth2faDetailsRequest()).password == after)
        }
    }

    @Test("who comes behind too many passwords is told to come again")
    func overload() throws {
        let limits = ["maxPasswordsWaiting": 1, "passwordHashLogRounds": 14]
        try withServer(limits: limits) { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let track = try alice.track()
            let request = AuthCheckPasswordRequest(trackID: track, password: "correct horse")
            let numbers = try (0..<8).map { _ in try alice.send(request) }
            let packets = try numbers.map { try alice.reply(to: $0) }
            let refused = packets.filter { $0.header.command != PacketCommand.ok.rawValue }
            #expect(refused.count < packets.count)
            #expect(!refused.isEmpty)
            for packet in refused {
                let error = try ErrorReply.decode(packet.payload, limits: .standard).error
                #expect(error == "overloaded")
            }
        }
    }
}
