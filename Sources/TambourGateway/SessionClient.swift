import TambourEvents
import TambourMessenger
import TambourProtocol

/// The session's description of its client: the content of SESSION_INIT, the dialect, and the
/// account.
struct SessionClient {
    /// Nil before login.
    private(set) var caller: Caller? { didSet { known = nil } }
    private(set) var origin: SessionOrigin { didSet { known = nil } }
    private(set) var capabilities: Capabilities { didSet { known = nil } }
    /// The capabilities that the client named in SESSION_INIT. A client that named a capability
    /// uses no dialect.
    private var named: Capabilities = []
    /// The client's dialect. It is set once, by the first source that reveals it: the listener, a
    /// clue before login, or the token. If no source reveals the dialect, a login sets it to
    /// `classic`.
    private var dialect: Capabilities?
    /// The features that the client named in SESSION_INIT; nil when it named no feature.
    private(set) var features: SessionFeatures?
    /// The language of refusals; nil for clients that named no locale.
    private(set) var language: RequestError.Language? { didSet { known = nil } }
    private(set) var appVersion: AppVersion?
    private(set) var token: String? { didSet { known = nil } }
    /// Whether the client logged in with a token that it received on this connection, without a
    /// LOGIN.
    private(set) var isSignedInByCode = false
    private var known: Requester?

    /// - Parameter dialect: the dialect of the listener; nil to detect the client's dialect.
    init(dialect: Capabilities?) {
        self.dialect = dialect
        capabilities = dialect ?? .classic
        origin = SessionOrigin(installation: "", client: "", info: "", address: "")
    }

    /// Whether the client receives unread counters with each message.
    var isCounted: Bool { capabilities.contains(.classic) }

    /// The description of the client that handlers receive. The same object is returned until the
    /// client's state changes.
    var requester: Requester {
        mutating get {
            if let known { return known }
            let requester = Requester(
                caller: caller,
                origin: origin,
                capabilities: capabilities,
                features: features?.answers,
                token: token,
                language: language
            )
            known = requester
            return requester
        }
    }

    mutating func connected(from peer: String) {
        origin = SessionOrigin(
            installation: "",
            client: "",
            info: "",
            address: Self.host(of: peer)
        )
    }

    /// Returns the address without its port.
    private static func host(of peer: String) -> String {
        guard let colon = peer.lastIndex(of: ":") else { return peer }
        return String(peer[..<colon].filter { $0 != "[" && $0 != "]" })
    }

    // MARK: - SESSION_INIT

    mutating func initialize(_ hello: SessionInitRequest) {
        let agent = hello.userAgent
        func words(_ parts: String?...) -> String {
            parts.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
        }
        origin = SessionOrigin(
            installation: hello.deviceID ?? "",
            client: words(agent?.deviceType, agent?.appVersion),
            info: words(agent?.deviceName, agent?.osVersion),
            address: origin.address
        )
        named = Capabilities(names: hello.capabilities ?? [])
        settleCapabilities()
        language = RequestError.Language(locale: agent?.locale)
        appVersion = agent?.appVersion.flatMap { AppVersion($0) }
        features = SessionFeatures(hello)
    }

    /// Returns the reply to SESSION_INIT.
    func greeting(
        _ hello: SessionInitRequest,
        _ settings: ServiceConfig,
        seed: Int64
    ) -> SessionInitReply {
        SessionInitReply(
            callsSeed: seed,
            location: settings.countries.first ?? .empty,
            regCountryCode: settings.countries.isEmpty ? nil : settings.countries,
            phoneAutoCompleteEnabled: false,
            lang: true,
            qrAuthEnabled: true,
            capabilities: hello.capabilities == nil ? nil : named.names,
            features: hello.features == nil ? nil : features?.answers ?? [],
            registration: settings.registration.mode
        )
    }

    // MARK: - Dialect and features

    /// Sets the dialect if it is not yet known.
    mutating func speak(_ told: Capabilities?) {
        guard dialect == nil, let told else { return }
        dialect = told
        settleCapabilities()
    }

    /// Sets the capabilities to the named capabilities, or to the dialect if the client named no
    /// capability.
    private mutating func settleCapabilities() {
        capabilities = named.isEmpty ? dialect ?? .classic : named
        origin.dialect = capabilities == .classic ? "" : capabilities.dialect ?? ""
    }

    /// Evaluates the feature rules for the user, or for the device before LOGIN.
    ///
    /// - Returns: whether a decision changed.
    mutating func decideFeatures(by rules: FeatureRules) -> Bool {
        known = nil
        return features?.decide(by: rules, for: caller?.userID) == true
    }

    /// Returns whether the opcode belongs to a feature that is off for this client, or has a
    /// different meaning in the client's dialect.
    func isOff(_ info: OpInfo, rules: FeatureRules) -> Bool {
        if !info.movedIn.isDisjoint(with: capabilities) { return true }
        return !info.feature.isEmpty
            && !info.feature.isDisjoint(with: rules.killed.union(features?.off ?? []))
    }

    // MARK: - Account

    /// Sets the account. If the dialect is still unknown, it becomes `classic` and stays so.
    mutating func signIn(_ session: OpenSession, connection: ConnectionID, replyBudget: Int) {
        speak(.classic)
        caller = Caller(
            userID: session.userID,
            sessionID: session.id,
            deviceID: session.deviceID,
            connectionID: connection,
            replyBudget: replyBudget
        )
    }

    mutating func take(token: String, isGivenHere: Bool) {
        self.token = token
        isSignedInByCode = isGivenHere
    }

    mutating func signOut() {
        caller = nil
        token = nil
    }
}
