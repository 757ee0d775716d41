import TambourFraming
import TambourProtocol

/// The whole client except threads, sockets and clocks. A driver calls it, one call at a time, and
/// carries out what it asks of its host.
///
/// Every call is one transaction of the local store. It is preceded by another one when a different
/// process has signed out. Nothing is sent before the commit:
///
///     bytes, time, an action ──▶ one transaction ──▶ commit ──▶ bytes, changes, the next alarm
///
/// A failed transaction changes nothing in memory either. The core reads its state from the store
/// again and closes the connection, so that the server repeats what was lost.
package final class ClientCore {
    let store: LocalStore
    let environment: ClientEnvironment
    let options: ClientOptions
    unowned let host: any ClientHost

    private var link: LinkStateMachine
    private var decoder: FrameDecoder
    private var received: [UInt8] = []
    private(set) var requests = RequestTable()
    private var sentAt: [UInt16: Int64] = [:]
    /// The bytes to send when the current transaction commits.
    private var outgoing: [UInt8] = []
    private var afterCommit: [() -> Void] = []
    private var attempt = 0
    private var dataVersion: Int64?
    /// The tasks as stored; nil until they are needed.
    var tasks: TaskScheduler?
    var clientIDs = ClientIDGenerator()
    /// The histories of chats that were used, as stored.
    var histories: [ChatID: ChatHistory] = [:]
    var screens: [Looker: Screen] = [:]
    /// The entities as stored; nil until they are used.
    var entities: LocalEntities?
    var entityLink = EntityLink()
    /// Counts connections and sign-outs. An answer is valid only in the life in which it was
    /// requested.
    var life = 0
    /// The runs of photo tasks that the host is working on.
    var photoRuns: Set<TaskRun> = []
    let photos: PhotoFolder?
    /// The number of transactions committed since the core was made, and for each subject the last
    /// of them in which the core learned something about it.
    private(set) var transactions = 0
    private(set) var learnedAt: [Subject: Int] = [:]
    /// The values of `transactions` and of the last revision when the task that is being answered
    /// was sent.
    var taskAsked: (transactions: Int, revision: Int64) = (0, 0)
    /// Chats that the account had left when their settings were requested.
    var settingsInDoubt: Set<ChatID> = []
    /// People whose details were requested on this connection.
    var introduced: Set<UserID> = []
    /// The number of history pages requested.
    package internal(set) var historyRequests = 0
    /// Identifies this life of this process to the others that share the store.
    let owner: String
    /// Whether the connection is logged in to an account that is not, or no longer, held here.
    var isForeign = false
    /// Whether another process that shares the store is connected.
    package var isElsewhere = false
    /// The looks that this process last wrote down for the connected one.
    var toldLooks: [ChatID: ToldLook] = [:]
    /// Whether the server has answered SESSION_INIT on this connection.
    var isGreeted = false
    /// Why the last connection ended before the server answered SESSION_INIT.
    private(set) var greetingError: ClientError?
    /// Callbacks that wait for a connection on which somebody can sign in.
    var greetingWaiters: [(Result<Void, ClientError>) -> Void] = []
    package private(set) var state = ConnectionState.stopped
    /// Bytes sent and received since the core was made.
    package private(set) var bytesSent = 0
    package private(set) var bytesReceived = 0

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
        photos = PhotoFolder(store: store.path)
        link = LinkStateMachine(policy: options.link)
        decoder = Self.newDecoder()
    }

    private static func newDecoder() -> FrameDecoder {
        var decoder = FrameDecoder(limits: .standard)
        // The client requested what the server sends, so the limits for strangers do not apply.
        decoder.authenticated = true
        return decoder
    }

    // MARK: - Life

    /// Connects, and stays connected from now on.
    package func start() {
        run { tx in
            self.isElsewhere = false
            self.link.awaitsPerson = try !tx.isSignedIn()
            // The process that was online before may have been killed.
            try tx.set(.online, nil)
            try tx.forgetWhoIsOnline()
            try self.adoptTasks(tx)
            self.perform(self.link.start(nowMs: self.environment.nowMs()))
        }
    }

    /// Closes the connection, and does not reconnect.
    package func stop() {
        run { tx in
            self.perform(self.link.stop())
            try self.connectionLost(tx)
            try self.releasePhotoRuns(tx)
        }
    }

    /// Handles a change of network.
    package func networkChanged() {
        run { _ in self.perform(self.link.networkChanged(nowMs: self.environment.nowMs())) }
    }

    /// Reconnects sooner, because somebody waits for the connection.
    package func hurry() {
        run { _ in self.perform(self.link.hurry(nowMs: self.environment.nowMs())) }
    }

    /// Checks whether another process that shares the store has written.
    package func noticeOthers() {
        guard let version = store.dataVersion(), version != dataVersion else { return }
        run { _ in }
    }

    /// Handles the alarm of `wake(afterMs:)`. It may also be called at other times.
    package func wake() {
        run { tx in
            let now = self.environment.nowMs()
            for overdue in self.requests.takeOverdue(nowMs: now) {
                try overdue.answer(.failure(.timedOut), tx)
            }
            let actions = self.link.tick(nowMs: now, random: self.environment.random())
            self.perform(actions)
            if actions.contains(.disconnect) {
                try self.notGreeted(.noAnswer, tx)
                try self.connectionLost(tx)
            }
        }
    }

    // MARK: - Connection

    /// Handles the opening of the requested connection.
    package func connectionOpened() {
        run { tx in
            self.received = []
            self.decoder = Self.newDecoder()
            self.link.opened(nowMs: self.environment.nowMs())
            try self.greet(tx)
        }
    }

    /// Handles the end of the connection, or a failure to open it.
    ///
    /// - Parameter failure: why it could not be opened.
    package func connectionClosed(_ failure: ConnectionFailure? = nil) {
        run { tx in
            let isSilent = self.received.isEmpty
            try self.notGreeted(failure ?? (isSilent ? .closed : .otherProtocol), tx)
            self.link.closed(nowMs: self.environment.nowMs(), random: self.environment.random())
            try self.connectionLost(tx)
        }
    }

    /// Handles received bytes, in the order in which they were sent.
    package func connectionReceived(_ bytes: UnsafeRawBufferPointer) {
        guard state != .stopped else { return }
        link.heard(nowMs: environment.nowMs())
        bytesReceived += bytes.count
        received += bytes
        var packets: [Packet] = []
        do {
            packets = try cutPackets()
        } catch {
            // The start of the next packet is unknown.
            run { tx in
                try self.notGreeted(.otherProtocol, tx)
                try self.breakConnection(tx)
            }
            return
        }
        guard !packets.isEmpty else { return scheduleWake() }
        run { tx in
            for packet in packets {
                // After a packet has ended the connection, ignore the rest.
                guard self.link.isConnected else { break }
                try self.handle(packet, tx)
            }
        }
    }

    private func cutPackets() throws -> [Packet] {
        var packets: [Packet] = []
        var offset = 0
        try received.withUnsafeBytes { bytes in
            while let frame = try decoder.next(in: bytes, from: &offset) {
                packets.append(try frame.packet(limits: .standard))
            }
        }
        received.removeFirst(offset)
        return packets
    }

    /// Reconnects after unreadable bytes or a missing answer.
    func breakConnection(_ tx: StoreTransaction) throws {
        link.closed(nowMs: environment.nowMs(), random: environment.random())
        host.disconnect()
        try connectionLost(tx)
    }

    private func connectionLost(_ tx: StoreTransaction) throws {
        forgetConnection()
        // When another process owns the connection, that process says who is online.
        if try tx.value(of: .online) == owner {
            try tx.set(.online, nil)
            try tx.forgetWhoIsOnline()
        }
        try giveUpRequests(tx)
        let waiters = greetingWaiters
        greetingWaiters = []
        let error = greetingError ?? .disconnected
        whenCommitted { for waiter in waiters { waiter(.failure(error)) } }
    }

    /// Notes why there is no connection, if the server has not answered SESSION_INIT.
    func notGreeted(_ failure: ConnectionFailure, _ tx: StoreTransaction) throws {
        if !isGreeted {
            greetingError = .unreachable(server: try tx.value(of: .server) ?? "", failure)
        }
    }

    /// Notes the server's answer to SESSION_INIT: nil if it accepted the client.
    func greeted(_ error: ClientError?) {
        isGreeted = error == nil
        greetingError = error
    }

    /// Discards the state of the connection.
    private func forgetConnection() {
        isGreeted = false
        isForeign = false
        introduced = []
        entitiesDisconnected()
        received = []
        outgoing = []
    }

    /// Fails all requests in flight. Their answers will be ignored.
    func giveUpRequests(_ tx: StoreTransaction) throws {
        for entry in requests.takeAll() { try entry.answer(.failure(.disconnected), tx) }
        sentAt = [:]
    }

    private func perform(_ actions: [LinkStateMachine.Action]) {
        for action in actions {
            switch action {
            case .connect:
                attempt += 1
                afterCommit.append { [self] in
                    guard
                        let server = try? store.read({ try $0.value(of: .server) as String? })
                    else { return }
                    host.connect(to: server)
                }
            case .disconnect: host.disconnect()
            case .ping: call(PingRequest()) { _, _ in }
            }
        }
    }

    private func handle(_ packet: Packet, _ tx: StoreTransaction) throws {
        let header = packet.header
        let opcode = Opcode(rawValue: header.opcode)
        if header.command == PacketCommand.request.rawValue {
            tap(.received, "push", header)
            if isForeign { return }
            return try push(opcode, packet.payload, tx)
        }
        tap(.received, header.command == PacketCommand.ok.rawValue ? "reply" : "error", header)
        sentAt[header.sequence] = nil
        guard let entry = requests.take(header.sequence, opcode) else { return }
        if header.command == PacketCommand.ok.rawValue {
            return try entry.answer(.success(packet.payload), tx)
        }
        let refusal = (try? ErrorReply.decode(packet.payload, limits: .standard)).map {
            ClientError($0)
        }
        try entry.answer(.failure(refusal ?? .unreadable(reason: "an error without a code")), tx)
    }

    // MARK: - Transactions

    /// Runs `body` in one transaction, then the steps it left for after the commit.
    ///
    /// - Returns: nil when the transaction failed; then nothing has changed.
    @discardableResult
    func run<Value>(_ body: @escaping (StoreTransaction) throws -> Value) -> Value? {
        do {
            return try attempt(body)
        } catch {
            return nil
        }
    }

    /// Runs `body` in one transaction, then the steps it left for after the commit.
    ///
    /// - Throws: what `body` throws, or `ClientError.store`; then nothing has changed.
    func attempt<Value>(_ body: (StoreTransaction) throws -> Value) throws(ClientError) -> Value {
        while true {
            // Another process may have signed out. Ending that account's session is a transaction
            // of its own, so that a `body` that throws does not roll it back.
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
        let (knownVersion, open, waiting) = (dataVersion, requests, greetingWaiters)
        do {
            (value, changes, learned) = try store.write { tx in
                let value = try body(tx)
                try finish(tx)
                removePhotos(tx.endedPhotos)
                return (value, tx.changes, tx.allLearned)
            }
        } catch {
            outgoing = []
            afterCommit = []
            dataVersion = knownVersion
            // Earlier requests are still in flight; those of this transaction were never sent.
            requests = open
            greetingWaiters = waiting
            forgetWhatIsInMemory()
            if case .store(let reason) = error {
                host.publish(.storeFailed(reason: reason))
                if link.phase != .stopped { host.disconnect() }
                link.closed(nowMs: environment.nowMs(), random: environment.random())
                forgetConnection()
                for entry in requests.takeAll() { entry.abandoned?(error) }
                for waiter in greetingWaiters { waiter(.failure(error)) }
                greetingWaiters = []
                publishState()
                scheduleWake()
            }
            throw error
        }
        transactions += 1
        for subject in learned { learnedAt[subject] = transactions }
        let todo = afterCommit
        afterCommit = []
        for step in todo { step() }
        if !outgoing.isEmpty {
            bytesSent += outgoing.count
            host.send(outgoing)
            outgoing = []
        }
        if !changes.isEmpty { host.publish(changes) }
        publishState()
        scheduleWake()
        return value
    }

    /// Ends every transaction: starts the work that can start now.
    private func finish(_ tx: StoreTransaction) throws {
        guard link.phase != .stopped else { return }
        if tx.changes.everything { try serveOthers(tx) }
        try readHistories(of: tx.changes, tx)
        try askAboutStrangers(tx)
        try runTasks(tx)
        try runEntities(tx)
    }

    /// Discards the state in memory if another process has written; it is read again when needed.
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
        tasks = nil
        histories = [:]
        entities = nil
    }

    /// Runs `step` after the current transaction commits.
    func whenCommitted(_ step: @escaping () -> Void) {
        afterCommit.append(step)
    }

    func publish(_ event: ClientEvent) {
        afterCommit.append { [self] in host.publish(event) }
    }

    private func scheduleWake() {
        let now = environment.nowMs()
        let tasksDue = link.phase == .stopped ? nil : tasksWakeAfterMs.map { now + $0 }
        let due = [link.nextWakeMs, requests.nextDueMs, tasksDue].compactMap { $0 }.min()
        host.wake(afterMs: due.map { max(0, $0 - now) })
    }

    private func publishState() {
        let now: ConnectionState =
            switch link.phase {
            case .stopped: .stopped
            case .waiting, .connecting: .connecting(attempt: max(attempt, 1))
            case .open: link.awaitsPerson ? .signedOut : .syncing
            case .live where isForeign: link.awaitsPerson ? .signedOut : .syncing
            case .live: .online
            }
        guard now != state else { return }
        state = now
        host.publish(now)
    }

    // MARK: - Requests

    /// Sends a request when the current transaction commits. `then` runs in the transaction that
    /// handles the answer, or in the one in which the request is given up. `abandoned` runs instead
    /// when the store has failed.
    func call<Request: WireRequest>(
        _ request: Request,
        as question: RequestTable.Question? = nil,
        abandoned: ((ClientError) -> Void)? = nil,
        then: @escaping (Result<Request.Reply, ClientError>, StoreTransaction) throws -> Void
    ) {
        call(Request.opcode, request.encoded(), as: question, abandoned: abandoned) { answer, tx in
            switch answer {
            case .failure(let error): try then(.failure(error), tx)
            case .success(let payload):
                let reply: Request.Reply
                do throws(PayloadError) {
                    reply = try Request.Reply.decode(payload, limits: .standard)
                } catch {
                    return try then(.failure(.unreadable(reason: "\(error)")), tx)
                }
                try then(.success(reply), tx)
            }
        }
    }

    /// Sends a request of any opcode, and passes on the payload of the answer.
    func call(
        _ opcode: Opcode,
        _ payload: [UInt8],
        as question: RequestTable.Question? = nil,
        abandoned: ((ClientError) -> Void)? = nil,
        then: @escaping (Result<[UInt8], ClientError>, StoreTransaction) throws -> Void
    ) {
        let now = environment.nowMs()
        let entry = RequestTable.Entry(
            opcode: opcode,
            question: question,
            dueMs: now + options.requestTimeoutMs,
            answer: then,
            abandoned: abandoned
        )
        let sequence = requests.add(entry)
        let before = outgoing.count
        encodePacket(
            command: .request,
            sequence: sequence,
            opcode: opcode.rawValue,
            payload: payload,
            compression: Compression(for: .all),
            into: &outgoing
        )
        sentAt[sequence] = now
        guard options.tapsFrames else { return }
        publish(
            .frame(
                FrameTap(
                    direction: .sent,
                    kind: "request",
                    opcode: "\(opcode)",
                    sequence: sequence,
                    bytes: outgoing.count - before,
                    roundTrip: nil
                )
            )
        )
    }

    private func tap(_ direction: FrameTap.Direction, _ kind: String, _ header: PacketHeader) {
        guard options.tapsFrames else { return }
        let sent = kind == "push" ? nil : sentAt[header.sequence]
        publish(
            .frame(
                FrameTap(
                    direction: direction,
                    kind: kind,
                    opcode: "\(Opcode(rawValue: header.opcode))",
                    sequence: header.sequence,
                    bytes: PacketHeader.size + header.length,
                    roundTrip: sent.map { .milliseconds(environment.nowMs() - $0) }
                )
            )
        )
    }

    // MARK: - What the parts in other files ask of the link

    /// Notes that the login succeeded.
    func loggedIn() {
        attempt = 0
        link.awaitsPerson = false
        link.loggedIn()
    }

    /// Notes that nobody is signed in: the connection waits for a sign-in.
    func awaitsSignIn() {
        link.awaitsPerson = true
    }

    /// Notes that somebody has signed in on this connection.
    func signedIn() {
        link.awaitsPerson = false
    }

    /// Disconnects for a while, as the server asks.
    func rest(forMs pause: Int64, _ tx: StoreTransaction) throws {
        perform(link.rest(forMs: pause, nowMs: environment.nowMs()))
        try connectionLost(tx)
    }

    /// Whether the connection is logged in to the account held here.
    var isLive: Bool { link.phase == .live && !isForeign }

    /// Whether this process is connected for a signed-in account, or wants to be.
    var isForSomebody: Bool { link.phase != .stopped && !link.awaitsPerson }

    /// Whether the server has logged in an account on this connection, or is about to.
    var hasSession: Bool { link.isConnected && isForSomebody }
}
