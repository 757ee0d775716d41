import TambourFraming
import TambourProtocol

/// The lifecycle of the connection.
extension ClientCore {
    /// Handles the beginning of a TLS handshake on the requested connection.
    package func connectionAccepted() {
        run { _ in self.link.accepted(nowMs: self.environment.nowMs()) }
    }

    /// Handles the opening of the requested connection.
    package func connectionOpened() {
        run { tx in
            self.wire.connected()
            self.link.opened(nowMs: self.environment.nowMs())
            try self.greet(tx)
        }
    }

    /// Handles the end of the connection, or a failure to open it.
    ///
    /// - Parameter failure: the reason why the connection could not be opened; nil if the
    ///   connection was open.
    package func connectionClosed(_ failure: ConnectionFailure? = nil) {
        run { tx in
            try self.notGreeted(failure ?? (self.wire.isSilent ? .closed : .otherProtocol), tx)
            self.link.closed(nowMs: self.environment.nowMs(), random: self.environment.random())
            try self.connectionLost(tx)
        }
    }

    /// Handles received bytes, in the order in which they were sent.
    package func connectionReceived(_ bytes: UnsafeRawBufferPointer) {
        guard state != .stopped else { return }
        link.heard(nowMs: environment.nowMs())
        let packets: [Packet]
        do {
            packets = try wire.receive(bytes)
        } catch {
            // After unreadable bytes, the start of the next packet is unknown, so close the
            // connection.
            run { tx in
                try self.notGreeted(.otherProtocol, tx)
                try self.breakConnection(tx)
            }
            return
        }
        guard !packets.isEmpty else { return scheduleWake() }
        run { tx in
            for packet in packets {
                // After a packet has ended the connection, ignore the remaining packets.
                guard self.link.isConnected else { break }
                try self.handle(packet, tx)
            }
        }
    }

    /// Closes the connection, for example after unreadable bytes or a missing reply. The link then
    /// reconnects.
    func breakConnection(_ tx: StoreTransaction) throws {
        link.closed(nowMs: environment.nowMs(), random: environment.random())
        host.disconnect()
        try connectionLost(tx)
    }

    /// Handles the loss of the connection: fails all requests and waiting callers.
    func connectionLost(_ tx: StoreTransaction) throws {
        forgetConnection()
        // If another process owns the connection, that process maintains presence.
        if try tx.value(of: .online) == owner {
            try tx.closeCommentThreads()
            try tx.set(.online, nil)
            try tx.forgetWhoIsOnline()
        }
        try giveUpRequests(tx)
        let waiters = greeting.takeWaiters()
        let error = greeting.error ?? .disconnected
        whenCommitted { for waiter in waiters { waiter(.failure(error)) } }
    }

    /// Records why there is no connection, unless the server has already accepted SESSION_INIT.
    func notGreeted(_ failure: ConnectionFailure, _ tx: StoreTransaction) throws {
        guard !greeting.isDone else { return }
        greeting.failed(.unreachable(server: try tx.value(of: .server) ?? "", failure))
    }

    /// The reason why the last attempt to connect failed; nil if the attempt succeeded, or if no
    /// attempt has ended.
    package var lastFailure: ConnectionFailure? {
        if case .unreachable(_, let failure)? = greeting.error { failure } else { nil }
    }

    /// Discards the state of the connection.
    func forgetConnection() {
        greeting.end()
        introductions.disconnected()
        comments.disconnected()
        life.disconnected()
        entities.disconnected()
        folders = FolderLink()
        wire.disconnected()
    }

    /// Fails all requests in flight. Late replies are ignored.
    func giveUpRequests(_ tx: StoreTransaction) throws {
        for entry in wire.takeAll() { try entry.answer(.failure(.disconnected), tx) }
    }

    /// Performs the actions of the link.
    func perform(_ actions: [LinkStateMachine.Action]) {
        for action in actions {
            switch action {
            case .connect:
                whenCommitted { [self] in
                    guard let stored = try? store.read({ try ($0.server(), $0.trust()) }),
                        let server = stored.0
                    else { return }
                    host.connect(to: server, trusting: stored.1)
                }
            case .disconnect: host.disconnect()
            case .ping: call(PingRequest()) { _, _ in }
            }
        }
    }

    // MARK: - Login

    /// Records a successful login.
    func loggedIn() {
        link.awaitsPerson = false
        link.loggedIn()
    }

    /// Records that no account is signed in. The connection then waits for a sign-in.
    func awaitsSignIn() {
        link.awaitsPerson = true
    }

    /// Records a sign-in on this connection.
    func signedIn() {
        link.awaitsPerson = false
    }

    /// Closes the connection for the pause that the server requested.
    func rest(forMs pause: Int64, _ tx: StoreTransaction) throws {
        perform(link.rest(forMs: pause, nowMs: environment.nowMs()))
        try connectionLost(tx)
    }

    /// Whether the connection is logged in to the account stored here.
    var isLive: Bool { link.phase == .live && !life.isForeign }

    /// Whether this process is connected for a signed-in account, or tries to connect.
    var isForSomebody: Bool { link.phase != .stopped && !link.awaitsPerson }

    /// Whether the server has logged in an account on this connection, or is about to log it in.
    var hasSession: Bool { link.isConnected && isForSomebody }
}
