import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

@testable import tambour_spec

/// Accounts on a server whose store is filled with everything that makes requests expensive.
///
/// The server may refuse some requests while the store is filled. Such a refusal is not a finding.
struct FuzzWorld {
    /// The number of accounts whose connections the fuzzer drives. The other accounts only fill the
    /// store.
    static let speakers = 6

    struct Size {
        var accounts = 40
        var messages = 120
        /// The number of chats that get nearly the maximum number of settings. Each setting has the
        /// maximum length.
        var chatsWithSettings = 40
        var largest = 2
    }

    let server: FuzzServer
    private(set) var peers: [FuzzPeer] = []
    private var cid: Int64 = 1 << 40
    /// The number of refusals while the store was filled, by opcode and error code.
    private(set) var refused: [String: Int] = [:]
    private(set) var lastRefusal = ""
    /// The accounts that could not log in after the store had been filled, each with the reason.
    private(set) var lockedOut: [String] = []

    /// Creates the accounts, fills the store, and leaves two connections of each speaker open.
    init(
        on server: FuzzServer,
        size: Size,
        generator: inout RequestGenerator
    ) throws {
        self.server = server
        var tokens: [String] = []
        for line in try server.admin(
            .createUsers(count: size.accounts, firstPhone: 79_990_000_001)
        ) {
            tokens.append(String(line.split(separator: " ")[2]))
        }
        for token in tokens {
            generator.known.accounts.append(.init(token: token, userID: 0))
        }
        for account in tokens.indices {
            let peer = try #require(try connect(account: account, &generator))
            if account < Self.speakers { peers.append(peer) }
        }
        generator.known.users = generator.known.accounts.map(\.userID)
        try fill(size, &generator)
        for account in 0..<Self.speakers {
            if let peer = try connect(account: account, &generator) {
                peers.append(peer)
            } else {
                lockedOut.append("account \(account): \(lastRefusal)")
            }
        }
    }

    /// Opens a connection and logs in to an account; returns nil when the server refuses the login.
    mutating func connect(
        account: Int,
        _ generator: inout RequestGenerator
    ) throws -> FuzzPeer? {
        guard let peer = FuzzPeer(address: server.address, account: account) else { return nil }
        let token = generator.known.accounts[account].token
        _ = try call(peer, "SESSION_INIT", [:], &generator)
        let reply = try call(
            peer,
            "LOGIN",
            ["token": .string(token), "interactive": .bool(true)],
            &generator
        )
        guard case .int(let id)? = reply?["profile"]?["contact"]?["id"] else { return nil }
        generator.known.accounts[account].userID = id
        return peer
    }

    /// Opens a connection without a login.
    mutating func stranger(_ generator: inout RequestGenerator) throws -> FuzzPeer? {
        guard let peer = FuzzPeer(address: server.address, account: nil) else { return nil }
        if generator.random.below(4) > 0 { _ = try call(peer, "SESSION_INIT", [:], &generator) }
        return peer
    }

    mutating func replacePeer(at index: Int, with peer: FuzzPeer) { peers[index] = peer }

    // MARK: - Filling the store

    private mutating func fill(_ size: Size, _ generator: inout RequestGenerator) throws {
        let owner = peers[0]
        let others = generator.known.users.dropFirst()
        for (index, user) in others.enumerated() {
            try send(owner, ["userId": .int(user)], "hello \(index)", &generator)
        }
        var groups: [Int64] = []
        for (title, type) in [("Group 1", "CHAT"), ("Group 2", "CHAT"), ("Channel", "CHANNEL")] {
            let control: WireNode = .object([
                "_type": .string("CONTROL"), "event": .string("new"), "title": .string(title),
                "chatType": .string(type), "userIds": .array(others.map { .int($0) }),
            ])
            cid += 1
            let reply = try call(
                owner,
                "MSG_SEND",
                ["message": .object(["cid": .int(cid), "attaches": .array([control])])],
                &generator
            )
            if case .int(let id)? = reply?["chatId"] { groups.append(id) }
        }
        try #require(groups.count == 3, "no groups: \(server.lastErrors)")
        for peer in peers.dropFirst() {
            for group in groups.dropLast() {
                try send(peer, ["chatId": .int(group)], "hello from another", &generator)
            }
        }
        for number in 0..<size.messages {
            let group = groups[number % groups.count]
            try send(owner, ["chatId": .int(group)], "hello world \(number)", &generator)
        }
        try fillPolls(in: groups[0], &generator)
        try fillSettings(size, owner, &generator)
        try call(
            owner,
            "CHAT_UPDATE",
            [
                "chatId": .int(groups[2]), "access": .string("PUBLIC"),
                "link": .string("fuzzedchannel"),
            ],
            &generator
        )
        // Fill drafts, folders, reactions, entities and so on from the examples of the
        // specification.
        for opcode in Self.harmless(generator.specification) {
            for peer in peers {
                for _ in 0..<4 {
                    generator.account = peer.account ?? 0
                    try exchange([(peer, generator.request(opcode))], &generator)
                }
            }
        }
        for opcode in Self.harmless(generator.specification) where opcode.kind == .command {
            for _ in 0..<size.largest {
                generator.account = 0
                try exchange([(owner, generator.largestRequest(opcode))], &generator)
            }
        }
    }

    /// The opcodes that leave every session open and keep everything that other requests need.
    private static func harmless(_ specification: Specification) -> [OpcodeEntry] {
        specification.clientOpcodes.filter { opcode in
            opcode.states.contains("loggedIn") && !RequestFuzz.isFinal(opcode)
                && opcode.family != "auth"
                && !["CHAT_DELETE", "CHAT_LEAVE", "CHAT_CLEAR", "MSG_DELETE_RANGE", "MSG_DELETE"]
                    .contains(opcode.name)
        }
    }

    private mutating func fillPolls(
        in chat: Int64,
        _ generator: inout RequestGenerator
    ) throws {
        for number in 0..<4 {
            let poll: WireNode = .object([
                "_type": .string("POLL"), "title": .string("hello poll \(number)"),
                "answers": .array((0..<4).map { .object(["text": .string("answer \($0)")]) }),
                "settings": .int(Int64(number)),
            ])
            cid += 1
            let reply = try call(
                peers[0],
                "MSG_SEND",
                [
                    "chatId": .int(chat),
                    "message": .object(["cid": .int(cid), "attaches": .array([poll])]),
                ],
                &generator
            )
            guard case .int(let message)? = reply?["message"]?["id"] else { continue }
            if case .array(let attaches)? = reply?["message"]?["attaches"],
                case .int(let poll)? = attaches.first?["pollId"]
            {
                generator.known.polls.append((chat, message, poll))
            }
            for peer in peers {
                try call(
                    peer,
                    "MSG_REACTION",
                    [
                        "chatId": .int(chat), "messageId": .int(message),
                        "reaction": .object(["id": .string("\u{1F44D}")]),
                    ],
                    &generator
                )
            }
        }
    }

    private mutating func fillSettings(
        _ size: Size,
        _ owner: FuzzPeer,
        _ generator: inout RequestGenerator
    ) throws {
        // Stay below the maximum, so that later requests can add settings.
        let names = (generator.limits.name("maxSettings") ?? 100) - 20
        let bytes = generator.limits.name("maxSettingBytes") ?? 256
        let settings = WireNode.map(
            (0..<names).map { number in
                let name = "setting\(number)"
                let key = name + String(repeating: "n", count: max(0, bytes - name.utf8.count))
                return .init(
                    key: .string(key),
                    // The limit includes the three bytes of the text's header.
                    value: .string(String(repeating: "v", count: bytes - 3))
                )
            }
        )
        try call(owner, "CONFIG", ["settings": .object(["user": settings])], &generator)
        // Only the owner gets settings for all these chats. The settings of the other accounts must
        // still fit into the reply to LOGIN.
        let others = peers.filter { $0 !== owner }.map { ($0, 4) }
        for (peer, count) in [(owner, size.chatsWithSettings)] + others {
            let account = peer.account ?? 0
            for chat in generator.known.accounts[account].chats.prefix(count) {
                let chats = WireNode.map([.init(key: .string("\(chat.id)"), value: settings)])
                try call(peer, "CONFIG", ["settings": .object(["chats": chats])], &generator)
            }
        }
    }

    // MARK: - Talking

    private mutating func send(
        _ peer: FuzzPeer,
        _ place: KeyValuePairs<String, WireNode>,
        _ text: String,
        _ generator: inout RequestGenerator
    ) throws {
        cid += 1
        var pairs = place.map { WireNode.Pair(key: .string($0.key), value: $0.value) }
        pairs.append(
            .init(
                key: .string("message"),
                value: .object(["cid": .int(cid), "text": .string(text)])
            )
        )
        let opcode = try #require(generator.specification.opcode(named: "MSG_SEND"))
        let request = FuzzRequest(
            opcode: opcode,
            payload: WireEncoder.encode(.map(pairs)),
            edges: [],
            chat: nil
        )
        try exchange([(peer, request)], &generator)
    }

    @discardableResult
    private mutating func call(
        _ peer: FuzzPeer,
        _ name: String,
        _ payload: KeyValuePairs<String, WireNode>,
        _ generator: inout RequestGenerator
    ) throws -> WireNode? {
        let opcode = try #require(generator.specification.opcode(named: name))
        let request = FuzzRequest(
            opcode: opcode,
            payload: WireEncoder.encode(.object(payload)),
            edges: [],
            chat: nil
        )
        return try exchange([(peer, request)], &generator)
    }

    /// Sends requests, waits for the replies, and records the values in the replies.
    ///
    /// - Returns: The last reply that is not a refusal.
    @discardableResult
    private mutating func exchange(
        _ requests: [(peer: FuzzPeer, request: FuzzRequest)],
        _ generator: inout RequestGenerator
    ) throws -> WireNode? {
        var last: WireNode?
        for (peer, request) in requests {
            peer.send(request, compressed: request.payload.count > 512)
        }
        var learnt = generator.known
        let isDone = try FuzzPeer.exchange(requests.map(\.peer)) { peer, received in
            guard let sent = received.sent, let node = try? WireDecoder.decode(received.payload)
            else { return }
            if received.isError {
                let name = sent.request.opcode.name
                if case .string(let code)? = node["error"] {
                    lastRefusal = "\(name) \(code)"
                    refused[lastRefusal, default: 0] += 1
                }
                return
            }
            last = node
            if let account = peer.account {
                learnt.learn(from: node, account: account, chat: received.sent?.request.chat)
            }
        }
        generator.known = learnt
        try #require(isDone, "no reply to \(requests.map(\.request.description))")
        return last
    }
}

extension Specification {
    /// The opcodes that a client may send, in the order of their numbers.
    var clientOpcodes: [OpcodeEntry] {
        families.flatMap(\.opcodes).filter { $0.direction != .serverToClient }
            .sorted { $0.number < $1.number }
    }
}
