package import TambourProtocol

/// The operator's rule about who may create an account. Existing accounts can log in under any
/// policy.
package enum RegistrationPolicy: String, CaseIterable, Sendable {
    case open
    /// People with an invitation.
    case invite
    /// Nobody. Invitations are kept, but have no effect.
    case closed

    /// The allowed values of the setting `userInvitations`, which is the number of invitations that
    /// each user may make within `invitationsKeptDays`.
    package static let userInvitationRange = 0...1_000

    /// The policy in the form that clients receive.
    package var mode: RegistrationMode {
        switch self {
        case .open: .open
        case .invite: .invite
        case .closed: .closed
        }
    }
}
