import TambourProtocol

/// Signing in without a code: this device shows a link as a QR code, and a device that is signed in
/// approves it with ``Client/approveSignIn(_:)``.
extension Client {
    public struct SignInLink: Sendable {
        /// The text of the QR code.
        public let text: String
        /// How long another device can approve the link.
        public let lifetime: Duration
        /// The server's id of this sign-in. Only the device that shows the link knows it.
        let track: String
        let pollingInterval: Duration
        let end: ContinuousClock.Instant
    }

    /// Requests a link. Waits for the server.
    public func makeSignInLink() async throws(ClientError) -> SignInLink {
        let reply = try await ask(GetQrRequest())
        let lifetime = Duration.milliseconds(reply.ttl)
        return SignInLink(
            text: reply.qrLink,
            lifetime: lifetime,
            track: reply.trackID,
            pollingInterval: max(.milliseconds(reply.pollingInterval), Self.shortestPoll),
            end: .now + lifetime
        )
    }

    /// Waits until a device has approved the link, and signs in. A lost connection does not end the
    /// wait.
    ///
    /// - Returns: `done`, or `passwordWanted` if the account has a password.
    /// - Throws: `ClientError.timedOut` if nobody has approved the link during its lifetime;
    ///   `ClientError.cancelled` if the task was cancelled.
    public func signIn(with link: SignInLink) async throws(ClientError) -> SignInStep {
        while !(try await isApproved(link)) {
            do {
                try await Task.sleep(for: link.pollingInterval)
            } catch {
                throw .cancelled
            }
        }
        let reply = try await ask(LoginByQrRequest(trackID: link.track))
        let step = try await signIn(reply.tokenAttrs, reply.passwordChallenge, phone: nil)
        guard let step else { throw .unreadable(reason: "neither a login nor a challenge") }
        return step
    }

    /// Protects the server from a polling interval of zero.
    private static let shortestPoll = Duration.milliseconds(100)

    private func isApproved(_ link: SignInLink) async throws(ClientError) -> Bool {
        guard .now < link.end else { throw .timedOut }
        do {
            return try await ask(GetQrStatusRequest(trackID: link.track)).status.loginAvailable
        } catch {
            switch error {
            case .disconnected, .unreachable, .timedOut: return false
            case _ where error.code == .trackNotFound: throw .timedOut
            default: throw error
            }
        }
    }
}
