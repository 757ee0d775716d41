import TambourEvents
package import TambourProtocol
package import TambourStore

/// The back end of admin commands. It is the engine and the readers of a running server, or a store
/// without a server.
package protocol AdminBackend: Sendable {
    /// Runs `body` in a write transaction and waits for its commit.
    func write(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws
    /// Runs `body` with a read-only connection.
    func read(_ body: @escaping @Sendable (StoreConnection) throws -> Void) throws
    /// Runs `body` on the caller's thread with a separate connection. `body` may take long, because
    /// no other work waits for it.
    func readApart<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result
    /// Rewrites the store while all commands wait.
    ///
    /// - Returns: the size of the file before and after, in bytes.
    func vacuum() throws -> (before: Int64, after: Int64)
    var environment: Environment { get }
    var limits: Limits { get }
    /// Whether a server runs on the store.
    var servesClients: Bool { get }
    /// The Prometheus text, or nil when no server runs.
    var metricsText: String? { get }
    /// Reloads the files that a running server can reload.
    ///
    /// - Returns: lines for the operator; nil when no server runs.
    func reload() throws -> [String]?
}

extension AdminBackend {
    package var servesClients: Bool { false }
}

/// The admin commands. The same code serves the admin socket and a store without a server.
package struct AdminService: Sendable {
    /// The failure of a command, with a description for the administrator.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        /// The description without the words that the administrator typed. These words may be a
        /// phone.
        package let reason: String

        package init(description: String) {
            self.description = description
            reason = description
        }

        /// - Parameter typed: the word from the administrator that caused the failure. The log
        ///   omits this word.
        package init(_ reason: String, typed: String) {
            description = "\(reason): \(typed)"
            self.reason = reason
        }
    }

    /// An admin command. `words` is its form on the admin socket.
    package enum Request: Sendable {
        case createUsers(count: Int, firstPhone: Int64)
        case users(AdminFilter)
        case user(String)
        case block(user: String, isBlocked: Bool)
        case erase(user: String, isConfirmed: Bool)
        case export(user: String)
        case chats(AdminFilter)
        case chat(String)
        case sessions(AdminFilter)
        case session(String)
        case endSession(String)
        case endSessions(user: String)
        case metrics
        case stats(sinceDays: Int)
        case check
        case vacuum
        case clock
        case reload
        case reports
        case closeReport(String)
        case createInvitation(uses: Int, days: Int)
        case invite(phone: Int64, days: Int)
        case invitations(AdminFilter)
        case revokeInvitation(String)
        case audit(AdminFilter)
        case announce(AnnouncementRequest)
        case defaultChats
        case addDefaultChat(String)
        case removeDefaultChat(String)

        package var words: [String] {
            switch self {
            case .createUsers(let count, let phone): ["create-users", "\(count)", "\(phone)"]
            case .users(let filter): ["users"] + filter.words
            case .user(let user): ["user", user]
            case .block(let user, let isBlocked): [isBlocked ? "block" : "unblock", user]
            case .erase(let user, let isConfirmed): [isConfirmed ? "erase" : "may-erase", user]
            case .export(let user): ["export", user]
            case .chats(let filter): ["chats"] + filter.words
            case .chat(let id): ["chat", id]
            case .sessions(let filter): ["sessions"] + filter.words
            case .session(let id): ["session", id]
            case .endSession(let id): ["end-session", id]
            case .endSessions(let user): ["end-sessions", user]
            case .metrics: ["metrics"]
            case .stats(let days): ["stats", "\(days)"]
            case .check: ["check"]
            case .vacuum: ["vacuum"]
            case .clock: ["clock"]
            case .reload: ["reload"]
            case .reports: ["reports"]
            case .closeReport(let id): ["close-report", id]
            case .createInvitation(let uses, let days): ["create-invitation", "\(uses)", "\(days)"]
            case .invite(let phone, let days): ["invite", "\(phone)", "\(days)"]
            case .invitations(let filter): ["invitations"] + filter.words
            case .revokeInvitation(let id): ["revoke-invitation", id]
            case .audit(let filter): ["audit"] + filter.words
            case .announce(let request):
                [
                    request.isRepeated ? "announce-again" : "announce",
                    AdminText.escaped(request.text), AdminText.escaped(request.title),
                ] + (request.owner.map { [$0] } ?? [])
            case .defaultChats: ["default-chats"]
            case .addDefaultChat(let id): ["add-default-chat", id]
            case .removeDefaultChat(let id): ["remove-default-chat", id]
            }
        }

        /// Whether the command may take long and must not delay other commands.
        package var isLong: Bool {
            switch self {
            case .createUsers, .erase, .export, .stats, .check, .vacuum, .announce: true
            default: false
            }
        }

        package init?(words: [String]) {
            func filter() -> AdminFilter? { AdminFilter(words: words.dropFirst()) }
            switch (words.first, words.count) {
            case ("create-users", 3):
                guard let count = Int(words[1]), let phone = Int64(words[2]) else { return nil }
                self = .createUsers(count: count, firstPhone: phone)
            case ("users", _):
                guard let filter = filter() else { return nil }
                self = .users(filter)
            case ("chats", _):
                guard let filter = filter() else { return nil }
                self = .chats(filter)
            case ("sessions", _):
                guard let filter = filter() else { return nil }
                self = .sessions(filter)
            case ("create-invitation", 3):
                guard let uses = Int(words[1]), let days = Int(words[2]) else { return nil }
                self = .createInvitation(uses: uses, days: days)
            case ("invite", 3):
                guard let phone = Int64(words[1]), let days = Int(words[2]) else { return nil }
                self = .invite(phone: phone, days: days)
            case ("invitations", _):
                guard let filter = filter() else { return nil }
                self = .invitations(filter)
            case ("stats", 2):
                guard let days = Int(words[1]) else { return nil }
                self = .stats(sinceDays: days)
            case ("user", 2): self = .user(words[1])
            case ("erase", 2): self = .erase(user: words[1], isConfirmed: true)
            case ("may-erase", 2): self = .erase(user: words[1], isConfirmed: false)
            case ("export", 2): self = .export(user: words[1])
            case ("chat", 2): self = .chat(words[1])
            case ("session", 2): self = .session(words[1])
            case ("end-session", 2): self = .endSession(words[1])
            case ("end-sessions", 2): self = .endSessions(user: words[1])
            case ("block", 2): self = .block(user: words[1], isBlocked: true)
            case ("unblock", 2): self = .block(user: words[1], isBlocked: false)
            case ("metrics", 1): self = .metrics
            case ("check", 1): self = .check
            case ("vacuum", 1): self = .vacuum
            case ("clock", 1): self = .clock
            case ("reload", 1): self = .reload
            case ("reports", 1): self = .reports
            case ("close-report", 2): self = .closeReport(words[1])
            case ("revoke-invitation", 2): self = .revokeInvitation(words[1])
            case ("audit", _):
                guard let filter = filter() else { return nil }
                self = .audit(filter)
            case ("announce", 3...4), ("announce-again", 3...4):
                self = .announce(
                    AnnouncementRequest(
                        AdminText.unescaped(words[1]),
                        owner: words.count == 4 ? words[3] : nil,
                        title: AdminText.unescaped(words[2]),
                        isRepeated: words[0] == "announce-again"
                    )
                )
            case ("default-chats", 1): self = .defaultChats
            case ("add-default-chat", 2): self = .addDefaultChat(words[1])
            case ("remove-default-chat", 2): self = .removeDefaultChat(words[1])
            default: return nil
            }
        }
    }

    let backend: any AdminBackend
    /// The number of users that one transaction creates. Other commands run between the
    /// transactions.
    private static let usersPerBatch = 200
    private static let maxUsersAtOnce = 1_000_000

    package init(_ backend: any AdminBackend) {
        self.backend = backend
    }

    /// Runs a request and passes its output to `output` line by line.
    package func run(_ request: Request, output: (String) throws -> Void) throws {
        switch request {
        case .createUsers(let count, let phone):
            try createUsers(count, firstPhone: phone, output: output)
        case .users(let filter): try listUsers(filter, output)
        case .user(let user): try showUser(user, output)
        case .block(let user, let isBlocked): try block(user, isBlocked, output)
        case .erase(let user, let isConfirmed):
            try erase(user, isConfirmed: isConfirmed, output)
        case .export(let user): try export(user, output)
        case .chats(let filter): try listChats(filter, output)
        case .chat(let id): try showChat(id, output)
        case .sessions(let filter): try listSessions(filter, output)
        case .session(let id): try showSession(id, output)
        case .endSession(let id): try endSession(id, output)
        case .endSessions(let user): try endSessions(of: user, output)
        case .stats(let days): try stats(since: days, output)
        case .vacuum:
            try recordIfServing(.vacuum)
            try vacuum(output)
        case .clock: try clock(output)
        case .metrics:
            guard let text = backend.metricsText else { throw Self.noServer }
            for line in text.split(separator: "\n") { try output(String(line)) }
        case .check: try check(output)
        case .reload:
            guard let lines = try backend.reload() else { throw Self.noServer }
            try recordIfServing(.reload)
            for line in lines { try output(line) }
        case .reports: try reports(output)
        case .closeReport(let id): try closeReport(id, output)
        case .createInvitation(let uses, let days):
            try createInvitation(uses: uses, days: days, output)
        case .invite(let phone, let days): try invite(phone, days: days, output)
        case .invitations(let filter): try listInvitations(filter, output)
        case .revokeInvitation(let id): try revokeInvitation(id, output)
        case .audit(let filter): try listAudit(filter, output)
        case .announce(let request): try announce(request, output)
        case .defaultChats: try listDefaultChats(output)
        case .addDefaultChat(let id): try addDefaultChat(id, output)
        case .removeDefaultChat(let id): try removeDefaultChat(id, output)
        }
    }

    private static let noServer = Failure(description: "no server runs on this data directory")

    private func createUsers(
        _ count: Int,
        firstPhone: Int64,
        output: (String) throws -> Void
    ) throws {
        guard (1...Self.maxUsersAtOnce).contains(count) else {
            throw Failure(description: "a count is 1 to \(Self.maxUsersAtOnce)")
        }
        guard PhoneNumber.parse(PhoneNumber.format(firstPhone)) != nil,
            PhoneNumber.parse(PhoneNumber.format(firstPhone + Int64(count) - 1)) != nil
        else { throw Failure(description: "the phones are no phone numbers") }
        var next = 0
        while next < count {
            let range = next..<min(next + Self.usersPerBatch, count)
            let lines = Box<[String]>([])
            let (environment, limits) = (backend.environment, backend.limits)
            try backend.write { tx in
                var made: [String] = []
                let phones = range.map { firstPhone + Int64($0) }
                for phone in phones where try tx.reader.account(phone: phone) != nil {
                    throw Failure("a phone is taken", typed: PhoneNumber.format(phone))
                }
                if range.lowerBound == 0 {
                    try tx.record(.createUsers, about: nil, "\(count) users")
                }
                var users: [UserID] = []
                for phone in phones {
                    let id = try tx.createAccount(
                        phone: phone,
                        firstName: "User \(phone % 10_000)",
                        lastName: nil
                    )
                    users.append(id)
                    let token = Tokens.make(environment)
                    _ = try tx.createSession(
                        of: id,
                        tokenHash: Tokens.hash(token),
                        origin: SessionOrigin(
                            installation: "admin",
                            client: "admin",
                            info: "users create",
                            address: ""
                        )
                    )
                    made.append("\(PhoneNumber.format(phone)) \(id.rawValue) \(token)")
                }
                try tx.joinDefaultChats(users, limits: limits)
                lines.value = made
            }
            for line in lines.value { try output(line) }
            next = range.upperBound
        }
    }

    private func block(
        _ user: String,
        _ isBlocked: Bool,
        _ output: (String) throws -> Void
    ) throws {
        let done = Box("")
        try backend.write { tx in
            guard let account = try Self.account(user, in: tx.reader), !account.isErased else {
                throw Self.unknown(user: user)
            }
            if account.isBlocked != isBlocked {
                try tx.setBlocked(isBlocked, account.id)
                if isBlocked { try tx.closeAllSessions(of: account.id) }
                try tx.record(isBlocked ? .block : .unblock, about: account.id)
            }
            done.value =
                "\(PhoneNumber.format(account.phone)) \(account.id.rawValue) "
                + (isBlocked ? "blocked" : "active")
        }
        try output(done.value)
    }

    /// Returns the account with a phone or an id. A phone begins with a plus, and an id does not.
    static func account(
        _ user: String,
        in snapshot: ReadTransaction
    ) throws -> Account? {
        if user.hasPrefix("+") {
            guard let phone = PhoneNumber.parse(user) else { return nil }
            return try snapshot.account(phone: phone)
        }
        guard let id = Int64(user) else { return nil }
        return try snapshot.account(UserID(id))
    }

    private func check(_ output: (String) throws -> Void) throws {
        let wall = backend.environment.wallMs()
        let (problems, remarks) = try backend.readApart {
            (try StoreCheck.problems(of: $0, wall: wall), try StoreCheck.remarks(on: $0))
        }
        for remark in remarks { try output("note: \(remark)") }
        guard problems.isEmpty else {
            for problem in problems { try output(problem) }
            throw Failure(description: "\(problems.count) problems found")
        }
        try output("ok")
    }
}

/// Carries a result out of a closure. The closure runs on another queue while the caller waits.
///
/// `@unchecked Sendable`: the caller waits, so it reads only after the closure has written.
package final class Box<Value>: @unchecked Sendable {
    package var value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
