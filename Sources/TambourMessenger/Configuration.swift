package import Logging
package import TambourProtocol

extension Messenger {
    /// The messenger's settings.
    package struct Configuration: Sendable {
        /// How login codes reach people.
        package var loginCodes: LoginCodeSource
        /// Fetches the pages behind links; nil for no previews.
        package var linkPreviews: LinkPreviewSource?
        /// The two-letter codes of the countries that apps offer for signing in; empty for all.
        /// Apps preselect the first.
        package var countries: [String]
        package var registration: RegistrationPolicy
        /// How many people each user may invite within `invitationsKeptDays`; 0 for none.
        package var userInvitations: Int
        /// How many days the entries of the audit log are kept.
        package var auditDays: Int
        package var limits: Limits
        package var environment: Environment
        package var logger: Logger

        /// A quarter of a year: long enough to notice a break-in, and short enough not to keep data
        /// about people for longer than needed.
        package static let usualAuditDays = 90

        package init(
            loginCodes: LoginCodeSource,
            linkPreviews: LinkPreviewSource? = nil,
            countries: [String] = [],
            registration: RegistrationPolicy = .open,
            userInvitations: Int = 0,
            auditDays: Int = Self.usualAuditDays,
            limits: Limits = .standard,
            environment: Environment = .live,
            logger: Logger
        ) {
            self.loginCodes = loginCodes
            self.linkPreviews = linkPreviews
            self.countries = countries
            self.registration = registration
            self.userInvitations = userInvitations
            self.auditDays = auditDays
            self.limits = limits
            self.environment = environment
            self.logger = logger
        }
    }
}
