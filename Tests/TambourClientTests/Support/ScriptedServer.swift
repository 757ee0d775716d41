import Foundation
import Synchronization
import TambourFraming
import TambourProtocol
import TambourTesting

@testable import TambourClient

/// A client's core, and a simulated server. The server itself answers only handshakes and logins;
/// the test sends all other packets. The reply to a login is `login`.
final class ScriptedServer: ClientHost {
    struct Asked {
        let opcode: Opcode
        let sequence: UInt16
        let payload: [UInt8]
    }

    struct NotAsked: Error { let opcode: Opcode }

    static let me = UserID(7)
    static let partner = UserID(8)

    /// The client's disk.
    private final class Disk: Sendable {
        let isFull = Atomic(false)
    }

    private struct DiskFull: Error {}

    let store: LocalStore
    private let disk = Disk()
    private(set) var asked: [Asked] = []
    /// The number of the client's logins.
    private(set) var logins = 0
    /// The refusals that the client has reported to the user.
    private(set) var refusals: [String] = []
    /// All events that the client has reported.
    private(set) var events: [ClientEvent] = []
    /// The reply to each login.
    var login = LoginReply(
        profile: Profile(contact: User(id: ScriptedServer.me)),
        chats: [],
        time: 1_000_000
    )
    /// Whether handshakes and logins wait for `answer`.
    var isSlow = false
    private var core: ClientCore?
    private var nowMs: Int64 = 1_000_000
    private var sent: [UInt8] = []
    /// The bytes collected so far for sending in one piece; nil when packets are sent separately.
    private var piece: [UInt8]?
    /// Actions that a call of the core has caused, to run after the call returns.
    private var todo: [() -> Void] = []

    init() throws {
        store = try LocalStore(
            path: TestServer.temporaryDirectory() + "/client.db",
            beforeCommit: { [disk] in
                if disk.isFull.load(ordering: .relaxed) { throw DiskFull() }
            }
        )
        try store.write { try $0.set(.server, "server:1") }
        core = ClientCore(
            store: store,
            host: self,
            environment: ClientEnvironment(
                wallMs: { [unowned self] in nowMs },
                nowMs: { [unowned self] in nowMs },
                random: { 4 }
            ),
            options: ClientOptions()
        )
        try signIn()
        core?.start()
        proceed()
    }

    /// Stops the core, and with it all waiting requests.
    func close() {
        core?.stop()
        core = nil
        try? FileManager.default.removeItem(
            at: URL(filePath: store.path).deletingLastPathComponent()
        )
    }

    // MARK: - Sending

    func push(_ opcode: Opcode, _ payload: some WirePayload) {
        say(.request, 1000, opcode, payload.encoded())
    }

    /// Delivers in one piece everything that `body` sends.
    func inOnePiece(_ body: () throws -> Void) rethrows {
        piece = []
        try body()
        let bytes = piece ?? []
        piece = nil
        hear(bytes)
    }

    /// Answers the oldest unanswered request of a kind.
    func answer(_ opcode: Opcode, _ reply: some WirePayload) throws {
        let asked = try take(opcode)
        say(.ok, asked.sequence, opcode, reply.encoded())
    }

    func refuse(
        _ opcode: Opcode,
        with code: RequestError.Code,
        retryAfterMs: Int64? = nil
    ) throws {
        let asked = try take(opcode)
        let reply = ErrorReply(
            error: Text(code.rawValue),
            message: "no",
            retryAfter: retryAfterMs
        )
        say(.error, asked.sequence, opcode, reply.encoded())
    }

    func signIn(token: String = "token") throws {
        try core?.signIn(token: token, phone: nil)
        proceed()
    }

    func signOut() throws {
        try core?.signOut()
        proceed()
    }

    /// Sends a request that the client does not store.
    func ask<Request: WireRequest & Sendable>(
        _ request: Request,
        then: @escaping (Result<Request.Reply, ClientError>) -> Void
    ) {
        core?.ask(request, then: then)
        proceed()
    }

    /// Runs a user's request to the client.
    func wish<Value>(_ body: (ClientCore, StoreTransaction) throws -> Value) throws -> Value? {
        guard let core else { return nil }
        let value = try core.attempt { tx in try body(core, tx) }
        proceed()
        return value
    }

    func isAsked(_ opcode: Opcode) -> Bool { asked.contains { $0.opcode == opcode } }

    /// Returns the unanswered requests of a kind, oldest first.
    func asked<Request: WireRequest>(_ kind: Request.Type) throws -> [Request] {
        try asked.filter { $0.opcode == Request.opcode }.map {
            try Request.decode($0.payload, limits: .standard)
        }
    }

    /// Runs `body` while every commit fails.
    func withFullDisk(_ body: () throws -> Void) rethrows {
        disk.isFull.store(true, ordering: .relaxed)
        defer { disk.isFull.store(false, ordering: .relaxed) }
        try body()
    }

    /// Breaks the connection.
    func loseConnection() {
        disconnect()
        core?.connectionClosed()
    }

    /// Breaks the connection and lets the client reconnect.
    func reconnect() {
        loseConnection()
        passTime()
    }

    /// Advances the clock. The default is long enough for an unconnected client to try to connect
    /// again.
    func passTime(ms: Int64 = 600_000) {
        nowMs += ms
        core?.wake()
        proceed()
    }

    private func proceed() {
        while !todo.isEmpty { todo.removeFirst()() }
    }

    private func take(_ opcode: Opcode) throws -> Asked {
        guard let place = asked.firstIndex(where: { $0.opcode == opcode }) else {
            throw NotAsked(opcode: opcode)
        }
        return asked.remove(at: place)
    }

    private func say(
        _ command: PacketCommand,
        _ sequence: UInt16,
        _ opcode: Opcode,
        _ payload: [UInt8]
    ) {
        var packet: [UInt8] = []
        encodePacket(
            command: command,
            sequence: sequence,
            opcode: opcode.rawValue,
            payload: payload,
            into: &packet
        )
        if piece != nil {
            piece? += packet
        } else {
            hear(packet)
        }
    }

    private func hear(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { core?.connectionReceived($0) }
        proceed()
    }

    // MARK: - Receiving

    func send(_ bytes: [UInt8]) {
        sent += bytes
        var decoder = FrameDecoder(limits: .standard)
        decoder.authenticated = true
        var offset = 0
        var heard: [Asked] = []
        sent.withUnsafeBytes { bytes in
            while let frame = try? decoder.next(in: bytes, from: &offset) {
                guard let packet = try? frame.packet(limits: .standard) else { continue }
                let opcode = Opcode(rawValue: packet.header.opcode)
                heard.append(
                    Asked(
                        opcode: opcode,
                        sequence: packet.header.sequence,
                        payload: packet.payload
                    )
                )
            }
        }
        sent.removeFirst(offset)
        asked += heard
        for asked in heard where !isSlow && [.sessionInit, .login].contains(asked.opcode) {
            todo.append { [unowned self] in greet(asked.opcode) }
        }
    }

    private func greet(_ opcode: Opcode) {
        if opcode == .sessionInit {
            try? answer(opcode, SessionInitReply(callsSeed: 1))
        } else {
            logins += 1
            try? answer(opcode, login)
        }
    }

    func connect(to server: ServerAddress, trusting trust: ServerTrust) {
        todo.append { [unowned self] in core?.connectionOpened() }
    }

    func disconnect() {
        asked = []
        sent = []
    }

    func wake(afterMs: Int64?) {}
    func begin(_ work: PhotoWork) {}
    func giveUp(_ run: TaskRun) {}
    func publish(_ changes: ChangeSet) {}
    func publish(_ state: ConnectionState) {}

    func publish(_ event: ClientEvent) {
        events.append(event)
        if case .refused(let reason) = event { refusals.append(reason) }
    }
}

/// Sample data.
extension ScriptedServer {
    static let dialog = ChatID.dialog(me, partner)

    /// Returns a message of the partner in the dialog.
    static func message(_ number: Int64) -> Message {
        Message(
            id: MessageID(timeMs: 2_000_000 + number, counter: 0),
            time: 2_000_000 + number,
            type: "USER",
            text: Text("message \(number)"),
            sender: partner
        )
    }

    /// Returns the dialog as a login describes it.
    static func described(last: Message?, before previous: Message? = nil) -> Chat {
        Chat(
            id: dialog,
            type: .dialog,
            status: .active,
            owner: me,
            participants: IDMap([(me, 1), (partner, 1)]),
            lastMessage: last,
            lastEventTime: last?.time ?? 0,
            created: 1,
            joinTime: 1,
            modified: 1,
            newMessages: 1,
            prevMessageID: previous?.id
        )
    }
}

/// Runs `body` with a client that is logged in at a scripted server.
func withScriptedServer(_ body: (ScriptedServer) throws -> Void) throws {
    let server = try ScriptedServer()
    defer { server.close() }
    try body(server)
}
