import TambourProtocol
import TambourStore

/// Decides who may register.
extension AuthHandler {
    /// Whether a phone gets a login code.
    enum Admission: Equatable {
        /// The phone has an account, or the server is open to everybody.
        case free
        case invited(InvitationID)
        /// The phone gets the same answer as any other phone, but no code.
        case refused

        var invitation: InvitationID? { if case .invited(let id) = self { id } else { nil } }
    }

    /// Decides whether a phone gets a login code.
    ///
    /// If registration is restricted, the look-ups are the same for every phone. Otherwise the time
    /// of the answer could reveal which phones have an account or an invitation.
    /// - Parameter code: the code of an invitation, exactly as the person typed it.
    func admission(
        of phone: Int64,
        with code: String?,
        now: Int64,
        in snapshot: ReadTransaction
    ) throws -> Admission {
        guard registration != .open else { return .free }
        let account = try snapshot.account(phone: phone)
        let ofPhone = try snapshot.invitation(phone: phone)
        let ofCode = try code.flatMap { InvitationCode($0) }
            .flatMap { try snapshot.invitation(codeHash: Tokens.hash($0)) }
        if account != nil { return .free }
        guard registration == .invite,
            let invitation = [ofPhone, ofCode].compactMap(\.self).first(where: {
                $0.isOpen(at: now)
            })
        else { return .refused }
        return .invited(invitation.id)
    }

    /// Answers `INVITATION_CREATE` (1032): makes an invitation for one person.
    ///
    /// - Throws: `not.allowed` if invitations have no effect, or if only the operator makes them.
    ///   Throws `too.many.requests` if the user has made as many invitations as the operator
    ///   allows.
    /// - Note: A command.
    func invitationCreate(
        _: InvitationCreateRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> InvitationCreateReply {
        switch registration {
        case .open: throw RequestError.notAllowed("Everybody can register on this server")
        case .closed: throw RequestError.notAllowed("Nobody can register on this server")
        case .invite: break
        }
        guard userInvitations > 0 else {
            throw RequestError.notAllowed("Only the operator invites people to this server")
        }
        let kept = tx.ct - limits.invitationsKeptMs
        let made = try tx.reader.invitations(of: caller.userID, since: kept)
        guard made < userInvitations else {
            throw RequestError.tooManyRequests(
                "\(userInvitations) invitations within \(limits.invitationsKeptDays) days are the most: "
                    + "ask the operator, or try again later"
            )
        }
        let code = Tokens.makeInvitation(environment)
        let end = tx.ct + Int64(limits.userInvitationDays) * Limits.dayMs
        _ = try tx.createInvitation(
            codeHash: Tokens.hash(code),
            maxUses: 1,
            expires: end,
            by: caller.userID,
            keptSince: kept
        )
        return InvitationCreateReply(
            invitation: "\(code)",
            expires: end,
            left: Int64(userInvitations - made - 1)
        )
    }

    /// Returns the invitation that a registration uses up; nil if the server is open to everybody.
    ///
    /// - Throws: `registration.closed` if there is no open invitation now, or if registration is
    ///   now closed. The caller has proved that the phone is theirs, so the error reveals nothing
    ///   about other people's phones.
    func invitation(
        for pending: Registration,
        now: Int64,
        in snapshot: ReadTransaction
    ) throws -> InvitationID? {
        switch registration {
        case .open: return nil
        case .closed: throw RequestError.registrationClosed
        case .invite: break
        }
        let known = [
            try pending.invitation.flatMap { try snapshot.invitation($0) },
            try snapshot.invitation(phone: pending.phone),
        ]
        guard let open = known.compactMap(\.self).first(where: { $0.isOpen(at: now) }) else {
            throw RequestError.registrationClosed
        }
        return open.id
    }
}

extension Limits {
    fileprivate static let dayMs: Int64 = 86_400_000

    /// The time for which an ended invitation is kept, in milliseconds.
    var invitationsKeptMs: Int64 { Int64(invitationsKeptDays) * Self.dayMs }
}

extension Tokens {
    /// Returns the hash that the store keeps instead of an invitation's code.
    static func hash(_ code: InvitationCode) -> [UInt8] { hash(code.symbols) }

    /// Makes the code of a new invitation.
    static func makeInvitation(_ environment: Environment) -> InvitationCode {
        InvitationCode(environment.randomBytes(InvitationCode.byteCount))
    }
}
