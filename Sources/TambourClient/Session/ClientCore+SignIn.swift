import TambourProtocol

/// Signing in and out.
extension ClientCore {
    /// Has `body` run when there is a connection on which somebody can sign in, or with why there is none.
    func whenGreeted(_ body: @escaping (Result<Void, ClientError>) -> Void) {
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

    /// Stores the token of who has signed in and logs in with it.
    func signIn(token: String, phone: String?) throws(ClientError) {
        try attempt { tx in
            try tx.set(.token, token)
            try tx.set(.phone, phone)
            signedIn()
            if isGreeted { try logIn(tx) }
        }
    }

    /// Signs out: the server is told if it can be, and everything but the server's address is forgotten.
    func signOut() throws(ClientError) {
        try attempt { tx in
            if isLive { call(LogoutRequest()) { _, _ in } }
            try tx.signOut()
            tasks = nil
            histories = [:]
            screens = [:]
            toldLooks = [:]
            entitiesSignedOut()
            forgetPhotos()
            awaitsSignIn()
        }
    }
}
