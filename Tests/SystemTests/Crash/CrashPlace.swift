import Foundation
import TambourProtocol
import TambourTesting

/// What the registers of one user work on: made once, on a server that is not cut.
struct CrashPlace {
    /// A group that one of the users owns and the others are members of.
    struct Yard {
        let chat: ChatID
        let link: Text
        /// Two messages to pin in turn.
        let posts: [MessageID]
    }

    /// A group in which everybody reacts to one message and votes in one poll.
    struct Square {
        let chat: ChatID
        let post: MessageID
        let poll: Int64
    }

    static let codes = "111111"

    let users: [UserID]
    let index: Int
    let yards: [Yard]
    let square: Square
    /// The object below which notes are made.
    let profile: Int64
    /// When scheduled messages are due: long after the test.
    let later: Int64

    var me: UserID { users[index] }
    var yard: Yard { yards[index] }

    /// Another user. Each distance has one purpose, so that no two registers meet: 1 is the owner of
    /// the group that this user joins and leaves, 2 is blocked and made administrator, 3 is a contact
    /// and a member.
    func user(_ distance: Int) -> UserID { users[(index + distance) % users.count] }
    func yard(_ distance: Int) -> Yard { yards[(index + distance) % yards.count] }

    static func phone(_ index: Int) -> String { "+\(79_990_000_001 + index)" }

    // MARK: - Making it

    /// Logs each user in on a second device, and makes what the registers need.
    static func makePlayers(
        _ users: [UserID],
        at address: String,
        seed: UInt64
    ) throws -> [CrashPlayer] {
        let clients = try users.indices.map { try signIn(phone($0), at: address) }
        defer { for client in clients { client.close() } }
        let yards = try zip(clients, users).map { try makeYard($0, of: $1, users) }
        let square = try makeSquare(clients[0], users)
        let later = Int64(Date().timeIntervalSince1970 + 300 * 86_400) * 1000
        return try users.indices.map { index in
            let place = CrashPlace(
                users: users,
                index: index,
                yards: yards,
                square: square,
                profile: try makeProfile(clients[index]),
                later: later
            )
            return CrashPlayer(place, token: clients[index].token, seed: seed)
        }
    }

    private static func signIn(_ phone: String, at address: String) throws -> WireClient {
        let client = try WireClient(address: address)
        _ = try client.call(SessionInitRequest(deviceID: "player-\(phone)"))
        let asked = try client.call(AuthRequestRequest(phone: phone, type: "START_AUTH"))
        let code = AuthCodeRequest(
            token: asked.token,
            verifyCode: codes,
            authTokenType: "CHECK_CODE"
        )
        guard let token = try client.call(code).tokenAttrs.login?.token else {
            throw WireClient.Failure.unexpected("\(phone) is not registered")
        }
        client.token = token
        _ = try client.call(LoginRequest(token: token))
        return client
    }

    private static func makeYard(
        _ client: WireClient,
        of owner: UserID,
        _ users: [UserID]
    ) throws -> Yard {
        let others = users.filter { $0 != owner }
        let group = try client.call(.group("yard", others, cid: 1))
        let posts = try ([2, 3] as [Int64]).map {
            try client.call(.text("post", group.chatID, cid: $0))
        }
        guard let link = group.chat?.link else {
            throw WireClient.Failure.unexpected("the new group has no link")
        }
        return Yard(chat: group.chatID, link: link, posts: posts.map(\.message.id))
    }

    private static func makeSquare(_ client: WireClient, _ users: [UserID]) throws -> Square {
        let group = try client.call(.group("square", Array(users.dropFirst()), cid: 4))
        let poll = NewAttach(
            type: .poll,
            title: "Which?",
            answers: (1...3).map { NewPollAnswer(text: Text("\($0)")) },
            // Several answers, and votes may be changed.
            settings: 2 | 4
        )
        let message = NewMessage(cid: 5, attaches: [poll])
        let reply = try client.call(MsgSendRequest(chatID: group.chatID, message: message))
        let attach = reply.message.attaches.stored?.first { $0.type == .poll }
        guard let poll = attach?.pollID else {
            throw WireClient.Failure.unexpected("the message has no poll")
        }
        return Square(chat: group.chatID, post: reply.message.id, poll: poll)
    }

    private static func makeProfile(_ client: WireClient) throws -> Int64 {
        var id: Int64?
        for (opID, type) in [(1, "account"), (2, "profile")] as [(Int64, String)] {
            let operation = ObjectOperation(
                opID: opID,
                op: .create,
                id: AnyValue(Text("#l\(opID)")),
                type: type,
                parent: id.map { AnyValue($0) },
                base: 0,
                modified: 1,
                fields: NameMap([("name", AnyValue(Text(type)))])
            )
            id = try client.call(ObjPushRequest(clientNow: 1, ops: [operation])).results.first?.id
        }
        guard let id else { throw WireClient.Failure.unexpected("no profile was created") }
        return id
    }
}

extension WireRequest where Self == MsgSendRequest {
    static func text(_ text: String, _ chat: ChatID, cid: Int64) -> Self {
        MsgSendRequest(chatID: chat, message: NewMessage(cid: cid, text: Text(text)))
    }

    static func group(_ title: String, _ members: [UserID], cid: Int64) -> Self {
        let control = NewAttach(
            type: .control,
            title: Text(title),
            event: "new",
            chatType: "CHAT",
            userIDs: members
        )
        return MsgSendRequest(message: NewMessage(cid: cid, attaches: [control]))
    }
}
