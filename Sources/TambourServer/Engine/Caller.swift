package import TambourProtocol
package import TambourStore

/// Who asks: a logged-in user, the session it came by, the device behind it.
package struct Caller: Sendable {
    package let userID: UserID
    package let sessionID: SessionID
    package let deviceID: DeviceID
    /// The connection the request came by: it gets the reply, not the push.
    package let connectionID: ConnectionID

    package init(
        userID: UserID,
        sessionID: SessionID,
        deviceID: DeviceID,
        connectionID: ConnectionID
    ) {
        self.userID = userID
        self.sessionID = sessionID
        self.deviceID = deviceID
        self.connectionID = connectionID
    }
}

/// Everything a handler may know about the other end; one object for all requests of a state.
package final class Requester: Sendable {
    /// Nil before login.
    package let caller: Caller?
    /// What the client said of itself in SESSION_INIT.
    package let origin: SessionOrigin
    package let capabilities: Capabilities
    /// What the client was answered about the features it named; nil when it named none.
    package let features: [SessionFeature]?
    /// The token this session logged in with; SESSIONS_CLOSE gives it back.
    package let token: String?
    /// The language of texts for people; nil when it named none.
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

    /// The caller; a table of states that lets a stranger through to a handler is a broken one.
    func requireCaller() -> Caller {
        guard let caller else {
            preconditionFailure("the opcode table lets only logged-in sessions ask this")
        }
        return caller
    }
}
