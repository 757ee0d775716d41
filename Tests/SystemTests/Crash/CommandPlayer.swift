import TambourFraming
import TambourProtocol
import TambourTesting

/// An account with its phone and token.
struct CommandUser {
    let id: UserID
    /// The digits of the international number.
    let phone: Int64
    let token: String
}

/// A user who runs many plays at once on one connection, and two more connections that listen.
///
/// `@unchecked Sendable`: one thread uses it at a time. During `play`, each connection has its own
/// thread.
final class CommandPlayer: @unchecked Sendable {
    let user: CommandUser
    /// Another member of the user's chats.
    let partner: CommandUser
    /// Users that no other player uses.
    let strangers: [CommandUser]
    /// The data directory of the server, for reading open reports.
    let dataDirectory: String
    private(set) var plays: [CommandPlay] = []

    private(set) var own: WireClient
    private(set) var other: WireClient
    /// A connection of another session of the user.
    private var second: WireClient
    private let secondToken: String
    private var lastCID: Int64 = 0

    /// An error under load, unless the end of the server caused it.
    private(set) var failure: (any Error)?

    init(
        _ user: CommandUser,
        with partner: CommandUser,
        strangers: [CommandUser],
        at address: String,
        dataDirectory: String
    ) throws {
        self.user = user
        self.partner = partner
        self.strangers = strangers
        self.dataDirectory = dataDirectory
        own = try WireClient(address, token: user.token, device: "first")
        other = try WireClient(address, token: partner.token, device: "first")
        second = try WireClient(address, device: "second")
        let asked = try second.call(AuthRequestRequest(phone: "+\(user.phone)"))
        let code = AuthCodeRequest(token: asked.token, verifyCode: CommandWorld.code)
        secondToken = try second.call(code).tokenAttrs.login?.token ?? ""
        try second.logIn(secondToken)
        try Self.meet([partner] + strangers, on: own)
        try Self.meet([user] + strangers, on: other)
    }

    /// Adds the people as contacts and removes them again, so that the user may invite them, even
    /// after a restart.
    private static func meet(_ people: [CommandUser], on client: WireClient) throws {
        try client.meet(people.map { "+\($0.phone)" })
        for person in people {
            for action in [ContactAction.add, .remove] {
                try client.call(ContactUpdateRequest(contactID: person.id, action: action))
            }
        }
    }

    func add(_ play: CommandPlay) { plays.append(play) }

    /// Shuffles the order in which a load starts its plays.
    func shuffle(using random: inout SeededGenerator) { plays.shuffle(using: &random) }

    func connect(to address: String) throws {
        close()
        own = try WireClient(address, token: user.token, device: "first")
        other = try WireClient(address, token: partner.token, device: "first")
        second = try WireClient(address, token: secondToken, device: "second")
    }

    func close() {
        for client in [own, other, second] { client.close() }
    }

    // MARK: - Under load

    /// Keeps one change of every play in flight until the server is gone.
    func play(_ load: CommandLoad) {
        failure = nil
        var inFlight: [UInt16: CommandPlay] = [:]
        var free = plays
        func takeReply() throws {
            let packet = try own.nextReply()
            guard let play = inFlight.removeValue(forKey: packet.header.sequence) else {
                throw WireClient.Failure.unexpected("a reply to nothing: \(packet.header)")
            }
            load.note(try play.take(packet))
            free.append(play)
        }
        do {
            do {
                while true {
                    while let play = free.popLast() { inFlight[try play.send(on: own)] = play }
                    try takeReply()
                }
            } catch WireClient.Failure.closed {
                // Replies that arrived before the end count.
                while true { try takeReply() }
            }
        } catch WireClient.Failure.closed {
        } catch {
            failure = error
            load.end()
        }
    }

    /// Reads the pushes on the other two connections until the server is gone.
    func listen() throws {
        for client in [other, second] { try client.waitForClose() }
    }

    /// Counts pushed changes as acknowledged.
    ///
    /// - Returns: The number of pushed changes.
    func takePushes(for plays: [Int: CommandPlay]) -> Int {
        let pushes = [own, other, second].flatMap { $0.takePushesAtHand() }
        let changes = pushes.flatMap { CommandMark.all(in: $0.payload) }
        for (play, number) in changes { plays[play]?.hear(number) }
        return changes.count
    }

    /// - Returns: The effects of the kill on the changes in flight.
    func verify() throws -> [CommandPlay.Outcome] {
        try plays.map { try $0.verify(of: self) }
    }

    // MARK: - For plays

    func nextCID() -> Int64 {
        lastCID += 1
        return lastCID
    }

    /// Creates a group of the user with the partner.
    func group() throws -> ChatID {
        try own.createGroup("Group", with: [other], cid: nextCID())
    }

    /// Sends messages to a chat and returns their ids, oldest first.
    func messages(_ count: Int, in chat: ChatID, by client: WireClient) throws -> [MessageID] {
        try (0..<count).map { _ in try client.send("text", to: chat, cid: nextCID()).message.id }
    }
}

extension WireClient {
    /// Opens a connection, sends SESSION_INIT, and logs in if there is a token.
    convenience init(_ address: String, token: String? = nil, device: String) throws {
        try self.init(address: address)
        try call(SessionInitRequest(deviceID: device, capabilities: ["objects"]))
        if let token { try logIn(token) }
    }

    func logIn(_ token: String) throws {
        userID = try call(LoginRequest(token: token, interactive: true)).profile.contact.id
        self.token = token
    }

    /// Returns the payload of the reply to a request.
    func payload(of request: some WireRequest) throws -> [UInt8] {
        let packet = try reply(to: send(request))
        guard packet.header.command == PacketCommand.ok.rawValue else {
            let error = try ErrorReply.decode(packet.payload, limits: .standard)
            throw Failure.unexpected("\(type(of: request)) is refused: \(error.error)")
        }
        return packet.payload
    }
}
