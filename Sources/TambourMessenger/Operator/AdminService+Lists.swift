import TambourEvents
import TambourProtocol
import TambourStore

// Lists users, chats and sessions in pages, and prints the details of a single user, chat or
// session.
extension AdminService {
    private static let rowsPerRead = 500
    static let dayMs: Int64 = 86_400_000
    private static let shownMembers = 100

    /// Reads rows page by page and prints their lines. Stops at the filter's limit, or when no row
    /// is left. Each page is read from its own snapshot.
    ///
    /// - Parameters:
    ///   - first: an id. The list begins with the first row after it.
    ///   - page: reads a number of rows after an id. Returns the id and the line of each row. The
    ///     line is nil if the filter excludes the row.
    func list<ID: Sendable>(
        _ filter: AdminFilter,
        from first: ID,
        _ output: (String) throws -> Void,
        page: @escaping @Sendable (ReadTransaction, ID, Int) throws -> [(id: ID, line: String?)]
    ) throws {
        var left = try filter.number(.limit) ?? .max
        guard left > 0 else { throw Failure(description: "limit: a page has a line or more") }
        var last = first
        while true {
            let rows = Box<[(id: ID, line: String?)]>([])
            let after = last
            try backend.read { store in
                rows.value = try store.read { try page($0, after, Self.rowsPerRead) }
            }
            for line in rows.value.compactMap(\.line) {
                try output(line)
                left -= 1
                if left == 0 { return }
            }
            guard rows.value.count == Self.rowsPerRead, let next = rows.value.last?.id else {
                return
            }
            last = next
        }
    }

    // MARK: - Users

    func listUsers(_ filter: AdminFilter, _ output: (String) throws -> Void) throws {
        let state = try filter.choice(.state, of: ["active", "blocked", "erased"])
        let chat = try filter.number(.chat).map { ChatKey($0) }
        let idleSince = try filter.days(.idleDays).map { days in
            backend.environment.wallMs() - days * Self.dayMs
        }
        let first = UserID(try filter.number(.after) ?? 0)
        try list(filter, from: first, output) { snapshot, after, limit in
            let accounts =
                if let chat {
                    try snapshot.inspectedMembers(of: chat, after: after, limit: limit)
                        .compactMap { try snapshot.account($0.id) }
                } else {
                    try snapshot.accounts(after: after, limit: limit)
                }
            return accounts.map { account in
                let isListed =
                    state.map { $0 == account.state } ?? !account.isErased
                let digits = filter[.phone]?.filter(\.isNumber) ?? ""
                guard isListed, filter.matches(.name, account.name),
                    String(account.phone).hasPrefix(digits),
                    idleSince.map({ max(account.seen, account.registered) < $0 }) ?? true
                else { return (account.id, nil) }
                return (account.id, account.line)
            }
        }
    }

    func showUser(_ user: String, _ output: (String) throws -> Void) throws {
        let lines = Box<[String]>([])
        try backend.read { store in
            lines.value = try store.read { snapshot in
                guard let account = try Self.account(user, in: snapshot) else {
                    throw Self.unknown(user: user)
                }
                return try Self.lines(of: account, in: snapshot)
            }
        }
        for line in lines.value { try output(line) }
    }

    private static func lines(
        of account: Account,
        in snapshot: ReadTransaction
    ) throws -> [String] {
        let counts = try snapshot.counts(of: account.id)
        let end = try snapshot.end(of: account.id)
        let ending =
            if end.isErasing {
                "under way"
            } else if end.deleteAt > 0 {
                AdminText.time(end.deleteAt)
            } else if end.inactiveDays > 0 {
                "after \(end.inactiveDays) days without a sign of life"
            } else {
                "never"
            }
        if account.isErased {
            return [
                "id \(account.id)", "state erased", "erasure \(end.isErasing ? ending : "done")",
            ]
        }
        let invitation = try snapshot.invitationUse(by: account.id)?.invitation
        return [
            "id \(account.id)",
            "phone \(PhoneNumber.format(account.phone))",
            "name \(AdminText.quoted(account.name))",
            "state \(account.state)",
            "registered \(AdminText.time(account.registered))"
                + (invitation.map { " with invitation \($0.rawValue)" } ?? ""),
            "seen \(AdminText.time(account.seen))",
            "password \(try snapshot.password(of: account.id) == nil ? "no" : "yes")",
            "erasure \(ending)",
            "sessions \(counts.sessions)",
            "devices \(counts.devices)",
            "chats \(counts.chats)",
            "contacts \(counts.contacts)",
            "drafts \(counts.drafts)",
            "folders \(counts.folders)",
            "entities \(counts.entities)",
            "reports \(counts.reports)",
        ]
    }

    // MARK: - Chats

    func listChats(_ filter: AdminFilter, _ output: (String) throws -> Void) throws {
        let user = try filter[.user].map { try id(of: $0) }
        // Do not list chats of comments, because they belong to a post.
        let kinds = ChatKind.allCases.filter { $0 != .comments }
        let kind = try filter.choice(.kind, of: kinds.map { "\($0)" })
        let minMembers = try filter.number(.minMembers) ?? 0
        let first = try filter.number(.after).map { ChatKey($0) }
        try list(filter, from: first, output) { snapshot, after, limit in
            let chats =
                if let user {
                    try snapshot.inspectedChats(of: user, after: after, limit: limit)
                } else {
                    try snapshot.inspectedChats(after: after, limit: limit)
                }
            return chats.map { chat in
                guard kind.map({ $0 == "\(chat.kind)" }) ?? true,
                    filter.matches(.title, chat.title?.description ?? ""),
                    chat.memberCount >= minMembers
                else { return (chat.key, nil) }
                return (chat.key, chat.line)
            }
        }
    }

    func showChat(_ id: String, _ output: (String) throws -> Void) throws {
        let lines = Box<[String]>([])
        try backend.read { store in
            lines.value = try store.read { snapshot in
                guard let number = Int64(id),
                    let chat = try snapshot.inspectedChat(ChatKey(number))
                else { throw Failure("there is no chat with this id", typed: id) }
                let members = try snapshot.inspectedMembers(
                    of: chat.key,
                    after: UserID(0),
                    limit: Self.shownMembers
                )
                var lines = chat.lines
                lines += members.map { $0.line(in: chat) }
                if chat.memberCount > members.count {
                    let more = chat.memberCount - Int64(members.count)
                    lines.append("and \(more) more: users list --chat=\(id)")
                }
                return lines
            }
        }
        for line in lines.value { try output(line) }
    }

    // MARK: - Sessions

    func listSessions(_ filter: AdminFilter, _ output: (String) throws -> Void) throws {
        let user = try filter[.user].map { try id(of: $0) }
        let idleSince = try filter.days(.idleDays).map { days in
            backend.environment.wallMs() - days * Self.dayMs
        }
        let first = SessionID(try filter.number(.after) ?? 0)
        try list(filter, from: first, output) { snapshot, after, limit in
            let sessions =
                if let user {
                    Array(
                        try snapshot.sessions(of: user)
                            .sorted { $0.id.rawValue < $1.id.rawValue }
                            .drop { $0.id.rawValue <= after.rawValue }.prefix(limit)
                    )
                } else {
                    try snapshot.sessions(after: after, limit: limit)
                }
            return sessions.map { session in
                guard filter.matches(.client, "\(session.client) \(session.info)"),
                    filter.matches(.address, session.address),
                    idleSince.map({ session.lastSeen < $0 }) ?? true
                else { return (session.id, nil) }
                return (session.id, session.line)
            }
        }
    }

    func showSession(_ id: String, _ output: (String) throws -> Void) throws {
        let lines = Box<[String]>([])
        try backend.read { store in
            lines.value = try store.read { snapshot in
                guard let number = Int64(id),
                    let session = try snapshot.session(SessionID(number))
                else { throw Self.unknown(session: id) }
                return session.lines + [try snapshot.account(session.userID)?.line ?? ""]
            }
        }
        for line in lines.value { try output(line) }
    }

    func endSession(_ id: String, _ output: (String) throws -> Void) throws {
        try backend.write { tx in
            guard let number = Int64(id),
                let session = try tx.reader.session(SessionID(number))
            else { throw Self.unknown(session: id) }
            try tx.voidSignIns(of: session.userID)
            try tx.closeSessions([session.id], of: session.userID)
            try tx.record(.endSession, about: session.userID, "session \(session.id.rawValue)")
        }
        try output("\(id) ended")
    }

    func endSessions(of user: String, _ output: (String) throws -> Void) throws {
        let ended = Box<[SessionID]>([])
        try backend.write { tx in
            guard let account = try Self.account(user, in: tx.reader), !account.isErased else {
                throw Self.unknown(user: user)
            }
            ended.value = try tx.closeAllSessions(of: account.id)
            try tx.record(.endSessions, about: account.id, "\(ended.value.count) sessions")
        }
        for id in ended.value { try output("\(id.rawValue) ended") }
        if ended.value.isEmpty { try output("no session") }
    }

    // MARK: - Lookup of ids

    func id(of user: String) throws -> UserID {
        let id = Box<UserID?>(nil)
        try backend.read { store in
            id.value = try store.read { try Self.account(user, in: $0)?.id }
        }
        guard let id = id.value else { throw Self.unknown(user: user) }
        return id
    }

    static func unknown(user: String) -> Failure {
        Failure("no user has this phone or id", typed: user)
    }

    private static func unknown(session: String) -> Failure {
        Failure("there is no session with this id", typed: session)
    }
}

// MARK: - Output lines

extension Account {
    var state: String { isErased ? "erased" : isBlocked ? "blocked" : "active" }

    /// The line `PHONE USER_ID STATE NAME`.
    fileprivate var line: String {
        isErased
            ? "- \(id) erased" : "\(PhoneNumber.format(phone)) \(id) \(state) \(name)"
    }
}

extension InspectedChat {
    /// The title of a group, or the two members of a dialog.
    private var subject: String {
        guard let pair else { return AdminText.quoted(title ?? .empty) }
        return pair.low == pair.high ? "of \(pair.low)" : "\(pair.low) and \(pair.high)"
    }

    private var last: String { AdminText.time(head.id.timeMs) }

    /// The line `ID KIND MEMBERS MESSAGES LAST SUBJECT`.
    fileprivate var line: String {
        "\(key.rawValue) \(kind) \(memberCount) \(head.number) \(last) \(subject)"
    }

    fileprivate var lines: [String] {
        let set = RoleTable.Options.named.filter { options.contains($0.value) }.map(\.name)
        return [
            "id \(key.rawValue)",
            "kind \(kind)",
            pair == nil ? "title \(subject)" : "dialog \(subject)",
            description.map { "description \(AdminText.quoted($0))" },
            pair == nil ? "owner \(owner)" : nil,
            "created \(AdminText.time(created))",
            "messages \(head.number), the last \(last)",
            set.isEmpty ? nil : "options \(set.joined(separator: " "))",
            link.map { "link \($0)" },
            "members \(memberCount)",
        ].compactMap { $0 }
    }
}

extension InspectedMember {
    fileprivate func line(in chat: InspectedChat) -> String {
        let rights = RoleTable.Permissions.named.filter { permissions.contains($0.value) }
        let role =
            chat.pair == nil && chat.owner == id
            ? " owner" : rights.isEmpty ? "" : " admin \(rights.map(\.name).joined(separator: " "))"
        return "member \(id) since \(AdminText.time(joined))\(role)"
    }
}

extension SessionRecord {
    /// The line `ID USER_ID CREATED SEEN ADDRESS "CLIENT" "INFO"`.
    fileprivate var line: String {
        "\(id.rawValue) \(userID) \(AdminText.time(created)) \(AdminText.time(lastSeen)) "
            + "\(address.isEmpty ? "-" : address) \(AdminText.quoted(client)) "
            + AdminText.quoted(info)
    }

    fileprivate var lines: [String] {
        [
            "id \(id.rawValue)",
            "user \(userID)",
            "device \(deviceID.rawValue)",
            "created \(AdminText.time(created))",
            "seen \(AdminText.time(lastSeen))",
            "address \(address.isEmpty ? "-" : address)",
            "client \(AdminText.quoted(client))",
            "info \(AdminText.quoted(info))",
        ]
    }
}
