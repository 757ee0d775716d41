import Synchronization
import TambourFraming
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

extension WireClient {
    /// Requests a code.
    fileprivate func ask(_ phone: Int64) throws -> AuthRequestReply {
        try call(AuthRequestRequest(phone: PhoneNumber.format(phone), type: "START_AUTH"))
    }

    fileprivate func check(_ token: String, _ code: String) throws -> AuthCodeReply {
        try call(
            AuthCodeRequest(token: token, verifyCode: code, authTokenType: "CHECK_CODE")
        )
    }

    fileprivate func codeOfCheck(_ token: String, _ code: String) throws -> RequestError.Code {
        try self.code(of: AuthCodeRequest(token: token, verifyCode: code))
    }
}

/// Returns a wrong code: the right code with another first digit.
private func wrong(_ code: String) -> String {
    code.first == "0" ? "1" + code.dropFirst() : "0" + code.dropFirst()
}

@Suite("AUTH_REQUEST (17)")
struct AuthRequestTests {
    @Test("all five fields are there, for a known and an unknown phone alike")
    func reply() throws {
        try withServer(limits: ["maxCodesPerPhonePerHour": 5]) { server in
            let client = try server.connect()
            let phone = server.freshPhone()
            let reply = try client.ask(phone)
            #expect(reply.codeLength == 6)
            #expect(reply.requestMaxDuration == 60_000)
            #expect(reply.requestCountLeft == 4)
            #expect(reply.altActionDuration == 60_000)
            #expect(reply.token.count >= 32)
            #expect(try server.receivedCode(of: phone).count == 6)
        }
    }

    @Test("a phone may be written with spaces, dashes and brackets")
    func formats() throws {
        try withServer { server in
            let client = try server.connect()
            for text in ["+7 (999) 111-22-33", "79991112233", "+7.999.111.22.33"] {
                try client.call(AuthRequestRequest(phone: text))
                _ = try server.receivedCode(of: 79_991_112_233)
            }
        }
    }

    @Test("what is no phone number is refused")
    func wrongPhones() throws {
        try withServer { server in
            let client = try server.connect()
            for text in ["", "+", "abc", "1234", "1234567890123456", "00000", "+7999x", "٧٩٩٩٠٠٠"] {
                let code = try client.code(of: AuthRequestRequest(phone: text))
                #expect(code == .errorPhoneWrong, "\(text)")
            }
        }
    }

    @Test("the codes of a phone are limited in each hour")
    func perPhone() throws {
        let clock = ManualClock()
        try withServer(limits: ["maxCodesPerPhonePerHour": 2], environment: clock.environment) {
            server in
            let phone = server.freshPhone()
            let client = try server.connect()
            #expect(try client.ask(phone).requestCountLeft == 1)
            #expect(try client.ask(phone).requestCountLeft == 0)
            let request = AuthRequestRequest(phone: PhoneNumber.format(phone))
            #expect(try client.code(of: request) == .authBlocked)
            _ = try client.ask(server.freshPhone())
            clock.advance(ms: 3_600_001)
            #expect(try client.ask(phone).requestCountLeft == 1)
        }
    }

    @Test("one address cannot use up what a phone may get; many can, but not for a known address")
    func perPhoneFromAll() throws {
        let clock = ManualClock()
        let limits = ["maxCodesPerPhonePerHour": 2, "maxCodesPerPhoneFromAllPerHour": 4]
        try withServer(limits: limits, environment: clock.environment) { server in
            let phone = server.freshPhone()
            let request = AuthRequestRequest(phone: PhoneNumber.format(phone))
            func client(_ last: Int) throws -> WireClient {
                try server.connect(source: "127.0.0.\(last)")
            }
            // A user registers at home.
            let home = try client(9)
            let token = try #require(
                try server.enterCode(phone: phone, on: home).tokenAttrs.register?.token
            )
            let made = try home.call(AuthConfirmRequest(firstName: "A", token: token))
            // A stranger uses up all codes that one address may request. Another address still gets
            // one.
            let stranger = try client(2)
            for left in [1, 0] { #expect(try stranger.ask(phone).requestCountLeft == left) }
            #expect(try stranger.code(of: request) == .authBlocked)
            #expect(try client(3).ask(phone).requestCountLeft == 1)
            // The phone has no requests left now. Only addresses from which its owner has logged in
            // may still request a code.
            #expect(try client(4).code(of: request) == .authBlocked)
            #expect(try client(3).code(of: request) == .authBlocked)
            #expect(try client(9).ask(phone).requestCountLeft == 0)
            #expect(try client(9).code(of: request) == .authBlocked)
            _ = try client(4).ask(server.freshPhone())
            // The owner takes the device to another address and logs in there.
            let travelling = try client(7)
            travelling.token = made.token
            _ = try server.login(travelling)
            try server.run { _ in }
            #expect(try client(7).ask(phone).requestCountLeft == 1)
            clock.advance(ms: 3_600_001)
            #expect(try client(4).ask(phone).requestCountLeft == 1)
        }
    }

    @Test("the codes of an address are limited in each hour, whatever the phones")
    func perAddress() throws {
        try withServer(limits: ["maxCodesPerAddressPerHour": 2]) { server in
            for _ in 0..<2 { _ = try server.connect().ask(server.freshPhone()) }
            let request = AuthRequestRequest(phone: PhoneNumber.format(server.freshPhone()))
            #expect(try server.connect().code(of: request) == .authBlocked)
        }
    }
}

@Suite("AUTH (18) and AUTH_CONFIRM (23)")
struct AuthTests {
    @Test("a new phone registers, the same phone logs in later")
    func registration() throws {
        try withServer { server in
            let client = try server.connect()
            let phone = server.freshPhone()
            let asked = try client.ask(phone)
            let checked = try client.check(asked.token, server.receivedCode(of: phone))
            #expect(checked.tokenAttrs.login == nil)
            let token = try #require(checked.tokenAttrs.register?.token)
            let confirmed = try client.call(
                AuthConfirmRequest(firstName: " Zoë ", lastName: "  ", token: token)
            )
            #expect(confirmed.userToken == confirmed.profile.contact.id.rawValue)
            #expect(confirmed.tokenType == .login)
            #expect(confirmed.profile.contact.names.first?.firstName == "Zoë")
            #expect(confirmed.profile.contact.phone == phone)

            let second = try client.ask(phone)
            let known = try client.check(second.token, server.receivedCode(of: phone))
            #expect(known.tokenAttrs.register == nil)
            #expect(known.profile?.contact.id == confirmed.profile.contact.id)
            client.token = try #require(known.tokenAttrs.login?.token)
            #expect(try server.login(client).profile.contact.phone == phone)
        }
    }

    @Test("a code and a registration token work once")
    func once() throws {
        try withServer { server in
            let client = try server.connect()
            let phone = server.freshPhone()
            let asked = try client.ask(phone)
            let code = try server.receivedCode(of: phone)
            let token = try #require(
                try client.check(asked.token, code).tokenAttrs.register?.token
            )
            #expect(try client.codeOfCheck(asked.token, code) == .errorCodeExpired)
            try client.call(AuthConfirmRequest(firstName: "A", token: token))
            let again = AuthConfirmRequest(firstName: "A", token: token)
            #expect(try client.code(of: again) == .errorCodeExpired)
        }
    }

    @Test("a wrong code is counted; when the tries are used up the right one is no help")
    func tries() throws {
        try withServer(limits: ["loginCodeTries": 3]) { server in
            let client = try server.connect()
            let phone = server.freshPhone()
            let asked = try client.ask(phone)
            let code = try server.receivedCode(of: phone)
            for _ in 0..<3 {
                #expect(try client.codeOfCheck(asked.token, wrong(code)) == .errorCodeWrong)
            }
            #expect(try client.codeOfCheck(asked.token, code) == .errorCodeExpired)
        }
    }

    @Test("guesses sent all at once are counted one by one")
    func pipelinedTries() throws {
        try withServer(limits: ["loginCodeTries": 3]) { server in
            let client = try server.connect()
            let phone = server.freshPhone()
            let asked = try client.ask(phone)
            let code = try server.receivedCode(of: phone)
            let guess = AuthCodeRequest(token: asked.token, verifyCode: wrong(code))
            let right = AuthCodeRequest(token: asked.token, verifyCode: code)
            let numbers = try [guess, guess, guess, right].map { try client.send($0) }
            let replies = try numbers.map { try client.reply(to: $0) }
            let errors = try replies.map {
                try ErrorReply.decode($0.payload, limits: .standard).error
            }
            #expect(
                errors == [
                    "error.code.wrong", "error.code.wrong", "error.code.wrong",
                    "error.code.expired",
                ]
            )
        }
    }

    @Test("codes and registrations run out")
    func expiry() throws {
        let clock = ManualClock()
        try withServer(limits: ["loginCodeLifetimeMs": 60_000], environment: clock.environment) {
            server in
            let client = try server.connect()
            let phone = server.freshPhone()
            let late = try client.ask(phone)
            let lateCode = try server.receivedCode(of: phone)
            clock.advance(ms: 60_000)
            #expect(try client.codeOfCheck(late.token, lateCode) == .errorCodeExpired)

            let asked = try client.ask(phone)
            let reply = try client.check(asked.token, server.receivedCode(of: phone))
            let token = try #require(reply.tokenAttrs.register?.token)
            clock.advance(ms: 60_000)
            let confirm = AuthConfirmRequest(firstName: "A", token: token)
            #expect(try client.code(of: confirm) == .errorCodeExpired)
        }
    }

    @Test("made-up tokens are expired ones")
    func unknown() throws {
        try withServer { server in
            let client = try server.connect()
            #expect(try client.codeOfCheck("", "123456") == .errorCodeExpired)
            #expect(try client.codeOfCheck("x", "") == .errorCodeExpired)
            let confirm = AuthConfirmRequest(firstName: "A", token: "x")
            #expect(try client.code(of: confirm) == .errorCodeExpired)
        }
    }

    @Test("a name of nothing but spaces is refused and costs nothing")
    func emptyName() throws {
        try withServer { server in
            let client = try server.connect()
            let phone = server.freshPhone()
            let asked = try client.ask(phone)
            let reply = try client.check(asked.token, server.receivedCode(of: phone))
            let token = try #require(reply.tokenAttrs.register?.token)
            let empty = AuthConfirmRequest(firstName: " \u{A0}\t", token: token)
            #expect(try client.code(of: empty) == .protoPayload)
            try client.call(AuthConfirmRequest(firstName: "A", token: token))
        }
    }

    @Test("of two registrations of one phone the second is refused, and a new code logs in")
    func twoRegistrations() throws {
        try withServer { server in
            let phone = server.freshPhone()
            let tokens = try (0..<2).map { _ in
                let client = try server.connect()
                let asked = try client.ask(phone)
                let reply = try client.check(asked.token, server.receivedCode(of: phone))
                return (client, try #require(reply.tokenAttrs.register?.token))
            }
            let made = try tokens[0].0.call(
                AuthConfirmRequest(firstName: "A", token: tokens[0].1)
            )
            let second = AuthConfirmRequest(firstName: "B", token: tokens[1].1)
            #expect(try tokens[1].0.code(of: second) == .errorCodeExpired)
            let login = try server.enterCode(phone: phone, on: tokens[1].0)
            #expect(login.profile?.contact.id == made.profile.contact.id)
        }
    }

    @Test("a blocked account gets neither a login nor a registration")
    func blocked() throws {
        try withServer { server in
            let phone = server.freshPhone()
            let first = try server.connect()
            let second = try server.connect()
            var registrations: [String] = []
            for client in [first, second] {
                let asked = try client.ask(phone)
                let reply = try client.check(asked.token, server.receivedCode(of: phone))
                registrations.append(try #require(reply.tokenAttrs.register?.token))
            }
            let made = try first.call(
                AuthConfirmRequest(firstName: "A", token: registrations[0])
            )
            first.token = made.token
            _ = try server.login(first)
            try server.block(made.profile.contact.id)
            let late = AuthConfirmRequest(firstName: "B", token: registrations[1])
            #expect(try second.code(of: late) == .authBlocked)
            let asked = try second.ask(phone)
            let code = try server.receivedCode(of: phone)
            #expect(try second.codeOfCheck(asked.token, code) == .loginBlocked)
        }
    }
}
