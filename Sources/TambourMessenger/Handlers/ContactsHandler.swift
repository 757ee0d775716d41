import TambourEvents
import TambourProtocol
import TambourStore

/// Family `contacts`: users, contacts, blocking, presence. Wire:
/// protocol-spec/opcodes/contacts.yaml
struct ContactsHandler: Sendable {
    let limits: Limits
    let environment: Environment
    let presence: PresenceRegistry
    let found: FoundPeople

    // MARK: - Looking up

    /// Answers `CONTACT_INFO` (32): returns the requested users. Omits unknown ids, users whom the
    /// caller may not see, and users who do not fit the reply.
    ///
    /// - Note: A query.
    func contactInfo(
        _ request: ContactInfoRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Progress<ReadTransaction, ContactInfoReply> {
        var seen: Set<UserID> = []
        let ids = request.contactIDs.filter { seen.insert($0).inserted }
        let state = (sight: sight(of: caller), budget: caller.replyBudget, contacts: [User]())
        return try snapshot.inSteps(ids[...], state) { id, state, snapshot in
            let known = try snapshot.contact(id, of: caller.userID)
            guard try state.sight.sees(id, as: known, in: snapshot), let contact = known else {
                return true
            }
            state.budget -= contact.wireSizeEstimate
            if state.budget < 0, !state.contacts.isEmpty { return false }
            state.contacts.append(user(contact, for: caller))
            return true
        } finish: { state, _ in
            ContactInfoReply(contacts: state.contacts)
        }
    }

    /// Answers `CONTACT_INFO_BY_PHONE` (46).
    ///
    /// - Throws: `user.not.found` for an unassigned or malformed phone number, a blocked account,
    ///   or a user whom the caller may not find by phone.
    /// - Note: A query.
    func contactInfoByPhone(
        _ request: ContactInfoByPhoneRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ContactInfoByPhoneReply {
        guard let phone = PhoneNumber.parse(request.phone),
            let account = try snapshot.account(phone: phone, findableBy: caller.userID)
        else { throw RequestError.userNotFound }
        found.note([account.id], by: caller.userID)
        return ContactInfoByPhoneReply(
            contact: user(
                try snapshot.contact(account, of: caller.userID),
                for: caller,
                showingPhone: true
            )
        )
    }

    /// Answers `CONTACT_PRESENCE` (35): returns the presence of contacts, dialog partners and
    /// members of common groups. Omits users who blocked the caller or hide their presence.
    ///
    /// - Note: A query.
    func contactPresence(
        _ request: ContactPresenceRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Progress<ReadTransaction, ContactPresenceReply> {
        let state = (sight: sight(of: caller), presence: IDMap<UserID, Presence>([]))
        let ids = Set(request.contactIDs).sorted()
        return try snapshot.inSteps(ids[...], state) { id, state, snapshot in
            let contact = try snapshot.contact(id, of: caller.userID)
            if try state.sight.seesPresence(id, as: contact, in: snapshot),
                let account = contact?.account, !account.isBlocked, !account.privacy.isHidden,
                try snapshot.isReachable(id, for: caller.userID)
            {
                state.presence.pairs += presence.presence(of: [(id, account.seen)], since: 0).pairs
            }
            return true
        } finish: { state, _ in
            ContactPresenceReply(presence: state.presence, time: environment.wallMs())
        }
    }

    /// Answers `CONTACT_LIST` (36): returns the caller's contacts of one status, in the order of
    /// their ids.
    ///
    /// - Note: A query.
    func contactList(
        _ request: ContactListRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ContactListReply {
        let status = request.status ?? .blocked
        if case .other = status { return ContactListReply() }
        let asked = request.count ?? Int64(limits.maxIDsPerRequest)
        let count = Int(clamping: min(max(1, asked), Int64(limits.maxIDsPerRequest)))
        var contacts = try snapshot.contacts(
            of: caller.userID,
            status: status,
            after: request.from ?? 0,
            limit: count + 1
        )
        var hasMore = contacts.count > count
        if hasMore { contacts.removeLast() }
        var budget = caller.replyBudget
        let fitting = contacts.prefix { contact in
            budget -= contact.wireSizeEstimate
            return budget >= 0
        }
        if fitting.count < contacts.count, !fitting.isEmpty {
            contacts = Array(fitting)
            hasMore = true
        }
        return ContactListReply(
            contacts: contacts.map { $0.user(showingRemoval: true) },
            marker: hasMore ? contacts.last?.account.id.rawValue : nil
        )
    }

    /// Answers `CONTACT_PHOTOS` (39): always returns an empty list, because the server has no
    /// uploads yet.
    ///
    /// - Throws: `user.not.found`, also for a user whom the caller may not see.
    /// - Note: A query.
    func contactPhotos(
        _ request: ContactPhotosRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ContactPhotosReply {
        let id = request.contactID
        var sight = sight(of: caller)
        let contact = try snapshot.contact(id, of: caller.userID)
        guard try sight.sees(id, as: contact, in: snapshot), contact?.account.isBlocked == false
        else { throw RequestError.userNotFound }
        return ContactPhotosReply()
    }

    /// Answers `REMOVE_CONTACT_PHOTO` (43): always refuses, because no user has photos.
    ///
    /// - Throws: `not.found`.
    /// - Note: A query.
    func removeContactPhoto(
        _: RemoveContactPhotoRequest,
        from _: Caller,
        in _: ReadTransaction
    ) throws -> RemoveContactPhotoReply {
        throw RequestError.notFound
    }

    /// Answers `CHAT_SEARCH_COMMON_PARTICIPANTS` (198): returns the caller's groups in which all
    /// the named users are members.
    ///
    /// - Note: A query.
    func chatSearchCommonParticipants(
        _ request: ChatSearchCommonParticipantsRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatSearchCommonParticipantsReply {
        let most = Int64(limits.maxChatsPage)
        let count = min(max(1, request.count ?? most), most)
        let cursor = request.marker.map {
            ChatCursor(insideMillisecond: $0) ?? ChatCursor(before: $0)
        }
        var reply = ChatSearchCommonParticipantsReply()
        var budget = caller.replyBudget
        let pageEnd = snapshot.pageEnd
        let next = try snapshot.commonGroups(
            of: caller.userID,
            and: Set(request.userIDs).subtracting([caller.userID]),
            from: cursor ?? .newest
        ) { view in
            guard reply.commonChats.count < count,
                snapshot.rowsRead < pageEnd || reply.commonChats.isEmpty
            else { return false }
            let chat = try snapshot.chat(view)
            budget -= chat.wireSizeEstimate
            guard budget >= 0 || reply.commonChats.isEmpty else { return false }
            reply.commonChats.append(chat)
            return true
        }
        reply.hasMore = next != nil
        reply.marker = next?.marker
        return reply
    }

    // MARK: - Changing

    /// Answers `CONTACT_UPDATE` (34): adds, renames or removes a contact, or blocks or unblocks a
    /// user.
    ///
    /// The caller must be able to see the user. It is not enough to know the user's id.
    /// - Throws: `user.not.found`, also if the caller may not see the user, or renames a user who
    ///   is not a contact. Throws `not.allowed` for the caller's own id, and `proto.payload` for
    ///   too many contacts or blocked users.
    /// - Note: A command.
    func contactUpdate(
        _ request: ContactUpdateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ContactUpdateReply {
        guard let known = try tx.reader.contact(request.contactID, of: caller.userID),
            !known.account.isErased
        else {
            throw RequestError.userNotFound
        }
        guard request.contactID != caller.userID else { throw RequestError.notAllowed }
        var sight = sight(of: caller)
        guard try sight.sees(request.contactID, in: tx) else { throw RequestError.userNotFound }
        let change: ContactChange
        switch request.action {
        case .add: change = ContactChange(isAdded: true, names: names(of: request))
        case .update:
            guard known.isThere else { throw RequestError.userNotFound }
            change = ContactChange(names: names(of: request))
        case .remove: change = ContactChange(isAdded: false, names: .some(nil))
        case .block: change = ContactChange(isBlocked: true)
        case .unblock: change = ContactChange(isBlocked: false)
        }
        if change.isAdded == true, !known.isAdded {
            try requireRoom(of: caller, at: "/contactId", in: tx)
        }
        if change.isAdded == true || change.isBlocked == true, !known.isKept {
            try requireRow(of: caller, at: "/contactId", in: tx)
        }
        if change.isBlocked == true, !known.isBlocked,
            try tx.reader.blockedContactCount(of: caller.userID) >= limits.maxContacts
        {
            throw RequestError.protoPayload(
                "/action: limit \(limits.maxContacts) blocked users"
            )
        }
        return ContactUpdateReply(
            contact: try apply(change, to: known, by: caller, in: tx).user()
        )
    }

    /// Answers `CONTACT_CREATE` (41): adds the owner of a phone number as a contact.
    ///
    /// - Throws: `user.not.found`, `not.allowed` for the caller's own number, `proto.payload` for
    ///   too many contacts.
    /// - Note: A command.
    func contactCreate(
        _ request: ContactCreateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ContactCreateReply {
        guard let phone = PhoneNumber.parse(request.phone),
            let account = try tx.reader.account(phone: phone, findableBy: caller.userID)
        else { throw RequestError.userNotFound }
        guard account.id != caller.userID else { throw RequestError.notAllowed }
        let known = try tx.reader.contact(account, of: caller.userID)
        if !known.isAdded { try requireRoom(of: caller, at: "/phone", in: tx) }
        if !known.isKept { try requireRow(of: caller, at: "/phone", in: tx) }
        let change = ContactChange(
            isAdded: true,
            names: Self.given(request.firstName, request.lastName)
        )
        return ContactCreateReply(
            contact: try apply(change, to: known, by: caller, in: tx).user(),
            isNew: !known.isAdded
        )
    }

    /// Answers `SYNC` (21): adds phone-book entries that have an account to the contacts, up to the
    /// limits. If a contact does not fit the reply, it appears only in `phones`. The next LOGIN
    /// then contains the full contact.
    ///
    /// - Note: A command.
    func sync(
        _ request: SyncRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> SyncReply {
        var budget = caller.replyBudget
        var contacts: [User] = []
        var phones: [(Text, UserID)] = []
        var room = try limits.maxContacts - tx.reader.addedContactCount(of: caller.userID)
        var rows = try limits.maxContactRows - tx.reader.keptContactCount(of: caller.userID)
        for (text, entry) in request.contactList.pairs {
            guard let phone = PhoneNumber.parse(String(describing: text)),
                let account = try tx.reader.account(phone: phone, findableBy: caller.userID),
                account.id != caller.userID
            else { continue }
            let change = ContactChange(
                isAdded: true,
                names: Self.given(entry.firstName, entry.lastName)
            )
            let known = try tx.reader.contact(account, of: caller.userID)
            if !known.isAdded {
                guard room > 0, known.isKept || rows > 0 else { continue }
                room -= 1
                if !known.isKept { rows -= 1 }
            }
            let contact = try apply(change, to: known, by: caller, in: tx)
            budget -= contact.wireSizeEstimate + text.bytes.count + 16
            if budget >= 0 || contacts.isEmpty { contacts.append(contact.user()) }
            phones.append((text, account.id))
        }
        return SyncReply(contacts: contacts, phones: NameMap(phones))
    }

    private func sight(of caller: Caller) -> Sight {
        Sight(of: caller.userID, found: found, limits: limits)
    }

    /// - Parameter path: the path of the request's field that names the new contact.
    private func requireRoom(of caller: Caller, at path: String, in tx: WriteTransaction) throws {
        guard try tx.reader.addedContactCount(of: caller.userID) < limits.maxContacts else {
            throw RequestError.protoPayload("\(path): limit \(limits.maxContacts) contacts")
        }
    }

    private func requireRow(of caller: Caller, at path: String, in tx: WriteTransaction) throws {
        guard try tx.reader.keptContactCount(of: caller.userID) < limits.maxContactRows else {
            throw RequestError.protoPayload(
                "\(path): limit \(limits.maxContactRows) contacts, removed ones included"
            )
        }
    }

    /// Applies a change and returns the contact. Pushes the contact if the change has an effect.
    private func apply(
        _ change: ContactChange,
        to known: Contact,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws -> Contact {
        guard change.changes(known) else { return known }
        let contact = try tx.change(known, of: caller.userID, by: change)
        tx.emit(
            .push(
                .notifContact(NotifContact(contact: contact.user(showingRemoval: true))),
                to: [caller.userID],
                except: caller.connectionID
            )
        )
        if contact.isBlocked, !known.isBlocked {
            tx.emit(.unfollowed([caller.userID], by: known.account.id))
        }
        return contact
    }

    private func names(of request: ContactUpdateRequest) -> (first: String, last: String?)?? {
        Self.given(request.firstName, request.lastName)
    }

    /// Returns the names that the request gives to the contact. Returns nil when the request has no
    /// first name. Returns `.some(nil)` for an empty first name. This removes the names that the
    /// caller gave earlier.
    private static func given(_ first: Text?, _ last: Text?) -> (first: String, last: String?)?? {
        guard let first else { return nil }
        if first.isEmpty { return .some(nil) }
        let last = last.map { String(describing: $0) }
        return (String(describing: first), last?.isEmpty == true ? nil : last)
    }

    private func user(_ contact: Contact, for caller: Caller, showingPhone: Bool = false) -> User {
        guard contact.account.id != caller.userID else {
            return contact.account.user(showingPhone: true)
        }
        return contact.user(showingPhone: showingPhone)
    }
}
