import TambourProtocol

/// Signing in and out.
extension ClientCore {
    /// Runs `body` when a connection is ready for a sign-in, or passes it the error that prevents
    /// the sign-in.
    func whenGreeted(_ body: @escaping (Result<Void, ClientError>) -> Void) {
        if isElsewhere { return body(.failure(Self.isTaken)) }
        if greeting.isDone { return body(.success(())) }
        greeting.wait(body)
    }

    /// Sends a request after the server has accepted the connection; `then` receives the reply.
    func ask<Request: WireRequest & Sendable>(
        _ request: Request,
        then: @escaping (Result<Request.Reply, ClientError>) -> Void
    ) {
        whenGreeted { [self] greeted in
            if case .failure(let error) = greeted { return then(.failure(error)) }
            let sent: Void? = run { [self] _ in
                call(request, abandoned: { then(.failure($0)) }) { [self] answer, _ in
                    whenCommitted { then(answer) }
                }
            }
            if sent == nil { then(.failure(.disconnected)) }
        }
    }

    /// The error of a sign-in while another process owns the connection: only that process could
    /// sign in.
    private static let isTaken = ClientError.invalid(
        reason: "another process has this account open"
    )

    /// Stores the token of a sign-in, and logs in with it.
    func signIn(token: String, phone: String?) throws(ClientError) {
        if isElsewhere { throw Self.isTaken }
        try attempt { tx in
            let held: String? = try tx.value(of: .token)
            try tx.set(.token, token)
            try tx.set(.phone, phone)
            if let held {
                // The login of this connection, done or in flight, uses the previous token.
                // Therefore reconnect.
                if held != token, hasSession { try breakConnection(tx) }
            } else {
                signedIn()
                if greeting.isDone { try logIn(tx) }
            }
        }
    }

    /// Signs out: notifies the server if there is a connection, and deletes everything except the
    /// server's address, its trust and the installation id.
    func signOut() throws(ClientError) {
        try attempt { tx in
            try endSession(tx)
            try tx.signOut()
        }
    }

    /// Ends the session of an account that another process has signed out. Replies in flight must
    /// not reach the empty store.
    ///
    /// - Returns: whether there was a session.
    func noticeSignOut(_ tx: StoreTransaction) throws -> Bool {
        guard isForSomebody, try !tx.isSignedIn() else { return false }
        try endSession(tx)
        publish(.signedOut(reason: "another process of this account signed out"))
        return true
    }

    /// Discards the account's state in memory, and logs out on the server.
    private func endSession(_ tx: StoreTransaction) throws {
        if hasSession {
            try giveUpRequests(tx)
            try closeSession(tx)
        }
        forgetWhatIsInMemory()
        whenCommitted { [self] in screens.forgetAll() }
        life.signedOut()
        entities.signedOut()
        folders = FolderLink()
        photos.forgetAll()
        awaitsSignIn()
    }

    /// Logs out on the server. Ignores pushes until the reply arrives, then closes the connection.
    func closeSession(_ tx: StoreTransaction) throws {
        life.logsOut()
        greeting.end()
        call(LogoutRequest()) { [self] answer, tx in
            if case .failure(.disconnected) = answer { return }
            // Callers that wait to sign in continue on the next connection.
            let waiters = greeting.takeWaiters()
            try breakConnection(tx)
            greeting.putBack(waiters)
        }
    }
}
