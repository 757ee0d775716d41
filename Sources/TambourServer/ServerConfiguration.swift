package import Logging
package import TambourGateway
package import TambourMessenger
package import TambourProtocol

/// All options of `tambourd serve`.
package struct ServerConfiguration: Sendable {
    /// The listeners; port 0 takes a free one.
    package var listen: [ListenEndpoint]
    /// The directory that holds database, lock and admin socket. Created when missing.
    package var dataDirectory: String
    /// Lanes that serve connections; at least 1.
    package var lanes: Int
    package var features: FeatureSource
    /// Overwrites the lanes' read buffers after each use, so that a stray pointer shows at once.
    package var poisonsBuffers: Bool
    package var messenger: Messenger.Configuration

    package init(
        listen: [ListenEndpoint],
        dataDirectory: String,
        loginCodes: LoginCodeSource,
        linkPreviews: LinkPreviewSource? = nil,
        lanes: Int,
        countries: [String] = [],
        limits: Limits = .standard,
        features: FeatureSource = .none,
        environment: Environment = .live,
        logger: Logger,
        poisonsBuffers: Bool = false
    ) {
        self.listen = listen
        self.dataDirectory = dataDirectory
        self.lanes = max(1, lanes)
        self.features = features
        self.poisonsBuffers = poisonsBuffers
        messenger = Messenger.Configuration(
            loginCodes: loginCodes,
            linkPreviews: linkPreviews,
            countries: countries,
            limits: limits,
            environment: environment,
            logger: logger
        )
    }
}
