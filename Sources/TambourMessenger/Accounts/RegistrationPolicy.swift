package import TambourProtocol

/// Who may create an account, as the operator decides. Existing accounts always log in.
package enum RegistrationPolicy: String, CaseIterable, Sendable {
    case open
    /// People with an invitation.
    case invite
    /// Nobody. Invitations are kept, but do not count.
    case closed

    /// The values that the operator may choose for the number of invitations that each user makes
    /// within `invitationsKeptDays`.
    package static let userInvitationRange = 0...1_000

    /// The policy as clients receive it.
    package var mode: RegistrationMode {
        switch self {
        case .open: .open
        case .invite: .invite
        case .closed: .closed
        }
    }
}
