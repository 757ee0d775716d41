import TambourFraming
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

extension WireClient {
    fileprivate func track() throws -> String { try call(AuthCreateTrackRequest()).trackID }

    /// Sends all requests at once and returns the errors of their replies.
    fileprivate func errors(of requests: [some WireRequest]) throws -> [Text] {
        try requests.map { try send($0) }.map { number in
            let packet = try reply(to: number)
            guard packet.header.command == PacketCommand.error.rawValue else { return "" }
            return try ErrorReply.decode(packet.payload, limits: .standard).error
        }
    }
}

@Suite("What a password may cost")
struct PasswordCostTests {
    /// Requests with a password that the handler refuses before it checks the password.
    enum Useless: CaseIterable, CustomTestStringConvertible {
        case setOnNoTrack, setWithoutOldPassword, setTooShort, setUnprepared, setTelling
        case setWithControl, checkOnNoTrack, checkWithoutTries, loginOnNoTrack, loginWithoutTries

        var testDescription: String { "\(self)" }
    }

    @Test("one that cannot matter is not hashed", arguments: Useless.allCases)
    func notHashed(useless: Useless) throws {
        try withServer(limits: ["maxPasswordTriesPerHour": 1]) { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let unchecked = try alice.track()
            let bob = try server.signUp("Bob")
            let track = try bob.track()
            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            let challenge = try #require(reply.passwordChallenge?.trackID)
            func useUpTries() throws {
                let guess = AuthCheckPasswordRequest(trackID: unchecked, password: "no")
                #expect(try alice.code(of: guess) == .errorPasswordWrong)
            }
            func set(
                _ track: String,
                _ password: String,
                hint: Text? = nil,
                _ expected: [Int64] = []
            )
                -> AuthSet2faRequest
            {
                AuthSet2faRequest(
                    trackID: track,
                    password: password,
                    hint: hint,
                    expectedCapabilities: expected
                )
            }
            let hashed = server.server.metrics.passwordsHashed
            var before = hashed.count
            func refused(
                _ request: some WireRequest,
                _ code: RequestError.Code,
                by sender: WireClient
            )
                throws
            {
                before = hashed.count
                #expect(try sender.code(of: request) == code)
            }
            switch useless {
            case .setOnNoTrack: try refused(set("x", "aaaaaa"), .trackNotFound, by: alice)
            case .setWithoutOldPassword:
                try refused(set(unchecked, "aaaaaa"), .notAllowed, by: alice)
            case .setTooShort: try refused(set(track, "aaaaa"), .protoPayload, by: bob)
            case .setUnprepared: try refused(set(track, "aaaaaa", [1]), .notAllowed, by: bob)
            case .setTelling:
                try refused(set(track, "aaaaaa", hint: "aaaaaa"), .protoPayload, by: bob)
            case .setWithControl: try refused(set(track, "aaaaaa\u{7}"), .protoPayload, by: bob)
            case .checkOnNoTrack:
                let check = AuthCheckPasswordRequest(trackID: track, password: "correct horse")
                try refused(check, .trackNotFound, by: alice)
            case .checkWithoutTries:
                try useUpTries()
                let check = AuthCheckPasswordRequest(trackID: unchecked, password: "correct horse")
                try refused(check, .authBlocked, by: alice)
            case .loginOnNoTrack:
                let check = AuthLoginCheckPasswordRequest(trackID: unchecked, password: "aaaaaa")
                try refused(check, .trackNotFound, by: client)
            case .loginWithoutTries:
                try useUpTries()
                let check = AuthLoginCheckPasswordRequest(
                    trackID: challenge,
                    password: "correct horse"
                )
                try refused(check, .authBlocked, by: client)
            }
            #expect(hashed.count == before)
        }
    }

    @Test("guesses sent all at once are hashed and counted one by one, until the tries are used up")
    func guessesAtOnce() throws {
        let limits = ["maxPasswordTriesPerHour": 5, "maxPasswordsWaitingPerCaller": 64]
        try withServer(limits: limits) { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let client = try server.connect(device: "new")
            let reply = try server.enterCode(phone: alice.phone, on: client)
            let challenge = try #require(reply.passwordChallenge?.trackID)
            let guess = AuthLoginCheckPasswordRequest(trackID: challenge, password: "guess")
            let before = server.server.metrics.passwordsHashed.count
            let errors = try client.errors(of: Array(repeating: guess, count: 60))
            #expect(errors.count { $0 == "error.password.wrong" } == 5)
            #expect(errors.count { $0 == "auth.blocked" } == 55)
            #expect(server.server.metrics.passwordsHashed.count - before == 5)
        }
    }

    @Test("what was sent without waiting counts in its order")
    func pipelined() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let track = try alice.track()
            let check = try alice.send(
                AuthCheckPasswordRequest(trackID: track, password: "correct horse")
            )
            let set = try alice.send(
                AuthSet2faRequest(
                    trackID: track,
                    password: "battery staple",
                    expectedCapabilities: [1]
                )
            )
            _ = try alice.reply(to: check, as: AuthCheckPasswordReply.self)
            _ = try alice.reply(to: set, as: AuthSet2faReply.self)
            let next = try alice.track()
            try alice.call(AuthCheckPasswordRequest(trackID: next, password: "battery staple"))
        }
    }

    @Test("one account cannot fill the line: the others get their turn")
    func fairness() throws {
        // Hashing must be slow, so that Eve's guesses still wait when Bob's request arrives.
        let limits = ["passwordHashLogRounds": 14, "maxPasswordTriesPerHour": 1000]
        try withServer(limits: limits) { server in
            let eve = try server.signUp("Eve")
            let bob = try server.signUp("Bob")
            for each in [eve, bob] { try each.setPassword("correct horse") }
            let track = try eve.track()
            let own = try bob.track()
            let guess = AuthCheckPasswordRequest(trackID: track, password: "guess")
            let numbers = try (0..<60).map { _ in try eve.send(guess) }
            // A fence: after this reply, the server has received all of Eve's requests.
            try eve.call(PingRequest())
            let before = server.server.metrics.passwordsHashed.count
            try bob.call(AuthCheckPasswordRequest(trackID: own, password: "correct horse"))
            // At most three: the hash in progress for Eve, one more for Eve, and the hash for Bob.
            #expect(server.server.metrics.passwordsHashed.count - before <= 3)
            let errors = try numbers.map { number in
                try ErrorReply.decode(eve.reply(to: number).payload, limits: .standard).error
            }
            let taken = errors.count { $0 == "error.password.wrong" }
            #expect(taken <= Limits.standard.maxPasswordsWaitingPerCaller + 2)
            #expect(errors.count { $0 == "overloaded" } == 60 - taken)
        }
    }
}

@Suite("A password and the same with NULs after it")
struct PasswordCollisionTests {
    @Test("are two", arguments: ["\0", "\0\0\0\0", "\0x"])
    func nul(suffix: String) throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let track = try alice.track()
            func check(_ password: String) -> AuthCheckPasswordRequest {
                AuthCheckPasswordRequest(trackID: track, password: password)
            }
            #expect(try alice.code(of: check("correct horse" + suffix)) == .errorPasswordWrong)
            try alice.call(check("correct horse"))
            // HMAC replaces a key by its hash if the key is longer than a SHA-256 block. So test
            // this length, too.
            let long = String(repeating: "a", count: 64)
            try alice.call(AuthSet2faRequest(trackID: track, password: long))
            let next = AuthCheckPasswordRequest(trackID: try alice.track(), password: long + suffix)
            #expect(try alice.code(of: next) == .errorPasswordWrong)
        }
    }

    @Test("are two also where the hash is from before, and that goes on being good")
    func olderHash() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let user = alice.userID
            let old = try PasswordHasher.hash(
                PasswordToHash(password: "correct horse", salt: [1], logRounds: 4, version: .plain)
            )
            try server.run { try $0.setPassword(old, hint: nil, email: nil, of: user) }
            let track = try alice.track()
            func check(_ password: String) -> AuthCheckPasswordRequest {
                AuthCheckPasswordRequest(trackID: track, password: password)
            }
            #expect(try alice.code(of: check("correct horse\0")) == .errorPasswordWrong)
            #expect(try alice.code(of: check("correct horsf")) == .errorPasswordWrong)
            try alice.call(check("correct horse"))
        }
    }

    @Test(
        "control characters are refused where a password is set",
        arguments: ["\0", "\n", "\u{85}"]
    )
    func controls(character: String) throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            let track = try alice.track()
            for password in ["correct\(character)horse", "correct horse\(character)"] {
                let validate = AuthValidatePasswordRequest(trackID: track, password: password)
                #expect(try alice.code(of: validate) == .protoPayload)
                let set = AuthSet2faRequest(trackID: track, password: password)
                #expect(try alice.code(of: set) == .protoPayload)
            }
            try alice.call(AuthSet2faRequest(trackID: track, password: "zwölf Boxkämpfer 😀"))
        }
    }
}
