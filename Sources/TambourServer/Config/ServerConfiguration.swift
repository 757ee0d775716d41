package import Logging
package import TambourProtocol
package import TambourStore

/// All options of `tambourd serve`.
package struct ServerConfiguration: Sendable {
    /// The listeners; port 0 takes a free one.
    package var listen: [ListenEndpoint]
    /// The directory that holds database, lock and admin socket. Created when missing.
    package var dataDirectory: String
    /// How login codes reach people.
    package var loginCodes: LoginCodeSource
    /// Looks up the pages behind links; nil for no previews.
    package var linkPreviews: LinkPreviewSource?
    /// Lanes that serve connections; at least 1.
    package var lanes: Int
    /// Countries that apps offer for signing in, as two letters each; apps preselect the first.
    /// Empty for all.
    package var countries: [String]
    package var limits: Limits
    package var features: FeatureSource
    package var environment: Environment
    package var logger: Logger
    /// Overwrites the lanes' read buffers after each use, so that a stray pointer shows at once.
    package var poisonsBuffers: Bool

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
        self.loginCodes = loginCodes
        self.linkPreviews = linkPreviews
        self.lanes = max(1, lanes)
        self.countries = countries
        self.limits = limits
        self.features = features
        self.environment = environment
        self.logger = logger
        self.poisonsBuffers = poisonsBuffers
    }
}

/// Creates login codes and delivers them to the person who asked.
package struct LoginCodeSource: Sendable {
    /// The same digits for everybody; nil for fresh random ones. Only for loopback listeners.
    package var fixedDigits: String?
    /// Whether another code can be accepted; otherwise requests for codes are refused.
    package var hasRoom: @Sendable () -> Bool
    /// Ends all deliveries within seconds, then calls `body` once; nothing is delivered afterwards.
    package var stop: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void
    /// Hands over a code; called on a queue of its own, which it may block.
    package var deliver: @Sendable (_ recipient: CodeRecipient, _ code: String) -> Void

    package init(
        fixedDigits: String? = nil,
        hasRoom: @escaping @Sendable () -> Bool = { true },
        stop: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) -> Void = { $0() },
        deliver: @escaping @Sendable (_ recipient: CodeRecipient, _ code: String) -> Void
    ) {
        self.fixedDigits = fixedDigits
        self.hasRoom = hasRoom
        self.stop = stop
        self.deliver = deliver
    }
}

extension CodeRecipient {
    /// The phone with its plus, or the e-mail address; on one line and without blanks.
    package var address: String {
        switch self {
        case .phone(let phone): PhoneNumber.format(phone)
        case .email(let address): address
        }
    }
}
