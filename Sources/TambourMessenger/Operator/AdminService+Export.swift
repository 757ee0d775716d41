import TambourEvents
import TambourProtocol
import TambourStore

extension AdminService {
    /// Exports all stored data about one user from one snapshot. Each line is a JSON object.
    ///
    /// The export contains only those data about other users that this user can see: ids, names and
    /// visible phones. It omits tokens, codes and the hash of the password.
    func export(_ user: String, _ output: (String) throws -> Void) throws {
        try recordIfServing(.export) { tx in
            guard let account = try Self.account(user, in: tx.reader), !account.isErased else {
                throw Self.unknown(user: user)
            }
            return account.id
        }
        try backend.readApart { store in
            try store.read { snapshot in
                guard let account = try Self.account(user, in: snapshot), !account.isErased else {
                    throw Self.unknown(user: user)
                }
                try withoutActuallyEscaping(output) { output in
                    try Export(account: account, snapshot: snapshot, output: output).run()
                }
            }
        }
    }
}

/// Writes the lines of one user's export.
private struct Export {
    let account: Account
    let snapshot: ReadTransaction
    let output: (String) throws -> Void

    private static let messagesPerRead = 500
    private var user: UserID { account.id }

    func run() throws {
        try profile()
        try invitations()
        try signIns()
        try settings()
        try contacts()
        try folders()
        try drafts()
        try scheduled()
        try entities()
        for request in try snapshot.joinRequests(by: user) {
            try line(
                "joinRequest",
                [
                    ("chat", JSON(ChatID(request.chat.rawValue))),
                    ("asked", JSON(time: request.asked)),
                ]
            )
        }
        for key in try snapshot.channelsBanning(user) {
            try line("commentBan", [("chat", JSON(ChatID(key.rawValue)))])
        }
        for key in try snapshot.chatKeys(of: user) { try chat(key) }
        for former in try snapshot.formerChats(of: user) { try chat(former) }
        for (key, channel, post) in try snapshot.commentedPosts(of: user) {
            try own(in: key, as: MessageAddress(chatID: ChatID(channel.rawValue), postID: post))
        }
        try reports()
        try audit()
    }

    private func line(_ type: String, _ entries: [(String, JSON)]) throws {
        try output(JSON.some([("type", .string(type))] + entries).text)
    }

    // MARK: - Account and contacts

    private func profile() throws {
        let end = try snapshot.end(of: user)
        let password = try snapshot.password(of: user)
        try line(
            "profile",
            [
                ("id", JSON(user)),
                ("phone", .string(PhoneNumber.format(account.phone))),
                ("firstName", .string(account.firstName)),
                ("lastName", JSON(account.lastName)),
                ("description", JSON(account.description)),
                ("registered", JSON(time: account.registered)),
                ("changed", JSON(time: account.updated)),
                ("seen", JSON(time: account.seen)),
                ("blocked", account.isBlocked ? .bool(true) : .null),
                ("password", .bool(password != nil)),
                ("passwordHint", password?.hint.map { JSON($0) } ?? .null),
                ("email", JSON(password?.email)),
                ("erasure", JSON(time: end.deleteAt)),
                ("erasedAfterDays", end.inactiveDays > 0 ? .int(Int64(end.inactiveDays)) : .null),
            ]
        )
    }

    /// Exports the invitation with which the user registered, and the invitations that the user
    /// made. Also exports the invitation for the user's phone.
    private func invitations() throws {
        if let use = try snapshot.invitationUse(by: user) {
            try line(
                "invitationUse",
                [("invitation", .int(use.invitation.rawValue)), ("used", JSON(time: use.used))]
            )
        }
        for invitation in try snapshot.invitations(concerning: account) {
            try line(
                "invitation",
                [
                    ("id", .int(invitation.id.rawValue)),
                    ("made", invitation.maker == nil ? .null : .bool(true)),
                    (
                        "phone",
                        invitation.phone.map { .string(PhoneNumber.format($0)) } ?? .null
                    ),
                    ("created", JSON(time: invitation.created)),
                    ("end", JSON(time: invitation.expires)),
                    ("uses", .int(Int64(invitation.uses))),
                ]
            )
        }
    }

    private func signIns() throws {
        for (id, name) in try snapshot.installations(of: user) {
            try line("device", [("id", .int(id.rawValue)), ("name", .string(name))])
        }
        for session in try snapshot.sessions(of: user) {
            try line(
                "session",
                [
                    ("id", .int(session.id.rawValue)),
                    ("device", .int(session.deviceID.rawValue)),
                    ("created", JSON(time: session.created)),
                    ("seen", JSON(time: session.lastSeen)),
                    ("client", .string(session.client)),
                    ("info", .string(session.info)),
                    ("address", .string(session.address)),
                ]
            )
        }
        for attempt in try snapshot.attempts(of: account) {
            try line(
                "attempt",
                [("kind", .string(attempt.kind)), ("created", JSON(time: attempt.created))]
            )
        }
    }

    private func audit() throws {
        var last: Int64 = 0
        while true {
            let page = try snapshot.auditEntries(
                about: user,
                after: last,
                limit: Self.messagesPerRead
            )
            for entry in page {
                try line(
                    "audit",
                    [
                        ("time", JSON(time: entry.created)),
                        ("action", .string(entry.action)),
                        ("times", entry.times > 1 ? .int(entry.times) : .null),
                        ("last", entry.times > 1 ? JSON(time: entry.last) : .null),
                        ("address", entry.address.isEmpty ? .null : .string(entry.address)),
                        ("detail", entry.detail.isEmpty ? .null : .string(entry.detail)),
                    ]
                )
                last = entry.id
            }
            if page.count < Self.messagesPerRead { return }
        }
    }

    private func settings() throws {
        for (name, value) in try snapshot.settings(of: user).pairs {
            try line("setting", [("name", JSON(name)), ("value", JSON(packed: value.bytes))])
        }
        for (chat, value) in try snapshot.chatSettings(of: user).pairs {
            try line("chatSetting", [("chat", JSON(chat)), ("value", JSON(packed: value.bytes))])
        }
    }

    private func contacts() throws {
        for contact in try snapshot.contacts(of: user, withPartners: true) {
            let shown = contact.user()
            try line(
                "contact",
                [
                    ("id", JSON(contact.account.id)),
                    ("name", .string(contact.account.name)),
                    ("givenFirstName", JSON(contact.firstName)),
                    ("givenLastName", JSON(contact.lastName)),
                    ("phone", shown.phone.map { .string(PhoneNumber.format($0)) } ?? .null),
                    ("added", .bool(contact.isAdded)),
                    ("blocked", .bool(contact.isBlocked)),
                ]
            )
        }
    }

    // MARK: - Private data

    private func folders() throws {
        let order = try snapshot.folderOrder(of: user)?.ids ?? []
        for folder in try snapshot.folders(of: user, since: 0) {
            let place = order.firstIndex(of: folder.id)
            try line(
                "folder",
                [
                    ("place", place.map { .int(Int64($0)) } ?? .null),
                    ("folder", JSON(packed: Packed(folder).bytes)),
                ]
            )
        }
    }

    private func drafts() throws {
        for record in try snapshot.changedDrafts(of: user, since: 0) where record.isSaved {
            try line(
                "draft",
                [
                    ("chat", JSON(record.place.wireID(for: user))),
                    ("saved", JSON(time: record.saved)),
                    ("text", JSON(record.text)),
                    ("elements", JSON(packed: record.elements?.bytes)),
                    ("replyTo", record.replyTo.map { JSON($0) } ?? .null),
                ]
            )
        }
    }

    private func scheduled() throws {
        for record in try snapshot.delayed(of: user) {
            try line(
                "scheduledMessage",
                [
                    ("chat", JSON(record.place.wireID(for: user))),
                    ("id", JSON(record.id)),
                    ("due", JSON(time: record.attributes.timeToFire)),
                    ("failed", record.hasFailed ? .bool(true) : .null),
                    ("text", record.content.text.isEmpty ? .null : JSON(record.content.text)),
                    ("elements", JSON(packed: record.content.elements?.bytes)),
                    ("attaches", JSON(packed: record.content.attaches?.bytes)),
                    ("replyTo", record.content.replyTo.map { JSON($0) } ?? .null),
                    ("forward", JSON(packed: record.content.forward?.bytes)),
                ]
            )
        }
    }

    private func entities() throws {
        var last: Int64 = 0
        while true {
            let page = try snapshot.allEntities(
                of: user,
                after: last,
                limit: Self.messagesPerRead
            )
            for stored in page {
                let copy = ObjectCopy(stored.entity)
                try line(
                    "entity",
                    [
                        ("id", .int(copy.id)),
                        ("kind", .string(copy.type)),
                        ("parent", copy.parent.map { .int($0) } ?? .null),
                        ("modified", JSON(time: copy.modified)),
                        ("fields", JSON(packed: FieldValue.encoded(stored.entity.fields))),
                    ]
                )
                last = copy.id
            }
            if page.count < Self.messagesPerRead { return }
        }
    }

    /// Returns the chat id that the user sees; nil for a deleted dialog.
    private func chatID(of key: ChatKey) throws -> ChatID? {
        if key.rawValue < 0 { return ChatID(key.rawValue) }
        if let post = try snapshot.post(of: key) { return ChatID(post.channel.rawValue) }
        return try snapshot.inspectedChat(key)?.pair.map { .dialog($0.low, $0.high) }
    }

    // MARK: - Chats

    private func chat(_ key: ChatKey) throws {
        guard let view = try snapshot.view(key, for: user) else { return }
        let rights = RoleTable.Permissions.named.filter { view.permissions.contains($0.value) }
        let isOwner = view.partner == nil && view.owner == user
        try line(
            "chat",
            [
                ("id", JSON(view.wireID)),
                ("kind", .string("\(view.kind)")),
                ("partner", view.partner.map { $0 == user ? .null : JSON($0) } ?? .null),
                ("title", view.title.map { JSON($0) } ?? .null),
                ("description", view.description.map { JSON($0) } ?? .null),
                ("members", .int(view.memberCount)),
                ("joined", JSON(time: view.joined)),
                ("owner", isOwner ? .bool(true) : .null),
                ("admin", rights.isEmpty ? .null : .array(rights.map { .string($0.name) })),
                ("readUpTo", JSON(time: view.readTime)),
            ]
        )
        try own(in: key, as: view.address)
    }

    /// Exports a chat that the user has left. The user's messages in this chat still belong to the
    /// user.
    private func chat(_ former: FormerChat) throws {
        guard let wireID = try chatID(of: former.key) else { return }
        try line(
            "formerChat",
            [
                ("id", JSON(wireID)), ("joined", JSON(time: former.joined)),
                ("left", JSON(time: former.left)),
            ]
        )
        try own(in: former.key, as: MessageAddress(chatID: wireID))
    }

    private func own(in key: ChatKey, as address: MessageAddress) throws {
        let place: [(String, JSON)] = [
            ("chat", JSON(address.chatID)), ("post", address.postID.map { JSON($0) } ?? .null),
        ]
        var last = MessageID(0)
        while true {
            let page = try snapshot.ownMessages(
                of: user,
                in: key,
                after: last,
                limit: Self.messagesPerRead
            )
            for record in page { try message(record, in: place) }
            guard page.count == Self.messagesPerRead, let newest = page.last else { break }
            last = newest.id
        }
        for own in try snapshot.reactions(of: user, in: key) {
            try line(
                "reaction",
                place + [
                    ("message", JSON(own.message)), ("reaction", JSON(own.reaction)),
                ]
            )
        }
        for vote in try snapshot.votes(of: user, in: key) {
            try line(
                "vote",
                place + [
                    ("message", JSON(vote.message)), ("answer", .int(vote.answer)),
                    ("voted", JSON(time: vote.voted)),
                ]
            )
        }
        for id in try snapshot.hiddenMessages(of: user, in: key) {
            try line("hiddenMessage", place + [("message", JSON(id))])
        }
    }

    private func message(_ record: MessageRecord, in place: [(String, JSON)]) throws {
        try line(
            "message",
            place + [
                ("id", JSON(record.id)),
                ("time", JSON(time: record.id.timeMs)),
                ("edited", JSON(time: record.updated)),
                ("device", .int(record.device.rawValue)),
                ("text", record.text.isEmpty ? .null : JSON(record.text)),
                ("elements", JSON(packed: record.elements?.bytes)),
                ("attaches", JSON(packed: record.attaches?.bytes)),
                ("replyTo", record.replyTo.map { JSON($0) } ?? .null),
                ("forward", JSON(packed: record.forward?.bytes)),
            ]
        )
    }

    private func reports() throws {
        for report in try snapshot.reports(by: user) {
            var entries: [(String, JSON)] =
                switch report.subject {
                case .user(let id): [("user", JSON(id))]
                case .chat(let key): [("chat", try chatID(of: key).map { JSON($0) } ?? .null)]
                case .message(let id, let key):
                    [
                        ("chat", try chatID(of: key).map { JSON($0) } ?? .null),
                        ("post", try snapshot.post(of: key).map { JSON($0.id) } ?? .null),
                        ("message", JSON(id)),
                    ]
                }
            entries += [
                ("created", JSON(time: report.created)), ("reason", .int(report.reason)),
                ("words", report.words.isEmpty ? .null : JSON(report.words)),
            ]
            try line("report", entries)
        }
    }
}
