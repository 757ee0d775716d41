package import Logging
package import TambourGateway
package import TambourMessenger
package import TambourProtocol
package import TambourTLS

/// All options of `tambourd serve`.
package struct ServerConfiguration: Sendable {
    /// The listeners. For port 0 the system chooses a free port.
    package var listen: [ListenEndpoint]
    /// The certificate files. TLS listeners require them; nil if there are no TLS listeners.
    package var tls: TLSFiles?
    /// The directory of the database, the lock and the admin socket. The server creates it when it
    /// is missing.
    package var dataDirectory: String
    /// The number of lanes that serve connections, at least 1.
    package var lanes: Int
    package var features: FeatureSource
    /// Whether lanes overwrite their read buffers after each use. The use of a stale pointer then
    /// fails at once.
    package var poisonsBuffers: Bool
    package var messenger: Messenger.Configuration

    package init(
        listen: [ListenEndpoint],
        tls: TLSFiles? = nil,
        dataDirectory: String,
        loginCodes: LoginCodeSource,
        linkPreviews: LinkPreviewSource? = nil,
        lanes: Int,
        countries: [String] = [],
        registration: RegistrationPolicy = .open,
        userInvitations: Int = 0,
        auditDays: Int = Messenger.Configuration.usualAuditDays,
        limits: Limits = .standard,
        features: FeatureSource = .none,
        environment: Environment = .live,
        logger: Logger,
        poisonsBuffers: Bool = false
    ) {
        self.listen = listen
        self.tls = tls
        self.dataDirectory = dataDirectory
        self.lanes = max(1, lanes)
        self.features = features
        self.poisonsBuffers = poisonsBuffers
        messenger = Messenger.Configuration(
            loginCodes: loginCodes,
            linkPreviews: linkPreviews,
            countries: countries,
            registration: registration,
            userInvitations: userInvitations,
            auditDays: auditDays,
            limits: limits,
            environment: environment,
            logger: logger
        )
    }
}
