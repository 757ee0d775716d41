import TambourProtocol

/// Signing in and out. These calls wait for the server.
extension Client {
    /// A requested login code.
    public struct CodeRequest: Sendable {
        /// The number of digits of the code.
        public let digits: Int
        let phone: String
        let token: String
    }

    /// The step that follows a correct code.
    public enum SignInStep: Sendable {
        /// The account is signed in.
        case done
        /// The phone number is new: the user has to enter a name.
        case nameWanted(Registration)
        /// The account also has a password, which the user has to enter.
        case passwordWanted(PasswordRequest)
    }

    /// An account that is about to be created.
    public struct Registration: Sendable {
        let phone: String
        let token: String
    }

    /// A request for the account's password.
    public struct PasswordRequest: Sendable {
        /// The hint that the account's owner stored.
        public let hint: String?
        /// Nil after a sign-in that another device approved.
        let phone: String?
        let track: String
    }

    /// Who may create an account on a server. The owner of an existing account can always sign in.
    public enum RegistrationPolicy: Hashable, Sendable {
        case open
        /// People with an invitation, or with an invited phone.
        case invite
        /// Nobody.
        case closed

        /// Converts the policy that a server named. The result is `open` if the server named no
        /// policy, as older servers do, or an unknown policy.
        init(_ mode: RegistrationMode?) {
            switch mode {
            case .invite: self = .invite
            case .closed: self = .closed
            case nil, .open, .other: self = .open
            }
        }
    }

    /// Returns who may create an account. Waits for the server.
    public func registrationPolicy() async throws(ClientError) -> RegistrationPolicy {
        let result: Result<RegistrationPolicy, ClientError> = await withCheckedContinuation {
            continuation in
            perform { core in
                core.whenGreeted { greeted in
                    continuation.resume(returning: greeted.map { core.greeting.registration })
                }
            }
        }
        return try result.get()
    }

    /// An invitation with which another person can register on the server.
    public struct Invitation: Hashable, Sendable {
        /// The code that the other person passes to ``Client/requestCode(phone:invitation:)``.
        public let code: String
        /// When the invitation expires, in Unix milliseconds.
        public let expiresMs: Int64
        /// How many more invitations the user may make now.
        public let left: Int
    }

    /// Makes an invitation for one person. Waits for the server, which shows the code only once.
    ///
    /// - Throws: `ClientError.refused` with `not.allowed` when users may not invite, and with
    ///   `too.many.requests` when the user has made as many as the server allows.
    public func makeInvitation() async throws(ClientError) -> Invitation {
        let reply = try await askLoggedIn(InvitationCreateRequest())
        return Invitation(
            code: reply.invitation,
            expiresMs: reply.expires,
            left: Int(count: reply.left)
        )
    }

    /// Requests a login code, which the server sends to the owner of the phone outside of this
    /// protocol.
    ///
    /// If registration is restricted, a phone without an account and without an invitation gets no
    /// code. The server reports no error, because an error would reveal who has an account.
    /// - Parameters:
    ///   - phone: 5 to 15 digits, with or without a plus.
    ///   - invitation: the code of an invitation; nil for an existing account, an invited phone, or
    ///     an open server.
    /// - Throws: `ClientError.invalid` when `invitation` is malformed.
    public func requestCode(
        phone: String,
        invitation: String? = nil
    ) async throws(ClientError) -> CodeRequest {
        if let invitation, InvitationCode(invitation) == nil {
            throw .invalid(
                reason:
                    "\"\(invitation)\" is not an invitation: it has 16 letters and digits, such as K7QF-9M2X-4TBW-8HRN"
            )
        }
        let reply = try await ask(
            AuthRequestRequest(phone: phone, type: "START_AUTH", invitation: invitation)
        )
        return CodeRequest(
            digits: Int(count: reply.codeLength),
            phone: phone,
            token: reply.token
        )
    }

    /// Signs in with a code.
    public func signIn(
        code: String,
        for request: CodeRequest
    ) async throws(ClientError) -> SignInStep {
        let reply = try await ask(
            AuthCodeRequest(
                token: request.token,
                verifyCode: code,
                authTokenType: "CHECK_CODE"
            )
        )
        if let step = try await signIn(
            reply.tokenAttrs,
            reply.passwordChallenge,
            phone: request.phone
        ) {
            return step
        }
        guard let token = reply.tokenAttrs.register?.token else {
            throw .unreadable(reason: "neither a login nor a registration")
        }
        return .nameWanted(Registration(phone: request.phone, token: token))
    }

    /// Signs in with the login token of a reply, or returns the request for a password if the reply
    /// contains a challenge.
    ///
    /// - Returns: The step that follows; nil when the reply contains no login token and no
    ///   challenge.
    func signIn(
        _ tokens: TokenAttrs,
        _ challenge: PasswordChallenge?,
        phone: String?
    ) async throws(ClientError) -> SignInStep? {
        if let challenge {
            return .passwordWanted(
                PasswordRequest(
                    hint: challenge.hint.map { "\($0)" },
                    phone: phone,
                    track: challenge.trackID
                )
            )
        }
        guard let token = tokens.login?.token else { return nil }
        try await signIn(token: token, phone: phone)
        return .done
    }

    /// Creates the account for a new phone number, and signs in.
    ///
    /// - Throws: `ClientError.invalid` for a name that the server rejects, such as one that is too
    ///   long; `ClientError.refused` with `registration.closed` when the invitation is no longer
    ///   valid.
    public func register(
        _ registration: Registration,
        firstName: String,
        lastName: String? = nil
    ) async throws(ClientError) {
        let reply: AuthConfirmReply
        do {
            reply = try await ask(
                AuthConfirmRequest(
                    firstName: Text(firstName),
                    lastName: lastName.map { Text($0) },
                    token: registration.token,
                    tokenType: "REGISTER"
                )
            )
        } catch  where error.code == .protoPayload {
            throw .invalid(reason: "the server does not take this name")
        }
        try await signIn(token: reply.token, phone: registration.phone)
    }

    /// Signs in with the password that the account requires in addition to the code.
    public func signIn(
        password: String,
        for request: PasswordRequest
    ) async throws(ClientError) {
        let reply = try await ask(
            AuthLoginCheckPasswordRequest(trackID: request.track, password: password)
        )
        guard let token = reply.tokenAttrs.login?.token else {
            throw .unreadable(reason: "no login")
        }
        try await signIn(token: token, phone: request.phone)
    }

    /// Signs in with a token, for example one printed by an operator's `admin users create`.
    public func signIn(token: String, phone: String? = nil) async throws(ClientError) {
        try await call { (core: ClientCore) throws(ClientError) in
            try core.signIn(token: token, phone: phone)
        }
    }

    /// Signs out. Erases all data of the account on this device. Also signs out the account's other
    /// processes on this device.
    public func signOut() async throws(ClientError) {
        try await call { (core: ClientCore) throws(ClientError) in try core.signOut() }
    }

    /// Waits until this client, or another process of this account, is connected and logged in.
    ///
    /// - Returns: false when no account is signed in, or the client was stopped.
    public func waitUntilOnline() async -> Bool {
        let changes = changes()
        for await state in states() {
            switch state {
            case .online: return true
            case .signedOut: return false
            case .stopped, .connecting, .syncing: continue
            case .elsewhere:
                if isOtherOnline { return true }
                for await _ in changes {
                    if isOtherOnline { return true }
                    if (try? isSignedIn()) == false { return false }
                    if self.state != .elsewhere { break }
                }
            }
        }
        return false
    }

    /// Whether the process that owns the connection is online.
    private var isOtherOnline: Bool {
        (try? store.read { try $0.value(of: .online) as String? }) != nil
    }

    /// Waits until all changes have arrived and all actions are done or refused.
    ///
    /// - Returns: false when this takes longer than `limit`, no account is signed in, or the client
    ///   was stopped.
    public func settle(within limit: Duration) async -> Bool {
        let changes = changes()
        return await withTaskGroup(of: Bool?.self) { group in
            group.addTask {
                guard await self.waitUntilOnline() else { return false }
                if (try? self.queueLength()) == 0 { return true }
                for await change in changes where change.queue || change.everything {
                    if (try? self.queueLength()) == 0 { return true }
                }
                return false
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first ?? false
        }
    }
}
