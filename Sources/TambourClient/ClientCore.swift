import GRDB
import TambourProtocol

/// The whole client but for threads, sockets and clocks: whoever drives it calls it, one call at a time, and does
/// what it asks of its host.
///
/// Every call is one transaction of the local store, with one of its own before it when another process has
/// signed out, and nothing leaves before that is committed:
///
///     bytes, time, somebody's wish ──▶ one transaction ──▶ commit ──▶ bytes, changes, the next alarm
///
/// A transaction that fails changes nothing here either: what is kept in memory is read from the store again, and
/// the connection is closed, so that the server tells once more what was lost.
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
    /// What leaves when the transaction under way is committed.
    private var outgoing: [UInt8] = []
    private var afterCommit: [() -> Void] = []
    private var attempt = 0
    private var dataVersion: Int64?
    /// The tasks as they are stored; nil until somebody asks.
    var tasks: TaskScheduler?
    var clientIDs = ClientIDGenerator()
    /// What is held of histories, as it is stored, of chats that were touched.
    var histories: [ChatID: ChatHistory] = [:]
    var screens: [Looker: Screen] = [:]
    /// The entities as they are stored; nil until somebody uses them.
    var entities: LocalEntities?
    var entityLink = EntityLink()
    /// Counts connections and sign-outs: an answer belongs to the one in which it was asked for.
    var life = 0
    /// The runs of photos' tasks that the host is at work on.
    var photoRuns: Set<TaskRun> = []
    let photos: PhotoFolder?
    /// Transactions that were committed since the core was made, and in which of them something was learned
    /// last of a subject.
    private(set) var transactions = 0
    private(set) var learnedAt: [Subject: Int] = [:]
    /// `transactions`, and the last revision, when the task was sent that is answered just now.
    var taskAsked: (transactions: Int, revision: Int64) = (0, 0)
    /// Chats that were left while their settings were asked for.
    var settingsInDoubt: Set<ChatID> = []
    /// People who were asked about on this connection.
    var introduced: Set<UserID> = []
    /// How many pages of history were asked for.
    package internal(set) var historyRequests = 0
    /// Names this life of this process to those who share the store.
    let owner: String
    /// Whether the connection is logged in as somebody whose account is not, or no longer, held here.
    var isForeign = false
    /// Whether another process that shares the store is connected.
    package var isElsewhere = false
    /// What that one was told of who looks at what here.
    var toldLooks: [ChatID: ToldLook] = [:]
    /// Whether the server has answered SESSION_INIT on this connection.
    var isGreeted = false
    /// Why the last connection came to an end before the server had answered SESSION_INIT.
    private(set) var greetingError: ClientError?
    /// Who waits for a connection on which somebody can be signed in.
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
        // Whatever a server sends it was asked for.
        decoder.authenticated = true
        return decoder
    }

    // MARK: - Life

    /// Connects, and keeps connected from now on.
    package func start() {
        run { tx in
            self.isElsewhere = false
            let isSignedIn = try tx.value(of: .token) as String? != nil
            self.link.awaitsPerson = !isSignedIn
            // Who was it before may have been killed.
            try tx.set(.online, nil)
            try tx.forgetWhoIsOnline()
            try self.adoptTasks(tx)
            self.perform(self.link.start(nowMs: self.environment.nowMs()))
        }
    }

    /// Closes the connection and opens no other.
    package func stop() {
        run { tx in
            self.perform(self.link.stop())
            try self.connectionLost(tx)
            try self.releasePhotoRuns(tx)
        }
    }

    /// The network is another one now.
    package func networkChanged() {
        run { _ in self.perform(self.link.networkChanged(nowMs: self.environment.nowMs())) }
    }

    /// Somebody waits for the connection.
    package func hurry() {
        run { _ in self.perform(self.link.hurry(nowMs: self.environment.nowMs())) }
    }

    /// Looks whether another process that shares the store has written.
    package func noticeOthers() {
        guard let version = store.dataVersion(), version != dataVersion else { return }
        run { _ in }
    }

    /// The time has come that `wake(afterMs:)` was asked for, or another one.
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

    /// The connection that was asked for is there.
    package func connectionOpened() {
        run { tx in
            self.received = []
            self.decoder = Self.newDecoder()
            self.link.opened(nowMs: self.environment.nowMs())
            try self.greet(tx)
        }
    }

    /// The connection has ended, or could not be opened.
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

    /// Bytes have come, in the order in which they were sent.
    package func connectionReceived(_ bytes: UnsafeRawBufferPointer) {
        guard state != .stopped else { return }
        link.heard(nowMs: environment.nowMs())
        bytesReceived += bytes.count
        received += bytes
        var packets: [Packet] = []
        do {
            packets = try cutPackets()
        } catch {
            // Where the next packet begins is not known any more.
            run { tx in
                try self.notGreeted(.otherProtocol, tx)
                try self.breakConnection(tx)
            }
            return
        }
        guard !packets.isEmpty else { return scheduleWake() }
        run { tx in
            for packet in packets {
                // What one of them made end is not listened to any more.
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

    /// The server said what cannot be read, or nothing: a new connection may understand it better.
    func breakConnection(_ tx: StoreTransaction) throws {
        link.closed(nowMs: environment.nowMs(), random: environment.random())
        host.disconnect()
        try connectionLost(tx)
    }

    private func connectionLost(_ tx: StoreTransaction) throws {
        forgetConnection()
        // Beside a process that is connected it says who is online.
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

    /// Notes why there is no connection, if the server has never answered on this one.
    func notGreeted(_ failure: ConnectionFailure, _ tx: StoreTransaction) throws {
        if !isGreeted {
            greetingError = .unreachable(server: try tx.value(of: .server) ?? "", failure)
        }
    }

    /// Notes what the server answered to SESSION_INIT; nil when it let the client in.
    func greeted(_ error: ClientError?) {
        isGreeted = error == nil
        greetingError = error
    }

    /// Forgets what was true of the connection alone.
    private func forgetConnection() {
        isGreeted = false
        isForeign = false
        introduced = []
        entitiesDisconnected()
        received = []
        outgoing = []
    }

    /// What is still answered is not listened to.
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
                        let server = try? store.read({ db in
                            try String.fetchOne(
                                db,
                                sql: "SELECT value FROM setting WHERE name = 'server'"
                            )
                        })
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

    /// Does `body` in one transaction, then what it left to be done.
    ///
    /// - Returns: nil when the store failed; then nothing has happened.
    @discardableResult
    func run<Value>(_ body: @escaping (StoreTransaction) throws -> Value) -> Value? {
        do {
            return try attempt(body)
        } catch {
            return nil
        }
    }

    /// Does `body` in one transaction, then what it left to be done.
    ///
    /// - Throws: what `body` throws, or `ClientError.store`; then nothing has happened.
    func attempt<Value>(_ body: (StoreTransaction) throws -> Value) throws(ClientError) -> Value {
        while true {
            // Another process may have signed out. The end of what was under way for that account is a
            // transaction of its own, which no `body` that throws takes back.
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
            // What was asked before is still asked; what this transaction asked never left.
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

    /// The end of every transaction: starts what can be started now.
    private func finish(_ tx: StoreTransaction) throws {
        guard link.phase != .stopped else { return }
        if tx.changes.everything { try serveOthers(tx) }
        try readHistories(of: tx.changes, tx)
        try askAboutStrangers(tx)
        try runTasks(tx)
        try runEntities(tx)
    }

    /// Another process may have written: what is in memory is read again when it is needed.
    ///
    /// - Returns: whether it has.
    private func noticeOthers(_ tx: StoreTransaction) throws -> Bool {
        let version = try Int64.fetchOne(tx.db, sql: "PRAGMA data_version")
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

    /// Has `step` done when the transaction under way is committed.
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

    /// Sends a request when the transaction under way is committed; `then` runs in the transaction
    /// that its answer brings, or in the one in which it is given up; `abandoned` instead of it when
    /// the store has failed.
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

    /// Sends a request of any opcode, and passes on the payload that answers it.
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

    /// The login was answered.
    func loggedIn() {
        attempt = 0
        link.awaitsPerson = false
        link.loggedIn()
    }

    /// Nobody is signed in: the connection waits for somebody to do so.
    func awaitsSignIn() {
        link.awaitsPerson = true
    }

    /// Somebody has signed in on this connection.
    func signedIn() {
        link.awaitsPerson = false
    }

    /// The server wants to be left alone.
    func rest(forMs pause: Int64, _ tx: StoreTransaction) throws {
        perform(link.rest(forMs: pause, nowMs: environment.nowMs()))
        try connectionLost(tx)
    }

    /// Whether the connection is this account's, and logged in.
    var isLive: Bool { link.phase == .live && !isForeign }

    /// Whether this process is connected for somebody, or wants to be.
    var isForSomebody: Bool { link.phase != .stopped && !link.awaitsPerson }

    /// Whether the server has let somebody in on this connection, or is about to.
    var hasSession: Bool { link.isConnected && isForSomebody }
}
