import TambourProtocol

/// The whole client except threads, sockets and clocks. A driver makes one call at a time, and
/// performs the effects that the core requests from its host.
///
/// Every call is one transaction of the local store. If another process has signed out, the core
/// first handles the sign-out in a separate transaction. Nothing is sent before the commit:
///
///     bytes, time, an action ──▶ one transaction ──▶ commit ──▶ bytes, changes, the next alarm
///
/// A failed transaction changes nothing in memory either: the core rereads its state from the
/// store. If the store itself failed, the core also closes the connection. After the reconnect, the
/// server sends the lost data again.
///
/// The state belongs to the parts of the core, such as `tasks` and `histories`. Extensions of the
/// core call the functions of these parts.
package final class ClientCore {
    let store: LocalStore
    let environment: ClientEnvironment
    let options: ClientOptions
    unowned let host: any ClientHost

    var link: LinkStateMachine
    var wire = Wire()
    var greeting = Greeting()
    private var afterCommit: [() -> Void] = []
    private var dataVersion: Int64?
    var tasks = TaskQueue()
    var histories = Histories()
    var screens = Screens()
    private(set) lazy var entities = EntitySync(self)
    var life = SessionLife()
    private(set) lazy var photos = PhotoRuns(self)
    var subjects = Subjects()
    var introductions = Introductions()
    var folders = FolderLink()
    var comments = CommentReading()
    /// Identifies this run of the process to other processes that share the store.
    let owner: String
    /// Whether another process that shares the store is connected.
    package var isElsewhere = false
    package private(set) var state = ConnectionState.stopped

    /// - Parameter host: must outlive the core.
    package init(
        store: LocalStore,
        host: any ClientHost,
        environment: ClientEnvironment,
        options: ClientOptions = ClientOptions()
    ) {
        self.store = store
        self.host = host
        self.environment = environment
        self.options = options
        owner = String(environment.random(), radix: 36)
        link = LinkStateMachine(policy: options.link)
    }

    /// Bytes sent and received since the core was created.
    package var bytesSent: Int { wire.bytesSent }
    package var bytesReceived: Int { wire.bytesReceived }

    /// The remaining pause before the next attempt to connect; nil while the link is not pausing.
    package var pauseBeforeRetryMs: Int64? {
        guard case .waiting(let until) = link.phase else { return nil }
        return max(0, until - environment.nowMs())
    }

    // MARK: - Lifecycle

    /// Connects, and stays connected from now on.
    package func start() {
        run { tx in
            self.isElsewhere = false
            self.link.awaitsPerson = try !tx.isSignedIn()
            // The process that was last online may have been killed.
            try tx.set(.online, nil)
            try tx.forgetWhoIsOnline()
            try tx.closeCommentThreads()
            try self.adoptTasks(tx)
            self.perform(self.link.start(nowMs: self.environment.nowMs()))
        }
    }

    /// Closes the connection and does not reconnect.
    package func stop() {
        run { tx in
            self.perform(self.link.stop())
            try self.connectionLost(tx)
            try self.photos.releaseAll(tx)
        }
    }

    /// Handles a change of network.
    package func networkChanged() {
        run { _ in self.perform(self.link.networkChanged(nowMs: self.environment.nowMs())) }
    }

    /// Reconnects sooner, because the user waits for the connection.
    package func hurry() {
        run { _ in self.perform(self.link.hurry(nowMs: self.environment.nowMs())) }
    }

    /// Checks whether another process that shares the store has written.
    package func noticeOthers() {
        guard let version = store.dataVersion(), version != dataVersion else { return }
        run { _ in }
    }

    /// Handles the alarm of `wake(afterMs:)`. May be called at other times too.
    package func wake() {
        run { tx in
            let now = self.environment.nowMs()
            for overdue in self.wire.takeOverdue(nowMs: now) {
                try overdue.answer(.failure(.timedOut), tx)
            }
            let isSecuring = self.link.isSecuring
            let actions = self.link.tick(nowMs: now, random: self.environment.random())
            self.perform(actions)
            if actions.contains(.disconnect) {
                try self.notGreeted(isSecuring ? .handshakeTimedOut : .noAnswer, tx)
                try self.connectionLost(tx)
            }
        }
    }

    // MARK: - Transactions

    /// Runs `body` in one transaction. After the commit, runs the deferred steps.
    ///
    /// - Returns: nil when the transaction failed and nothing has changed.
    @discardableResult
    func run<Value>(_ body: @escaping (StoreTransaction) throws -> Value) -> Value? {
        do {
            return try attempt(body)
        } catch {
            return nil
        }
    }

    /// Runs `body` in one transaction. After the commit, runs the deferred steps.
    ///
    /// - Throws: an error of `body`, or `ClientError.store`. In both cases nothing has changed.
    func attempt<Value>(_ body: (StoreTransaction) throws -> Value) throws(ClientError) -> Value {
        while true {
            // Another process may have signed out. The core ends that account's session in a
            // separate transaction. If `body` throws, its rollback then does not undo the end of
            // the session.
            let value: Value? = try transaction { tx in
                try noticeOthers(tx) && noticeSignOut(tx) ? nil : try body(tx)
            }
            if let value { return value }
        }
    }

    private func transaction<Value>(
        _ body: (StoreTransaction) throws -> Value
    ) throws(ClientError) -> Value {
        let (value, changes, learned): (Value, ChangeSet, Set<Subject>)
        let (knownVersion, open, waiting) = (dataVersion, wire.requests, greeting)
        do {
            (value, changes, learned) = try store.write { tx in
                let value = try body(tx)
                try finish(tx)
                try tx.separateComments()
                photos.remove(tx.endedPhotos)
                return (value, tx.changes, tx.allLearned)
            }
        } catch {
            afterCommit = []
            dataVersion = knownVersion
            wire.rollBack(to: open)
            greeting.rollBack(to: waiting)
            forgetWhatIsInMemory()
            if case .store(let reason) = error {
                host.publish(.storeFailed(reason: reason))
                if link.phase != .stopped { host.disconnect() }
                link.closed(nowMs: environment.nowMs(), random: environment.random())
                forgetConnection()
                for entry in wire.takeAll() { entry.abandoned?(error) }
                for waiter in greeting.takeWaiters() { waiter(.failure(error)) }
                publishState()
                scheduleWake()
            }
            throw error
        }
        subjects.committed(learned)
        let todo = afterCommit
        afterCommit = []
        for step in todo { step() }
        let bytes = wire.takeOutgoing()
        if !bytes.isEmpty { host.send(bytes) }
        if !changes.isEmpty { host.publish(changes) }
        publishState()
        scheduleWake()
        return value
    }

    /// Runs at the end of every transaction: starts the work that is now possible.
    private func finish(_ tx: StoreTransaction) throws {
        guard link.phase != .stopped else { return }
        if tx.changes.everything { try serveOthers(tx) }
        try readHistories(of: tx.changes, tx)
        try askAboutStrangers(tx)
        try runTasks(tx)
        try entities.run(tx)
    }

    /// Discards the state in memory if another process has written. The state is reread when it is
    /// needed.
    ///
    /// - Returns: whether another process has written.
    private func noticeOthers(_ tx: StoreTransaction) throws -> Bool {
        let version = try tx.dataVersion()
        defer { dataVersion = version }
        guard version != dataVersion else { return false }
        forgetWhatIsInMemory()
        guard dataVersion != nil else { return false }
        tx.changes.everything = true
        return true
    }

    func forgetWhatIsInMemory() {
        tasks.forget()
        histories.forgetAll()
        entities.forget()
    }

    /// Runs `step` after the current transaction commits.
    func whenCommitted(_ step: @escaping () -> Void) {
        afterCommit.append(step)
    }

    func publish(_ event: ClientEvent) {
        afterCommit.append { [self] in host.publish(event) }
    }

    func scheduleWake() {
        let now = environment.nowMs()
        let tasksDue = link.phase == .stopped ? nil : tasksWakeAfterMs.map { now + $0 }
        let due = [link.nextWakeMs, wire.requests.nextDueMs, tasksDue].compactMap { $0 }.min()
        host.wake(afterMs: due.map { max(0, $0 - now) })
    }

    private func publishState() {
        let now: ConnectionState =
            switch link.phase {
            case .stopped: .stopped
            case .waiting, .connecting, .securing: .connecting(attempt: max(link.attempts, 1))
            case .open: link.awaitsPerson ? .signedOut : .syncing
            case .live where life.isForeign: link.awaitsPerson ? .signedOut : .syncing
            case .live: .online
            }
        guard now != state else { return }
        state = now
        host.publish(now)
    }
}
