import TambourProtocol

/// The devices that are signed in to the account.
extension Client {
    public struct SignedInDevice: Hashable, Sendable {
        /// The id of the session; nil if the server does not name it.
        public let id: Int64?
        /// App and version.
        public let client: String
        /// Device and system.
        public let device: String
        /// The address of the device's last connection.
        public let address: String
        /// The time of the device's last activity, in Unix milliseconds.
        public let seenMs: Int64
        /// Whether this entry describes the calling device.
        public let isCurrent: Bool
    }

    /// Returns all signed-in devices, this device first. Waits for the server.
    public func sessions() async throws(ClientError) -> [SignedInDevice] {
        try await askLoggedIn(SessionsInfoRequest()).sessions.map {
            SignedInDevice(
                id: $0.id,
                client: $0.client,
                device: $0.info,
                address: $0.location,
                seenMs: $0.time,
                isCurrent: $0.current
            )
        }
    }

    /// Signs out all other devices. Waits for the server.
    public func closeOtherSessions() async throws(ClientError) {
        try await closeSessions(SessionsCloseRequest())
    }

    /// Signs out another device. Has no effect if that device has already signed out. Waits for the
    /// server.
    public func closeSession(_ id: Int64) async throws(ClientError) {
        try await closeSessions(SessionsCloseRequest(id: id))
    }

    private func closeSessions(_ request: SessionsCloseRequest) async throws(ClientError) {
        let reply = try await askLoggedIn(request)
        guard let token = reply.token else { return }
        try await wish { _, tx in try tx.set(.token, token) }
    }

    /// Sends a request that the server accepts only after login. Waits for the login. While another
    /// process is connected, that process sends the request.
    func askLoggedIn<Request: WireRequest & Sendable>(
        _ request: Request
    ) async throws(ClientError) -> Request.Reply where Request.Reply: Sendable {
        for await state in states() {
            switch state {
            case .online: return try await ask(request)
            case .signedOut: throw .signedOut
            case .elsewhere: return try await askByOther(request)
            case .connecting(let attempt) where attempt > 1:
                throw try await whyNotConnected()
            case .stopped, .connecting, .syncing: continue
            }
        }
        throw .disconnected
    }

    private func whyNotConnected() async throws(ClientError) -> ClientError {
        try await call { core in core.greeting.error } ?? .disconnected
    }
}
