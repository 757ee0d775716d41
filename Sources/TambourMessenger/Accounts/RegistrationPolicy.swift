package import TambourProtocol

/// Who may create an account; the operator decides. Existing accounts can log in under any policy.
package enum RegistrationPolicy: String, CaseIterable, Sendable {
    case open
    /// People with an invitation.
    case invite
    /// Nobody. Invitations are kept, but have no effect.
    case closed

    /// The allowed values of the setting `userInvitations`: how many invitations each user may make
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
