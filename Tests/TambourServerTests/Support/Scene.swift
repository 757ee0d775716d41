import Synchronization
import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

/// Runs `body` with a server and removes the server afterwards.
func withServer(
    limits overrides: [String: Int] = [:],
    environment: Environment = .live,
    linkPreviews: LinkPreviewSource? = nil,
    registration: RegistrationPolicy = .open,
    userInvitations: Int = 0,
    _ body: (TestServer) throws -> Void
) throws {
    let server = try TestServer(
        overrides: overrides,
        environment: environment,
        linkPreviews: linkPreviews,
        registration: registration,
        userInvitations: userInvitations
    )
    defer { server.remove() }
    try body(server)
}

/// Runs `body` with Alice and Bob, who each have one device, and with the id of their dialog. The
/// dialog does not exist yet.
func withPair(
    limits overrides: [String: Int] = [:],
    environment: Environment = .live,
    linkPreviews: LinkPreviewSource? = nil,
    _ body: (TestServer, WireClient, WireClient, ChatID) throws -> Void
) throws {
    try withServer(
        limits: overrides,
        environment: environment,
        linkPreviews: linkPreviews
    ) { server in
        let alice = try server.signUp("Alice")
        let bob = try server.signUp("Bob")
        try body(server, alice, bob, alice.dialog(with: bob))
    }
}

extension TestServer {
    /// Runs `body` on the engine as one command, and waits until it ends.
    func run(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        try LiveAdminBackend(server).write(body)
    }

    /// Returns the output of an admin command.
    func admin(_ request: AdminService.Request) throws -> [String] {
        var lines: [String] = []
        let done = try AdminClient(dataDirectory: dataDirectory).run(request) { lines.append($0) }
        try #require(done)
        return lines
    }

    /// Indexes the words of all stored messages.
    func indexWords() throws {
        try run { tx in
            while tx.hasWordsToIndex { try tx.indexWords() }
        }
    }
}

/// A wall clock that the test sets.
final class ManualClock: Sendable {
    private let time: Mutex<Int64>

    init(_ start: Int64 = 1_790_000_000_000) { time = Mutex(start) }

    var now: Int64 { time.withLock { $0 } }
    func advance(ms: Int64) { time.withLock { $0 += ms } }

    var environment: Environment {
        Environment(wallMs: { self.now }, randomBytes: Environment.live.randomBytes)
    }
}

extension WireClient {
    /// Returns all pushes except presence pushes. A PING serves as a fence.
    func news() throws -> [Push] {
        try takePushes().filter { $0.opcode != .notifPresence }
    }

    /// Returns the decoded pushes with this opcode. Any other push makes the test fail.
    func only<Payload: WirePayload>(
        _ opcode: Opcode,
        as type: Payload.Type,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> [Payload] {
        let news = try news()
        #expect(
            news.allSatisfy { $0.opcode == opcode },
            "\(news.map(\.opcode))",
            sourceLocation: sourceLocation
        )
        return try news.filter { $0.opcode == opcode }.map { try $0.decode(as: type) }
    }

    func expectSilence(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let news = try news()
        #expect(news.isEmpty, "\(news.map(\.opcode))", sourceLocation: sourceLocation)
    }

    /// Returns the error code with which the server refuses a request.
    func code(of request: some WireRequest) throws -> RequestError.Code {
        try refusal(of: request).code
    }

    /// Returns the error reply to a request with this encoded payload.
    func refusal(_ opcode: Opcode, payload: [UInt8]) throws -> ErrorReply {
        let packet = try reply(to: send(opcode, payload: payload))
        guard packet.header.command == PacketCommand.error.rawValue else {
            throw Failure.unexpected("\(opcode) was not refused")
        }
        return try ErrorReply.decode(packet.payload, limits: .standard)
    }

    func history(
        _ chat: ChatID,
        from: Int64? = nil,
        backward: Int64 = 40,
        forward: Int64 = 0
    ) throws -> ChatHistoryReply {
        try call(ChatHistoryRequest(chatID: chat, from: from, forward: forward, backward: backward))
    }

    func texts(_ chat: ChatID) throws -> [String] {
        try (history(chat, backward: 200).messages ?? []).map { String(describing: $0.text) }
    }

    func chat(_ id: ChatID) throws -> Chat? {
        try call(ChatInfoRequest(chatIDs: [id])).chats.first
    }

    @discardableResult
    func delete(
        _ ids: [MessageID],
        in chat: ChatID,
        forMe: Bool = false
    ) throws -> MsgDeleteReply {
        try call(MsgDeleteRequest(chatID: chat, messageIDs: ids, forMe: forMe))
    }
}

extension TestServer {
    /// Blocks an account as an administrator does.
    func block(_ user: UserID) throws {
        let admin = AdminClient(dataDirectory: dataDirectory)
        let done = try admin.run(.block(user: "\(user.rawValue)", isBlocked: true)) { _ in }
        #expect(done)
    }
}

/// The present time on the machine's clock, in milliseconds since 1970.
var wallNow: Int64 { Environment.live.wallMs() }
