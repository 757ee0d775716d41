import TambourEvents
import TambourMessenger
import TambourProtocol

/// What a session knows about the other end: what SESSION_INIT said, its dialect, and its account.
struct SessionClient {
    /// Nil before login.
    private(set) var caller: Caller? { didSet { known = nil } }
    private(set) var origin: SessionOrigin { didSet { known = nil } }
    private(set) var capabilities: Capabilities { didSet { known = nil } }
    /// What the client named in SESSION_INIT. A client that named something speaks no dialect.
    private var named: Capabilities = []
    /// Set once, by whatever tells it first: the listener, a clue before login, or the token. Without any of
    /// these a login makes it `classic`.
    private var dialect: Capabilities?
    /// Nil for clients that named none in SESSION_INIT.
    private(set) var features: SessionFeatures?
    /// The language of refusals; nil for clients that named no locale.
    private(set) var language: RequestError.Language? { didSet { known = nil } }
    private(set) var appVersion: AppVersion?
    private(set) var token: String? { didSet { known = nil } }
    /// Whether it has logged in with the token that it got on this connection, and has not sent LOGIN.
    private(set) var isSignedInByCode = false
    private var known: Requester?

    /// - Parameter dialect: that of the listener; nil where the client shows it.
    init(dialect: Capabilities?) {
        self.dialect = dialect
        capabilities = dialect ?? .classic
        origin = SessionOrigin(installation: "", client: "", info: "", address: "")
    }

    /// Whether the client is told with each message what its user has not read.
    var isCounted: Bool { capabilities.contains(.classic) }

    /// The client as handlers see it; one object until something changes.
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

    /// The address without its port.
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

    /// The answer to SESSION_INIT.
    func greeting(_ hello: SessionInitRequest, countries: [Text], seed: Int64) -> SessionInitReply {
        SessionInitReply(
            callsSeed: seed,
            location: countries.first ?? .empty,
            regCountryCode: countries.isEmpty ? nil : countries,
            phoneAutoCompleteEnabled: false,
            lang: true,
            qrAuthEnabled: true,
            capabilities: hello.capabilities == nil ? nil : named.names,
            features: hello.features == nil ? nil : features?.answers ?? []
        )
    }

    // MARK: - Dialect and features

    /// Takes what tells the dialect, if nothing did before.
    mutating func speak(_ told: Capabilities?) {
        guard dialect == nil, let told else { return }
        dialect = told
        settleCapabilities()
    }

    /// What the client reads: what it named, or else its dialect.
    private mutating func settleCapabilities() {
        capabilities = named.isEmpty ? dialect ?? .classic : named
        origin.dialect = capabilities == .classic ? "" : capabilities.dialect ?? ""
    }

    /// Decides features for the user, or for the device before LOGIN.
    ///
    /// - Returns: whether an answer changed.
    mutating func decideFeatures(by rules: FeatureRules) -> Bool {
        known = nil
        return features?.decide(by: rules, for: caller?.userID) == true
    }

    /// Whether the opcode belongs to a feature that is off for this client, or is another one in its dialect.
    func isOff(_ info: OpInfo, rules: FeatureRules) -> Bool {
        if !info.movedIn.isDisjoint(with: capabilities) { return true }
        return !info.feature.isEmpty
            && !info.feature.isDisjoint(with: rules.killed.union(features?.off ?? []))
    }

    // MARK: - Account

    /// Takes the account of a session. What has not told the dialect so far does not tell it later.
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
