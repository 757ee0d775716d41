import Foundation
import GRDB
import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// The core of one account, with a network, a server that accepts photos, and photo work outside
/// the lane. Each acts only when the test says so.
final class PhotoDesk: ClientHost {
    struct Stored {
        let request: MsgSendRequest
        let message: Message

        var token: String? { request.message.attaches.first?.photoToken.map { "\($0)" } }
    }

    static let me = UserID(7)
    let chat = ChatID.dialog(PhotoDesk.me, UserID(8))
    let other = ChatID.dialog(PhotoDesk.me, UserID(9))
    let directory: String
    private(set) var core: ClientCore?
    private(set) var store: LocalStore?
    /// Work that the host was asked for and has not finished.
    private(set) var works: [PhotoWork] = []
    private(set) var givenUp: Set<TaskRun> = []
    /// The messages that the server has stored, each once.
    private(set) var messages: [Stored] = []
    /// The number of send requests.
    private(set) var sendings = 0
    /// Whether connection attempts succeed.
    var isReachable = true
    /// Whether the server's answers to messages get lost.
    var losesAnswers = false
    /// The refusal that messages get instead of being stored.
    var refusal: RequestError.Code?
    /// An action that runs before the server answers a message.
    var beforeAnswer: (() -> Void)?
    var nowMs: Int64 = 1_790_000_000_000
    private var random = SeededGenerator(seed: 5)
    private var waiting: [() -> Void] = []
    private var connection = 0
    private var decoder = FrameDecoder(limits: .standard)
    private var received: [UInt8] = []

    init() throws {
        directory = try TestServer.temporaryDirectory()
        try open()
        try store?.write { tx in
            try tx.set(.server, "nowhere:1")
            try tx.set(.token, "t")
            try tx.set(.user, Self.me.rawValue)
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    private func open() throws {
        let store = try LocalStore(path: "\(directory)/account.db")
        self.store = store
        core = ClientCore(
            store: store,
            host: self,
            environment: ClientEnvironment(
                wallMs: { [unowned self] in nowMs },
                nowMs: { [unowned self] in nowMs },
                random: { [unowned self] in random.next() }
            )
        )
    }

    // MARK: - Actions of a test

    func start() {
        core?.start()
        settle()
    }

    /// Kills the process without any notification.
    func kill() {
        connection += 1
        waiting = []
        works = []
        core = nil
        store?.close()
        store = nil
    }

    func restart() throws {
        kill()
        try open()
        start()
    }

    func loseConnection() {
        connection += 1
        core?.connectionClosed()
        settle()
    }

    func pass(ms: Int64) {
        nowMs += ms
        core?.wake()
        settle()
    }

    /// Runs everything that needs no time to pass.
    func settle() {
        while !waiting.isEmpty { waiting.removeFirst()() }
    }

    /// Runs a user's request to the client.
    @discardableResult
    func wish<Value>(_ body: (ClientCore, StoreTransaction) throws -> Value) throws -> Value {
        let core = try #require(core)
        let value = try core.attempt { try body(core, $0) }
        settle()
        return value
    }

    @discardableResult
    func sendPhoto(_ source: String, caption: String = "") throws -> OutgoingID {
        try wish { core, tx in
            let cid = core.nextClientID()
            let task = SendPhotoTask(chat: chat.rawValue, cid: cid, text: caption)
            return try core.photos.queue(task, source: source, tx)
        }
    }

    func sendText(_ text: String, to chat: ChatID) throws {
        try wish { core, tx in
            let cid = core.nextClientID()
            try core.queue(SendTask(chat: chat.rawValue, cid: cid, text: text), tx)
        }
    }

    /// Creates a file that looks like a photo and returns its path.
    func photo(_ name: String = "photo.jpg", bytes: Int = 100) throws -> String {
        let path = "\(directory)/\(name)"
        let data = Data([0xFF, 0xD8, 0xFF] + [UInt8](repeating: 7, count: bytes - 3))
        try data.write(to: URL(filePath: path))
        return path
    }

    /// Does the requested copying and reports the result.
    func keepPhoto() throws {
        let copies = works.filter { $0.upload == nil }
        try #require(!copies.isEmpty, "nothing is copied")
        for work in copies { keep(work) }
    }

    /// Does one copy, even if the client no longer wants it.
    func keep(_ work: PhotoWork) {
        guard case .keep(let source, let path) = work.step else { return }
        do throws(PhotoError) {
            finish(work, .kept(try PhotoFile.keep(source, as: path)))
        } catch {
            finish(work, .failed(error))
        }
    }

    /// Starts the client, sends a photo and copies it. Only the upload remains.
    @discardableResult
    func startWithPhoto() throws -> OutgoingID {
        start()
        let photo = try sendPhoto(photo())
        try keepPhoto()
        return photo
    }

    /// Reports the result of an upload.
    func finishUpload(_ report: PhotoReport) throws {
        finish(try #require(works.first { $0.upload != nil }, "nothing is uploaded"), report)
    }

    func reachUpload(_ offset: Int64) throws {
        let work = try #require(works.first { $0.upload != nil }, "nothing is uploaded")
        core?.photos.reported(.reached(offset), by: work.run)
        settle()
    }

    func finish(_ work: PhotoWork, _ report: PhotoReport) {
        works.removeAll { $0.run == work.run }
        core?.photos.reported(report, by: work.run)
        settle()
    }

    /// Copies and uploads a photo.
    func upload(_ token: String = "t1", goodFor: Duration = .seconds(3600)) throws {
        try keepPhoto()
        try finishUpload(.uploaded(PhotoToken(token, goodFor: goodFor)))
    }

    // MARK: - Results

    /// The uploads in progress.
    var uploads: [(key: String, offset: Int64)] { works.compactMap(\.upload) }

    func rows() throws -> [HistoryRow] {
        let store = try #require(store)
        return try store.read { try Reader($0).history(of: chat, .newest, count: 100).rows }
    }

    /// The state of the chat's last row.
    func lastState() throws -> MessageState? { try rows().last?.state }

    /// The preview of the chat in the list of chats.
    func preview() throws -> String? {
        let store = try #require(store)
        return try store.read { try Reader($0).chat(chat)?.preview?.text }
    }

    /// The number of tasks, including failed ones.
    func taskCount() throws -> Int {
        let store = try #require(store)
        return try store.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM task") ?? 0 }
    }

    /// Returns the files in the folder of copies.
    func copies() -> [String] {
        let folder = "\(directory)/account.db.photos"
        return (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    // MARK: - Calls from the core

    func connect(to server: ServerAddress, trusting trust: ServerTrust) {
        connection += 1
        let current = connection
        waiting.append { [unowned self] in
            guard current == connection else { return }
            received = []
            decoder = FrameDecoder(limits: .standard)
            decoder.authenticated = true
            if isReachable { core?.connectionOpened() } else { core?.connectionClosed() }
        }
    }

    func disconnect() { connection += 1 }

    func send(_ bytes: [UInt8]) {
        let current = connection
        waiting.append { [unowned self] in
            guard current == connection else { return }
            answer(bytes)
        }
    }

    func wake(afterMs: Int64?) {}

    func begin(_ work: PhotoWork) { works.append(work) }

    func giveUp(_ run: TaskRun) {
        guard works.contains(where: { $0.run == run }) else { return }
        givenUp.insert(run)
        works.removeAll { $0.run == run }
    }

    func publish(_ changes: ChangeSet) {}
    func publish(_ state: ConnectionState) {}
    func publish(_ event: ClientEvent) {}

    // MARK: - The server

    private func answer(_ bytes: [UInt8]) {
        received += bytes
        var packets: [Packet] = []
        var offset = 0
        received.withUnsafeBytes { bytes in
            while let frame = try? decoder.next(in: bytes, from: &offset),
                let packet = try? frame.packet(limits: .standard)
            {
                packets.append(packet)
            }
        }
        received.removeFirst(offset)
        for packet in packets { answer(packet) }
    }

    private func answer(_ packet: Packet) {
        switch Opcode(rawValue: packet.header.opcode) {
        case .sessionInit: reply(SessionInitReply(callsSeed: 0), to: packet)
        case .ping: reply(PingReply(), to: packet)
        case .login: reply(login(), to: packet)
        case .msgSend:
            guard let request = try? MsgSendRequest.decode(packet.payload, limits: .standard)
            else { return }
            sendings += 1
            beforeAnswer?()
            if let refusal {
                let error = ErrorReply(error: Text(refusal.rawValue), message: "no")
                return reply(error, to: packet, .error)
            }
            let stored = store(request)
            if losesAnswers { return }
            let chat = request.chatID ?? chat
            let before = messages.prefix { $0.message.id != stored.message.id }
            let previous = before.last { $0.request.chatID == request.chatID }?.message.id
            reply(
                MsgSendReply(chatID: chat, message: stored.message, prevMessageID: previous),
                to: packet
            )
        default: break
        }
    }

    private func store(_ request: MsgSendRequest) -> Stored {
        let cid = request.message.cid
        if let known = messages.first(where: { $0.message.cid == cid }) { return known }
        let time = nowMs + 1 + Int64(messages.count)
        let stored = Stored(
            request: request,
            message: Message(
                id: MessageID(timeMs: time, counter: 0),
                time: time,
                type: "USER",
                text: request.message.text ?? .empty,
                sender: Self.me,
                cid: cid,
                attaches: Packed(request.message.attaches.map { Attach(type: $0.type) })
            )
        )
        messages.append(stored)
        return stored
    }

    private func login() -> LoginReply {
        let chats = [chat, other].map { id in
            Chat(
                id: id,
                type: .dialog,
                status: .active,
                owner: Self.me,
                participants: IDMap([(Self.me, 0)]),
                lastEventTime: nowMs,
                created: 1,
                joinTime: 1,
                modified: 1
            )
        }
        let me = User(id: Self.me, names: [UserName(name: "Anna")])
        return LoginReply(profile: Profile(contact: me), chats: chats, time: nowMs)
    }

    private func reply(
        _ payload: some WirePayload,
        to packet: Packet,
        _ command: PacketCommand = .ok
    ) {
        var bytes: [UInt8] = []
        encodePacket(
            command: command,
            sequence: packet.header.sequence,
            opcode: packet.header.opcode,
            payload: payload.encoded(),
            into: &bytes
        )
        let current = connection
        let whole = bytes
        waiting.append { [unowned self] in
            guard current == connection else { return }
            whole.withUnsafeBytes { core?.connectionReceived($0) }
        }
    }
}

extension PhotoWork {
    /// The key and the offset of an upload; nil for other work.
    var upload: (key: String, offset: Int64)? {
        guard case .upload(_, _, let key, let offset) = step else { return nil }
        return (key, offset)
    }
}
