import TambourEvents
import TambourProtocol
import TambourStore

/// Family `session`: the caller's own profile and settings. Wire:
/// protocol-spec/opcodes/session.yaml
struct SessionHandler: Sendable {
    let limits: Limits
    let service: ServiceConfig

    // MARK: - Profile

    /// Answers `PROFILE` (16): sets the caller's names and description. Absent fields stay
    /// unchanged.
    ///
    /// - Throws: `proto.payload` for an empty first name, `not.allowed` for photos and links.
    /// - Note: A command.
    func profile(
        _ request: ProfileRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ProfileReply {
        guard request.photoToken == nil, request.photoID == nil, request.link == nil else {
            throw RequestError.notAllowed("photos and links are not served")
        }
        let account = try account(of: caller, in: tx)
        var firstName = account.firstName
        var lastName = account.lastName
        if let first = request.firstName {
            firstName = try PersonName.required(first, "/firstName")
        } else if let name = request.name {
            firstName = try PersonName.required(name, "/name")
            lastName = nil
        }
        if let last = request.lastName { lastName = try PersonName.optional(last, "/lastName") }
        let description =
            request.description.map { $0.isEmpty ? nil : String(describing: $0) }
            ?? account.description
        guard
            firstName != account.firstName || lastName != account.lastName
                || description != account.description
        else { return ProfileReply(profile: try tx.reader.profile(of: account)) }

        try tx.setProfile(
            of: account.id,
            firstName: firstName,
            lastName: lastName,
            description: description
        )
        let changed = try self.account(of: caller, in: tx)
        let profile = try tx.reader.profile(of: changed)
        let push = NotifProfile(profile: profile)
        tx.emit(.push(.notifProfile(push), to: [account.id], except: caller.connectionID))
        try tx.tellContacts(of: changed, limit: limits.maxContactAudience)
        return ProfileReply(profile: profile)
    }

    private func account(of caller: Caller, in tx: WriteTransaction) throws -> Account {
        guard let account = try tx.reader.account(caller.userID) else {
            throw RequestError.loginToken
        }
        return account
    }

    // MARK: - Settings

    /// Answers `CONFIG` (22): changes settings of the caller and of the caller's chats.
    ///
    /// - Throws: `chat.not.found`, `proto.payload` for values that the server cannot apply or
    ///   store.
    /// - Note: A command.
    func config(
        _ request: ConfigRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> ConfigReply {
        let caller = requester.requireCaller()
        let account = try account(of: caller, in: tx)
        let settings = try tx.reader.settings(of: caller.userID)
        let change = request.settings ?? SettingsChange()
        let user = try SettingRules.merged(
            settings,
            change.user,
            limits: limits,
            at: "/settings/user"
        )
        let privacy = try SettingRules.privacy(user, at: "/settings/user")
        let inactiveDays = try SettingRules.inactiveDays(user, at: "/settings/user")
        let chats = try changes(of: change.chats, for: caller, in: tx)
        let added = chats.count { $0.before == nil && $0.after != nil }
        if added > 0 {
            let count = try tx.reader.countChatSettings(of: caller.userID) + added
            guard count <= limits.maxChatSettings else {
                throw RequestError.protoPayload(
                    "/settings/chats: \(count) chats, limit \(limits.maxChatSettings)"
                )
            }
        }
        let growth =
            SettingRules.size(of: user) - SettingRules.size(of: settings)
            + chats.reduce(0) { $0 + ($1.after?.bytes.count ?? 0) - ($1.before?.bytes.count ?? 0) }
        // Some accounts are older than the limit and may exceed it. Their users may still change
        // and remove settings, as long as the total size does not grow.
        if growth > 0 {
            let bytes = try tx.reader.settingsBytes(of: caller.userID) + growth
            guard bytes <= limits.maxSettingsBytes else {
                throw RequestError.protoPayload(
                    "/settings: \(bytes) bytes, limit \(limits.maxSettingsBytes)"
                )
            }
        }

        var version = account.settingsVersion
        let changedChats = chats.filter { $0.before != $0.after }
        let shown = IDMap(chats.map { ($0.id, $0.after ?? SettingRules.none) })
        if user != settings || !changedChats.isEmpty {
            for (name, _) in change.user.pairs {
                try tx.set(name, to: user[name], of: caller.userID)
            }
            for chat in changedChats { try tx.set(chat.after, of: chat.id, for: caller.userID) }
            version = try tx.settingsChanged(of: account, privacy: privacy)
            if try tx.reader.end(of: caller.userID).inactiveDays != inactiveDays {
                try tx.setInactivity(days: inactiveDays, of: caller.userID)
            }
            let news = SettingsNews(
                version: version,
                isHidden: privacy.isHidden,
                user: AnyValue(SettingRules.shown(user)),
                chats: shown.isEmpty ? nil : shown
            )
            tx.emit(.settingsChanged(news, of: account.id, except: caller.connectionID))
        }
        return ConfigReply(
            hash: service.hash(with: requester.features, version: version),
            user: SettingRules.shown(user),
            chats: shown.isEmpty ? nil : shown
        )
    }

    private typealias ChatChange = (id: ChatID, before: AnyValue?, after: AnyValue?)

    /// Returns the settings of each named chat before and after the request. Each chat occurs once
    /// in the result.
    ///
    /// If the request names a chat several times, its changes are applied in order.
    /// - Throws: `chat.not.found`, `proto.payload`. The reply and the push contain all settings of
    ///   the named chats. These settings must not exceed `maxConfigReplyBytes`.
    private func changes(
        of request: IDMap<ChatID, NameMap<AnyValue>>,
        for caller: Caller,
        in tx: WriteTransaction
    ) throws -> [ChatChange] {
        var order: [ChatID] = []
        var changes: [ChatID: NameMap<AnyValue>] = [:]
        for (id, change) in request.pairs {
            if changes[id] == nil { order.append(id) }
            changes[id, default: NameMap()].pairs += change.pairs
        }
        var bytes = 0
        return try order.map { id in
            let before = try tx.reader.settings(of: caller.userID, in: id)
            // Settings of a deleted chat still count towards the limit. The caller can therefore
            // still remove them.
            let takesAway = changes[id]?.pairs.allSatisfy { $0.1.isNil } == true
            guard
                try before != nil && takesAway
                    || isKnown(id, to: caller, in: tx)
            else {
                throw RequestError.chatNotFound
            }
            let known = try before.map { try SettingRules.map($0) } ?? NameMap()
            let merged = try SettingRules.merged(
                known,
                changes[id] ?? NameMap(),
                limits: limits,
                at: "/settings/chats/\(id.rawValue)"
            )
            let after = merged.isEmpty ? nil : AnyValue(merged)
            bytes += after?.bytes.count ?? 0
            guard bytes <= limits.maxConfigReplyBytes else {
                throw RequestError.protoPayload(
                    "/settings/chats: the named chats have more than "
                        + "\(limits.maxConfigReplyBytes) bytes of settings; name fewer at once"
                )
            }
            return (id, before, after)
        }
    }

    /// Returns whether the caller sees the chat. This includes dialogs and the chat of saved
    /// messages before their first message.
    private func isKnown(_ id: ChatID, to caller: Caller, in tx: WriteTransaction) throws -> Bool {
        if try tx.chat(id, visibleTo: caller.userID) != nil { return true }
        guard let partner = id.partner(of: caller.userID) else { return false }
        return try tx.reader.isReachable(partner, for: caller.userID)
    }
}

extension WriteTransaction {
    /// Pushes a changed profile to at most `limit` users who have the account as a contact. Sends
    /// no push to users who have blocked the account, because a name could contain an unwanted
    /// message. They get the change at their next login.
    func tellContacts(of account: Account, limit: Int) throws {
        for contact in try reader.owners(of: account, limit: limit)
        where !contact.contact.isBlocked {
            let push = NotifContact(contact: contact.contact.user())
            emit(.push(.notifContact(push), to: [contact.owner], except: nil))
        }
    }
}
