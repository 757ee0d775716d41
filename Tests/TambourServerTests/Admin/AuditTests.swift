import Dispatch
import Logging
import Synchronization
import TambourNet
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger
@testable import TambourServer

extension TestServer {
    /// Returns the action, user and number of occurrences of each matching entry of the audit log.
    fileprivate func audit(_ filter: [AdminFilter.Key: String] = [:]) throws -> [String] {
        try admin(.audit(AdminFilter(filter))).map {
            $0.split(separator: " ")[2...4].joined(separator: " ")
        }
    }
}

@Suite("The audit log")
struct AuditTests {
    @Test("has each sign-in, on a new device or a known one")
    func signIns() throws {
        try withServer { server in
            let alice = try server.signUp("Alice", device: "phone")
            _ = try server.signIn(phoneOf: alice, device: "laptop")
            _ = try server.signIn(phoneOf: alice, device: "phone")
            _ = try server.signIn(phoneOf: alice, device: "laptop")
            // A login with a token is not a sign-in.
            _ = try server.reconnect(alice)
            let actions = ["registration", "new-device", "sign-in", "sign-in"]
            #expect(try server.audit() == actions.map { "\($0) \(alice.userID) 1" })
            let lines = try server.admin(.audit(AdminFilter()))
            #expect(lines.allSatisfy { $0.contains(" 127.0.0.1 \"session ") }, "\(lines)")
            let phone = try alice.phone
            #expect(!lines.joined().contains("\(phone)"))
        }
    }

    @Test("counts wrong codes and passwords of an account, and nothing of unknown phones")
    func refused() throws {
        let limits = ["maxPasswordTriesPerHour": 50]
        try withServer(limits: limits) { server in
            let alice = try server.signUp("Alice")
            try alice.setPassword("correct horse")
            let phone = try alice.phone
            let stranger = try server.connect(device: "new")
            func guessCode(of phone: Int64) throws {
                let asked = try stranger.call(
                    AuthRequestRequest(phone: PhoneNumber.format(phone))
                )
                _ = try server.receivedCode(of: phone)
                for _ in 0..<3 {
                    let guess = AuthCodeRequest(token: asked.token, verifyCode: "x")
                    #expect(try stranger.code(of: guess) == .errorCodeWrong)
                }
            }
            try guessCode(of: server.freshPhone())
            try guessCode(of: phone)
            let challenge = try #require(
                try server.enterCode(phone: phone, on: stranger).passwordChallenge
            )
            for _ in 0..<20 {
                let guess = AuthLoginCheckPasswordRequest(
                    trackID: challenge.trackID,
                    password: "wrong horse"
                )
                #expect(try stranger.code(of: guess) == .errorPasswordWrong)
            }
            let id = alice.userID
            #expect(
                try server.audit([.kind: "refused"])
                    == ["code-refused \(id) 3", "password-refused \(id) 20"]
            )
            #expect(try server.audit([.action: "registration"]) == ["registration \(id) 1"])
        }
    }

    @Test("has what administrators do, and whom it concerns")
    func admin() throws {
        try withPair { server, alice, bob, _ in
            let (a, b) = ("\(alice.userID)", "\(bob.userID)")
            let group = try alice.createGroup("Group", with: [bob], cid: 1)
            let laptop = try server.signIn(phoneOf: alice, device: "laptop")
            let session = try #require(
                try server.admin(.sessions(AdminFilter([.user: a]))).last?.split(separator: " ")[0]
            )
            try bob.call(ComplainRequest(ids: [alice.userID.rawValue], reasonID: 7))
            _ = try server.admin(.endSession(String(session)))
            _ = try server.admin(.block(user: b, isBlocked: true))
            _ = try server.admin(.block(user: b, isBlocked: false))
            _ = try server.admin(.endSessions(user: b))
            _ = try server.admin(.closeReport("1"))
            _ = try server.admin(.export(user: a))
            _ = try server.admin(.createUsers(count: 3, firstPhone: 79_990_700_000))
            _ = try server.admin(.addDefaultChat("\(group)"))
            _ = try server.admin(.removeDefaultChat("\(group)"))
            _ = try server.admin(.createInvitation(uses: 2, days: 7))
            _ = try server.admin(.invite(phone: 79_990_800_000, days: 7))
            _ = try server.admin(.revokeInvitation("2"))
            _ = try server.admin(.vacuum)
            try server.reload([])
            // Commands that only list, and commands that fail, leave no entry.
            _ = try server.admin(.users(AdminFilter()))
            _ = try? server.admin(.block(user: "+79", isBlocked: true))
            #expect(
                try server.audit([.kind: "admin"]) == [
                    "end-session \(a) 1", "block \(b) 1", "unblock \(b) 1", "end-sessions \(b) 1",
                    "close-report - 1", "export \(a) 1", "create-users - 1",
                    "add-default-chat - 1", "remove-default-chat - 1", "create-invitation - 1",
                    "invite - 1", "revoke-invitation - 1", "vacuum - 1", "reload - 1",
                ]
            )
            laptop.close()
        }
    }

    @Test("is listed by user, kind, action, address, days and page")
    func filters() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            clock.advance(ms: 3 * 86_400_000)
            let bob = try server.signUp("Bob")
            func ids(_ filter: [AdminFilter.Key: String]) throws -> [String] {
                try server.admin(.audit(AdminFilter(filter))).map {
                    String($0.split(separator: " ")[0])
                }
            }
            let all = try ids([:])
            #expect(all.count == 2)
            #expect(try ids([.user: "\(alice.userID)"]) == [all[0]])
            #expect(try ids([.user: "\(bob.userID)", .after: all[1]]) == [])
            #expect(try ids([.kind: "sign-in"]) == all && ids([.kind: "admin"]) == [])
            #expect(try ids([.action: "new-device"]) == [])
            #expect(try ids([.address: "127."]) == all && ids([.address: "10."]) == [])
            #expect(try ids([.days: "1"]) == [all[1]])
            #expect(try ids([.limit: "1"]) == [all[0]])
            #expect(try ids([.limit: "1", .after: all[0]]) == [all[1]])
            for bad: [AdminFilter.Key: String] in [[.kind: "x"], [.action: "x"], [.days: "-1"]] {
                #expect(throws: AdminService.Failure.self) {
                    try server.admin(.audit(AdminFilter(bad)))
                }
            }
        }
    }

    @Test("goes with the person: into an export, and away with an erasure")
    func person() throws {
        try withServer { server in
            let alice = try server.signUp("Alice")
            _ = try server.signIn(phoneOf: alice, device: "laptop")
            let lines = try server.admin(.export(user: "\(alice.userID)")).filter {
                $0.hasPrefix("{\"type\":\"audit\"")
            }
            #expect(lines.count == 3)
            #expect(lines[0].contains("\"action\":\"registration\",\"address\":\"127.0.0.1\""))
            #expect(lines[2].contains("\"action\":\"export\""))
            _ = try server.admin(.erase(user: "\(alice.userID)", isConfirmed: true))
            #expect(try server.audit() == ["erase - 1"])
            let last = try #require(try server.admin(.audit(AdminFilter())).last)
            #expect(last.hasSuffix("\"user \(alice.userID)\""))
        }
    }

    @Test("is kept for as many days as the operator says")
    func kept() throws {
        let clock = ManualClock()
        try withServer(environment: clock.environment) { server in
            let alice = try server.signUp("Alice")
            func keepHouse() {
                let done = DispatchSemaphore(value: 0)
                server.server.messenger.housekeeper.run { done.signal() }
                done.wait()
            }
            clock.advance(ms: 89 * 86_400_000)
            keepHouse()
            #expect(try server.audit() == ["registration \(alice.userID) 1"])
            clock.advance(ms: 2 * 86_400_000)
            keepHouse()
            #expect(try server.audit() == [])
        }
    }

    // MARK: - Failures

    private final class Lines: LogHandler, Sendable {
        private let lines = Mutex<[Logger.Metadata]>([])

        var all: [Logger.Metadata] { lines.withLock { $0 } }
        var metadata: Logger.Metadata {
            get { [:] }
            set {}
        }
        var logLevel: Logger.Level {
            get { .trace }
            set {}
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { nil }
            set {}
        }

        func log(event: Logging.LogEvent) {
            lines.withLock { $0.append(event.metadata ?? [:]) }
        }
    }

    @Test("a failed command is in the server's log with its reason, and without a phone")
    func failures() throws {
        try withServer { server in
            let lines = Lines()
            let directory = try TestServer.temporaryDirectory()
            defer { TestServer.removeDirectory(directory) }
            let socket = try AdminSocket(
                path: "\(directory)/admin.sock",
                backend: LiveAdminBackend(server.server),
                maxConnections: 4,
                logger: Logger(label: "test") { _ in lines },
                onExhausted: {}
            )
            defer { socket.stop() }
            let admin = AdminClient(dataDirectory: directory)
            let requests: [AdminService.Request] = [
                .block(user: "+79991234567", isBlocked: true), .export(user: "79991234567"),
                .users(AdminFilter([.limit: "79991234567x"])), .closeReport("12"),
            ]
            for request in requests {
                let failure = #expect(throws: AdminService.Failure.self) {
                    _ = try admin.run(request) { _ in }
                }
                // The reply repeats the administrator's input; only the log must omit it.
                #expect(failure?.description.contains("12") == true)
            }
            let logged = lines.all.map { "\($0["command"] ?? ""): \($0["reason"] ?? "")" }
            #expect(
                logged == [
                    "block: no user has this phone or id", "export: no user has this phone or id",
                    "users: limit is no number",
                    "close-report: there is no report with this number",
                ]
            )
        }
    }
}
