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
    /// Where registration is restricted, every phone takes the same look-ups, because the time of
    /// the answer must not reveal which phones have an account or an invitation.
    /// - Parameter code: the invitation's code, as the person wrote it.
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

    /// Returns the invitation that a registration uses up; nil if the server is open to everybody.
    ///
    /// - Throws: `registration.closed` if the invitation was used up, ended or was deleted since the
    ///   code was requested, or if the policy has changed. The caller has proved the phone, so the
    ///   error reveals nothing about other people's phones.
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

extension Tokens {
    /// Returns the form in which the store holds the code of an invitation.
    static func hash(_ code: InvitationCode) -> [UInt8] { hash(code.symbols) }

    /// Makes the code of a new invitation.
    static func makeInvitation(_ environment: Environment) -> InvitationCode {
        InvitationCode(environment.randomBytes(InvitationCode.byteCount))
    }
}
