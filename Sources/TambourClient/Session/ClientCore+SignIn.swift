import TambourProtocol

/// Signing in and out.
extension ClientCore {
    /// Has `body` run when there is a connection on which somebody can sign in, or with why there is none.
    func whenGreeted(_ body: @escaping (Result<Void, ClientError>) -> Void) {
        if isElsewhere { return body(.failure(Self.isTaken)) }
        if isGreeted { return body(.success(())) }
        greetingWaiters.append(body)
    }

    /// Sends a request when the server has been greeted; `then` gets its answer.
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

    /// Why nobody signs in beside the process that is connected: that one would have to.
    private static let isTaken = ClientError.invalid(
        reason: "another process has this account open"
    )

    /// Stores the token of who has signed in and logs in with it.
    func signIn(token: String, phone: String?) throws(ClientError) {
        if isElsewhere { throw Self.isTaken }
        try attempt { tx in
            let held: String? = try tx.value(of: .token)
            try tx.set(.token, token)
            try tx.set(.phone, phone)
            if let held {
                // This connection logs in, or has, with the other one.
                if held != token, hasSession { try breakConnection(tx) }
            } else {
                signedIn()
                if isGreeted { try logIn(tx) }
            }
        }
    }

    /// Signs out: the server is told if it can be, and everything but the server's address is forgotten.
    func signOut() throws(ClientError) {
        try attempt { tx in
            try endSession(tx)
            try tx.signOut()
        }
    }

    /// Ends the session of an account that another process has signed out: nothing that was on its way belongs
    /// into the empty store.
    ///
    /// - Returns: whether there was one.
    func noticeSignOut(_ tx: StoreTransaction) throws -> Bool {
        guard isForSomebody, try tx.value(of: .token) as String? == nil else { return false }
        try endSession(tx)
        publish(.signedOut(reason: "another process of this account signed out"))
        return true
    }

    /// Forgets whose account it was, and has the server forget it, too.
    private func endSession(_ tx: StoreTransaction) throws {
        if hasSession {
            try giveUpRequests(tx)
            try closeSession(tx)
        }
        forgetWhatIsInMemory()
        whenCommitted { [self] in
            screens = [:]
            toldLooks = [:]
        }
        entitiesSignedOut()
        forgetPhotos()
        awaitsSignIn()
    }

    /// Tells the server that nobody is signed in here any more; until it knows, what it says is nobody's.
    func closeSession(_ tx: StoreTransaction) throws {
        isForeign = true
        isGreeted = false
        call(LogoutRequest()) { [self] answer, tx in
            if case .failure(.disconnected) = answer { return }
            // Who waits to sign in does so on the next connection.
            let waiters = greetingWaiters
            greetingWaiters = []
            try breakConnection(tx)
            greetingWaiters = waiters
        }
    }
}
