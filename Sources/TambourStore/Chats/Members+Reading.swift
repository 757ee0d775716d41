package import TambourProtocol
import TambourSQL

/// A user with rights in a group or channel.
package typealias Admin = (id: UserID, permissions: RoleTable.Permissions)

extension ReadTransaction {
    /// Returns the members of a chat in the order of their ids.
    package func memberIDs(of chat: ChatKey) throws -> [UserID] {
        try store.members.idsOfChat.all {
            $0.bind(1, chat.rawValue)
        } read: {
            UserID($0.int(.userID))
        }
    }

    /// Returns the administrators other than the owner, in the order of their ids.
    package func admins(of chat: ChatKey) throws -> [Admin] {
        let limit = store.limits.maxChatAdmins - 1
        var admins: [Admin] = []
        guard limit > 0 else { return admins }
        try store.members.adminsOfChat.each {
            $0.bind(1, chat.rawValue)
        } while: { row in
            let permissions = RoleTable.Permissions(rawValue: row.int(.permissions))
            admins.append((UserID(row.int(.userID)), permissions))
            return admins.count < limit
        }
        return admins
    }

    /// Returns a page of members in the order of their ids. Reads until the page is full or the
    /// request has read its limit of rows.
    ///
    /// - Parameters:
    ///   - onlyAdmins: whether to return only the owner and the administrators.
    ///   - isWanted: returns whether an account belongs on the page.
    /// - Returns: the members, and the start of the next page; nil if there is no next page.
    package func members(
        of view: ChatView,
        after marker: UserID,
        limit: Int,
        budget: Int? = nil,
        onlyAdmins: Bool,
        where isWanted: (Account) -> Bool
    ) throws -> (members: [ChatMember], next: UserID?) {
        let query = onlyAdmins ? store.members.pageOfAdmins : store.members.pageOfChat
        if onlyAdmins { query.statement.bind(4, view.owner.rawValue) }
        func account(_ row: SQLRow<MemberAccountColumn>) -> Account { Account(row: row.first()) }
        return try page(
            of: query,
            in: view.key,
            after: marker,
            limit: limit,
            budget: budget,
            account: account,
            where: isWanted
        ) { account, row in
            let isOwner = view.kind.isJoined && account.id == view.owner
            let permissions: RoleTable.Permissions =
                isOwner ? .ofOwner : .init(rawValue: row.int(.second(.permissions)))
            let shown = view.isBig ? nil : row.int(.second(.shownTime))
            return ChatMember(
                contact: account.user(showingPhone: account.id == view.viewer),
                presence: Presence(),
                readMark: account.id == view.viewer ? view.readTime : shown,
                permissions: permissions.isEmpty ? nil : permissions.rawValue
            )
        }
    }

    /// Reads rows with accounts. Stops when it has found `limit` members, the reply is full, or the
    /// request has read its limit of rows.
    ///
    /// - Parameter query: the query. Its parameters are the chat, the last user of the previous
    ///   page, and the maximum number of rows.
    func page<Column>(
        of query: SQLQuery<Column>,
        in chat: ChatKey,
        after marker: UserID,
        limit: Int,
        budget: Int?,
        account: (SQLRow<Column>) -> Account,
        where isWanted: (Account) -> Bool,
        as member: (Account, SQLRow<Column>) -> ChatMember
    ) throws -> (members: [ChatMember], next: UserID?) {
        var budget = budget ?? limits.maxReplyBytes
        var scan = ScanBudget(limits)
        var lastSeen: UserID?
        var members: [ChatMember] = []
        var next: UserID?
        try query.each {
            $0.bind(1, chat.rawValue)
            $0.bind(2, marker.rawValue)
            // Ask for one row more than the limit. If this row exists, more rows follow.
            $0.bind(3, limits.maxScannedRows + 1)
        } while: { row in
            if scan.isSpent, let lastSeen {
                next = lastSeen
                return false
            }
            let account = account(row)
            scan.take(rows: 1)
            lastSeen = account.id
            guard isWanted(account) else { return true }
            budget -= account.wireSizeEstimate
            if members.count == limit || budget < 0, let last = members.last {
                next = last.contact.id
                return false
            }
            members.append(member(account, row))
            return true
        }
        return (members, next)
    }

    /// Returns tombstones of the chats in which the viewer's membership ended after `since` (commit
    /// clock), the newest first. A tombstone contains no data that is newer than the viewer's
    /// membership.
    package func leftChats(
        of viewer: UserID,
        since: Int64,
        upTo end: Int64 = .max,
        limit: Int = .max
    ) throws -> [(chat: Chat, changed: Int64)] {
        try store.members.formerChanged.all {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, since)
            $0.bind(3, end)
            $0.bind(4, Int64(limit))
        } read: { row in
            let ct = row.int(.ct)
            let chat = Chat.left(
                ChatKey(row.int(.chat)),
                owner: UserID(row.int(.owner)),
                created: row.int(.created),
                joined: row.int(.joined),
                at: ct
            )
            return (chat, ct)
        }
    }

    /// Returns the members' read marks that the viewer sees, and the administrators other than the
    /// owner in the order of their ids. For a small chat, returns the mark of every member; for a
    /// big chat, returns only the viewer's own mark.
    package func people(
        of view: ChatView
    ) throws -> (participants: IDMap<UserID, Int64>, admins: [Admin]) {
        if view.isBig {
            return (IDMap([(view.viewer, view.readTime)]), try admins(of: view.key))
        }
        return try everybody(in: view)
    }

    /// Returns the read marks of all members as the viewer sees them, also for a big chat.
    package func marks(of view: ChatView) throws -> IDMap<UserID, Int64> {
        try everybody(in: view).participants
    }

    private func everybody(
        in view: ChatView
    ) throws -> (participants: IDMap<UserID, Int64>, admins: [Admin]) {
        var marks: [(UserID, Int64)] = []
        var admins: [Admin] = []
        try store.members.marksOfChat.each {
            $0.bind(1, view.key.rawValue)
        } do: { row in
            let id = UserID(row.int(.userID))
            marks.append((id, id == view.viewer ? view.readTime : row.int(.shownTime)))
            let permissions = RoleTable.Permissions(rawValue: row.int(.permissions))
            if !permissions.isEmpty, admins.count < store.limits.maxChatAdmins - 1 {
                admins.append((id, permissions))
            }
        }
        return (IDMap(marks), admins)
    }
}
