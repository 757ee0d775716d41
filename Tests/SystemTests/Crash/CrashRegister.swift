import TambourProtocol
import TambourTesting

/// A request with what the test remembers of its reply.
struct CrashCommand {
    let opcode: Opcode
    let send: (WireClient) throws -> UInt16
    /// Waits for the reply to the request with this number.
    let finish: (WireClient, UInt16) throws -> Void

    init<Request: WireRequest>(
        _ request: Request,
        remember: @escaping (Request.Reply) throws -> Void = { _ in }
    ) {
        opcode = Request.opcode
        send = { try $0.send(request) }
        finish = { client, number in
            try remember(try client.reply(to: number, as: Request.Reply.self))
        }
    }
}

/// One durable fact, and the commands that bring it from one step to the next.
///
/// One user's commands alone change it, one at a time. So the server holds the value after the last
/// acknowledged step, or the value after the step that was in flight at the cut. A value contains
/// counts wherever a command applied twice would add something.
final class CrashRegister {
    typealias Mark = (_ step: Int) -> String

    let name: String
    let owner: UserID
    /// What a retry of an applied command is refused with, by commands that cannot be repeated.
    private let refusedAgain: RequestError.Code?
    private let initial: String
    private let mark: Mark
    private let command: (_ step: Int, _ mark: Mark) -> CrashCommand
    private let stepped: (_ step: Int, _ mark: Mark) -> String
    let read: (CrashView) throws -> String

    /// The last acknowledged step; -1 before the first.
    private(set) var confirmed = -1
    private(set) var attempted = -1
    private var last: CrashCommand?

    var isInFlight: Bool { attempted != confirmed }
    var confirmedValue: String { value(after: confirmed) }
    var attemptedValue: String { value(after: attempted) }
    /// A text that only the last attempted step has put into the world.
    var attemptedMark: String { mark(attempted) }

    /// - Parameters:
    ///   - initial: The value before the first step.
    ///   - command: The request that makes a step; `mark` makes a text that no other step has.
    ///   - value: The value after a step.
    ///   - read: The value that the server holds.
    init(
        _ name: String,
        of owner: UserID,
        initial: String = "none",
        refusedAgain: RequestError.Code? = nil,
        command: @escaping (_ step: Int, _ mark: Mark) -> CrashCommand,
        value: @escaping (_ step: Int, _ mark: Mark) -> String,
        read: @escaping (CrashView) throws -> String
    ) {
        self.name = name
        self.owner = owner
        self.initial = initial
        self.refusedAgain = refusedAgain
        self.command = command
        stepped = value
        mark = { "\(name) \(owner.rawValue).\($0)." }
        self.read = read
    }

    /// Whether the server held this value before the last acknowledged step.
    func isOutdated(_ value: String) -> Bool {
        (max(-1, confirmed - 100)..<max(0, confirmed)).contains { self.value(after: $0) == value }
    }

    private func value(after step: Int) -> String {
        step < 0 ? initial : stepped(step, mark)
    }

    /// The opcodes of its first steps, which are all it has: it repeats after six.
    var commands: Set<Opcode> { Set((0..<6).map { command($0, mark).opcode }) }

    // MARK: - Steps

    /// Sends the command of the next step.
    func begin(on client: WireClient) throws -> (command: CrashCommand, number: UInt16) {
        attempted = confirmed + 1
        let command = command(attempted, mark)
        last = command
        return (command, try command.send(client))
    }

    func confirm() { confirmed = attempted }

    /// Retries the command that was never answered, as a client does after it reconnects.
    func retry(on client: WireClient) throws {
        guard isInFlight, let last else { return }
        do {
            try last.finish(client, try last.send(client))
        } catch WireClient.Failure.refused(let error) where error.code == refusedAgain {
            // The command was applied before the cut.
        }
        confirm()
    }
}

/// What a user finds on the server; the login is read once.
final class CrashView {
    let client: WireClient
    /// What `admin reports` prints.
    let reports: [String]
    private(set) lazy var login = Result { try client.call(LoginRequest(token: client.token)) }

    init(_ client: WireClient, reports: [String]) {
        self.client = client
        self.reports = reports
    }

    func chat(_ id: ChatID) throws -> Chat? {
        try client.call(ChatInfoRequest(chatIDs: [id])).chats.first
    }

    func userSetting(_ name: Text) throws -> AnyValue? {
        try Self.settings(login.get().config?.user)[name]
    }

    func chatSetting(_ name: Text, of chat: ChatID) throws -> AnyValue? {
        try Self.settings(login.get().config?.chats?[chat])[name]
    }

    func members(of chat: ChatID, _ type: MemberType? = nil) throws -> [ChatMember] {
        try client.call(ChatMembersRequest(chatID: chat, type: type, count: 100)).members
    }

    func messages(of chat: ChatID, _ type: ItemType? = nil) throws -> [Message] {
        let request = ChatHistoryRequest(chatID: chat, backward: 100, itemType: type)
        return try client.call(request).messages ?? []
    }

    private static func settings(_ value: AnyValue?) throws -> NameMap<AnyValue> {
        guard let value else { return NameMap() }
        return try MessagePackReader.read(value.bytes, limits: .standard) {
            (reader: inout MessagePackReader) throws(PayloadError) in
            try NameMap<AnyValue>.read(from: &reader)
        }
    }
}
