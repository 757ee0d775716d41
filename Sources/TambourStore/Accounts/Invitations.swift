package import TambourProtocol
import TambourSQL

enum InvitationColumn: Int, SQLColumn {
    case id, phone, codeHash, maxUses, uses, created, expires, userID
}

struct InvitationStatements {
    let byID: SQLQuery<InvitationColumn>
    let byPhone: SQLQuery<InvitationColumn>
    let byCode: SQLQuery<InvitationColumn>
    let page: SQLQuery<InvitationColumn>
    let countOfUser: any SQLStatement
    let insert: any SQLStatement
    let renew: any SQLStatement
    let use: any SQLStatement
    let insertUse: any SQLStatement
    let users: SQLQuery<UserIDColumn>
    let delete: any SQLStatement
    let prune: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let select = "SELECT \(InvitationColumn.list) FROM invitation"
        byID = try sql.query("\(select) WHERE id = $1")
        byPhone = try sql.query("\(select) WHERE phone = $1")
        byCode = try sql.query("\(select) WHERE code_hash = $1")
        page = try sql.query("\(select) WHERE id > $1 ORDER BY id LIMIT $2")
        countOfUser = try sql.prepare(
            "SELECT count(*) FROM invitation WHERE user_id = $1 AND created > $2"
        )
        insert = try sql.prepare(
            """
            INSERT INTO invitation
              (id, phone, code_hash, max_uses, uses, created, expires, user_id)
            VALUES ($1, $2, $3, $4, 0, $5, $6, $7)
            """
        )
        renew = try sql.prepare("UPDATE invitation SET created = $2, expires = $3 WHERE id = $1")
        // Removes the phone from the invitation. From now on the account contains the phone.
        use = try sql.prepare("UPDATE invitation SET uses = uses + 1, phone = NULL WHERE id = $1")
        insertUse = try sql.prepare(
            "INSERT INTO invitation_use (user_id, invitation, used) VALUES ($1, $2, $3)"
        )
        users = try sql.query(
            """
            SELECT \(UserIDColumn.list) FROM invitation_use
            WHERE invitation = $1 ORDER BY user_id LIMIT $2
            """
        )
        delete = try sql.prepare("DELETE FROM invitation WHERE id = $1")
        // Deletes only a few rows at a time. Otherwise a user's request might have to wait until
        // thousands of rows are deleted.
        prune = try sql.prepare(
            """
            DELETE FROM invitation WHERE id IN (
              SELECT id FROM invitation WHERE expires < $1 ORDER BY expires LIMIT 16
            )
            """
        )
    }
}

/// The id of an invitation to the server. An id is never reused.
package struct InvitationID: Hashable, Comparable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    package static func < (lhs: InvitationID, rhs: InvitationID) -> Bool {
        lhs.rawValue < rhs.rawValue
    }
}

/// An invitation to register on a server on which not everybody may register.
package struct Invitation: Equatable, Sendable {
    package let id: InvitationID
    /// The invited phone (digits without the plus). Nil if the invitation has a code, or if the
    /// phone has already registered.
    package let phone: Int64?
    /// Whether the invitation has a code. Anybody who knows the code may use the invitation.
    package let hasCode: Bool
    package let maxUses: Int
    package let uses: Int
    /// Unix milliseconds, like `expires`.
    package let created: Int64
    package let expires: Int64
    /// The user who made the invitation; nil for an administrator.
    package let maker: UserID?

    init(row: SQLRow<InvitationColumn>) {
        id = InvitationID(row.int(.id))
        phone = row.optionalInt(.phone)
        hasCode = !row.isNull(.codeHash)
        maxUses = row.count(.maxUses)
        uses = row.count(.uses)
        created = row.int(.created)
        expires = row.int(.expires)
        maker = row.nonZero(.userID).map { UserID($0) }
    }

    /// Whether another person may register with the invitation at `now`, Unix milliseconds.
    package func isOpen(at now: Int64) -> Bool { uses < maxUses && now < expires }
}

extension ReadTransaction {
    package func invitation(_ id: InvitationID) throws -> Invitation? {
        try store.invitations.byID.one({ $0.bind(1, id.rawValue) }, read: Invitation.init(row:))
    }

    /// Returns the invitation for a phone that has not yet registered with this invitation.
    package func invitation(phone: Int64) throws -> Invitation? {
        try store.invitations.byPhone.one({ $0.bind(1, phone) }, read: Invitation.init(row:))
    }

    /// Returns the invitation with a code. The caller passes the SHA-256 of the code.
    package func invitation(codeHash: [UInt8]) throws -> Invitation? {
        try store.invitations.byCode.one(
            { $0.bindBlob(1, codeHash) },
            read: Invitation.init(row:)
        )
    }

    /// Returns invitations in the order of their ids, starting after `id`.
    package func invitations(after id: InvitationID, limit: Int) throws -> [Invitation] {
        try store.invitations.page.all(
            {
                $0.bind(1, id.rawValue)
                $0.bind(2, Int64(limit))
            },
            read: Invitation.init(row:)
        )
    }

    /// Returns the number of invitations that `user` made after `time`, Unix milliseconds.
    package func invitations(of user: UserID, since time: Int64) throws -> Int {
        try store.invitations.countOfUser.oneCount {
            $0.bind(1, user.rawValue)
            $0.bind(2, time)
        }
    }

    /// Returns the first users who registered with an invitation. Omits erased users.
    package func users(of invitation: InvitationID, limit: Int) throws -> [UserID] {
        try store.invitations.users.all {
            $0.bind(1, invitation.rawValue)
            $0.bind(2, Int64(limit))
        } read: {
            UserID($0.int(.userID))
        }
    }
}

extension WriteTransaction {
    /// The key in `meta` for the newest invitation's id.
    static let lastInvitationKey = "last_invitation"

    /// Stores an invitation with a code; the caller passes the SHA-256 of the code. Also deletes
    /// some invitations that expired before `keptSince`.
    ///
    /// - Parameter expires: Unix milliseconds, like `keptSince`.
    package func createInvitation(
        codeHash: [UInt8],
        maxUses: Int,
        expires: Int64,
        by maker: UserID? = nil,
        keptSince: Int64
    ) throws -> InvitationID {
        try insertInvitation(
            phone: nil,
            codeHash: codeHash,
            maxUses: maxUses,
            expires: expires,
            by: maker,
            keptSince: keptSince
        )
    }

    /// Invites a phone. If the phone is already invited, renews the invitation: `created` and
    /// `expires` change. Otherwise stores an invitation, and deletes some invitations that expired
    /// before `keptSince`.
    ///
    /// - Parameter expires: Unix milliseconds, like `keptSince`.
    package func invite(
        phone: Int64,
        expires: Int64,
        keptSince: Int64
    ) throws -> InvitationID {
        if let known = try reader.invitation(phone: phone) {
            writes += 1
            try store.invitations.renew.run {
                $0.bind(1, known.id.rawValue)
                $0.bind(2, ct)
                $0.bind(3, expires)
            }
            return known.id
        }
        return try insertInvitation(
            phone: phone,
            codeHash: nil,
            maxUses: 1,
            expires: expires,
            by: nil,
            keptSince: keptSince
        )
    }

    private func insertInvitation(
        phone: Int64?,
        codeHash: [UInt8]?,
        maxUses: Int,
        expires: Int64,
        by maker: UserID?,
        keptSince: Int64
    ) throws -> InvitationID {
        writes += 1
        try store.invitations.prune.run { $0.bind(1, keptSince) }
        // The id of a deleted invitation must not be reused, because code requests and
        // registrations may still contain it.
        let id = try (store.meta.value(Self.lastInvitationKey) ?? 0) + 1
        try store.meta.set(Self.lastInvitationKey, id)
        try store.invitations.insert.run {
            $0.bind(1, id)
            $0.bind(2, phone)
            if let codeHash { $0.bindBlob(3, codeHash) } else { $0.bindNull(3) }
            $0.bind(4, Int64(maxUses))
            $0.bind(5, ct)
            $0.bind(6, expires)
            $0.bind(7, maker?.rawValue ?? 0)
        }
        return InvitationID(id)
    }

    /// Records that a user, created in this transaction, has used an open invitation.
    package func use(_ invitation: InvitationID, by user: UserID) throws {
        writes += 1
        try store.invitations.use.run { $0.bind(1, invitation.rawValue) }
        try store.invitations.insertUse.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, invitation.rawValue)
            $0.bind(3, ct)
        }
    }

    /// Deletes an invitation. A registration that began with this invitation can no longer be
    /// finished.
    ///
    /// - Returns: false if there is no such invitation.
    package func deleteInvitation(_ id: InvitationID) throws -> Bool {
        guard try store.invitations.delete.run({ $0.bind(1, id.rawValue) }) > 0 else {
            return false
        }
        writes += 1
        return true
    }
}
