package import Logging
package import TambourProtocol

extension Messenger {
    /// The messenger's settings.
    package struct Configuration: Sendable {
        /// The deliverer of login codes.
        package var loginCodes: LoginCodeSource
        /// Fetches the linked pages for previews; nil if the server makes no previews.
        package var linkPreviews: LinkPreviewSource?
        /// The two-letter codes of the countries that apps offer for signing in. Apps preselect the
        /// first one. An empty list means all countries.
        package var countries: [String]
        package var registration: RegistrationPolicy
        /// The number of people whom each user may invite within `invitationsKeptDays`; 0 for none.
        package var userInvitations: Int
        /// The number of days for which entries of the audit log are kept.
        package var auditDays: Int
        package var limits: Limits
        package var environment: Environment
        package var logger: Logger

        /// The usual value of `auditDays`, a quarter of a year. It leaves enough time to notice a
        /// break-in, and does not keep data about people for longer than needed.
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
