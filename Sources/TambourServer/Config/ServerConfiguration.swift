package import Logging
package import TambourProtocol
package import TambourStore

/// Everything `tambourd serve` can be told.
package struct ServerConfiguration: Sendable {
    /// Where to listen; port 0 takes a free one.
    package var listen: [ListenEndpoint]
    /// The directory that holds everything: database, lock, admin socket. Created when missing.
    package var dataDirectory: String
    /// How login codes reach people.
    package var loginCodes: LoginCodeSource
    /// Who knows what is behind links; without it there are no previews.
    package var linkPreviews: LinkPreviewSource?
    /// Lanes that serve connections; at least 1.
    package var lanes: Int
    /// Countries that apps offer for signing in, two letters each, the first one to begin with; all if empty.
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

/// Where codes come from and how they reach the person who asked.
package struct LoginCodeSource: Sendable {
    /// The same digits for everybody; nil for fresh random ones. Never beyond a loopback listener.
    package var fixedDigits: String?
    /// Whether one more code can be taken; requests for codes are refused otherwise.
    package var hasRoom: @Sendable () -> Bool
    /// Ends everything that is under way, within seconds, and calls `body` once; nothing is delivered
    /// afterwards.
    package var stop: @Sendable (_ body: @escaping @Sendable () -> Void) -> Void
    /// Hands over a code; called on a queue of its own, may block it.
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
    /// The phone with its plus, or the address; on one line and without blanks.
    package var address: String {
        switch self {
        case .phone(let phone): PhoneNumber.format(phone)
        case .email(let address): address
        }
    }
}
