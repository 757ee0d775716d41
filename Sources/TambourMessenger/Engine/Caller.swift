package import TambourEvents
package import TambourProtocol

/// The logged-in user who makes a request, with the session and the device.
///
/// Nearly all handlers get a `Caller`. Handlers that also serve requests before login get a
/// `Requester`. So do handlers that depend on the client's self-description.
package struct Caller: Sendable {
    package let userID: UserID
    package let sessionID: SessionID
    package let deviceID: DeviceID
    /// The connection that sent the request. It receives the reply instead of the push.
    package let connectionID: ConnectionID
    /// The largest page that the connection's door can send, in bytes of MessagePack. It is at
    /// least `maxReplyBytes`, so that a page can hold any object that a chat may store.
    package let replyBudget: Int

    package init(
        userID: UserID,
        sessionID: SessionID,
        deviceID: DeviceID,
        connectionID: ConnectionID,
        replyBudget: Int
    ) {
        self.userID = userID
        self.sessionID = sessionID
        self.deviceID = deviceID
        self.connectionID = connectionID
        self.replyBudget = replyBudget
    }
}

/// The client that makes a request, before or after login. Holds everything that a handler may know
/// about the client.
///
/// One object serves all requests until the session's state changes.
package final class Requester: Sendable {
    /// The client's user; nil before login.
    package let caller: Caller?
    /// The client's self-description in SESSION_INIT, and its address.
    package let origin: SessionOrigin
    package let capabilities: Capabilities
    /// The server's decision about each known feature that the client named; nil when the client
    /// named no feature.
    package let features: [SessionFeature]?
    /// The token with which this session logged in. SESSIONS_CLOSE returns this token to the
    /// client.
    package let token: String?
    /// The language of texts for people; nil when the client named no locale.
    package let language: RequestError.Language?

    package init(
        caller: Caller? = nil,
        origin: SessionOrigin,
        capabilities: Capabilities = [],
        features: [SessionFeature]? = nil,
        token: String? = nil,
        language: RequestError.Language? = nil
    ) {
        self.caller = caller
        self.origin = origin
        self.capabilities = capabilities
        self.features = features
        self.token = token
        self.language = language
    }

    /// Returns the caller, which must exist. Before login, the opcode table refuses all requests
    /// whose handlers need a caller.
    func requireCaller() -> Caller {
        guard let caller else {
            preconditionFailure("the opcode table lets only logged-in sessions ask this")
        }
        return caller
    }
}
