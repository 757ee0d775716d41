import TambourTesting

@testable import tambour_spec

/// Ids and words that exist on the server. Without them, requests would fail the first checks of a
/// handler.
struct KnownValues {
    /// A chat with ids of its messages. `id` is the id that one account uses for the chat.
    struct KnownChat {
        let id: Int64
        var messages: [Int64] = []
    }

    /// The token and the ids that requests of one account may use.
    struct Standing {
        var token: String
        var userID: Int64
        var chats: [KnownChat] = []

        mutating func learn(message: Int64, of chat: Int64) {
            guard let index = chats.firstIndex(where: { $0.id == chat }) else {
                guard chats.count < 400 else { return }
                chats.append(KnownChat(id: chat, messages: [message]))
                return
            }
            if chats[index].messages.count < 64 {
                chats[index].messages.append(message)
            } else {
                chats[index].messages[Int(UInt64(bitPattern: message) % 64)] = message
            }
        }
    }

    var accounts: [Standing] = []
    var users: [Int64] = []
    /// Polls in chats that every speaker is a member of.
    var polls: [(chat: Int64, message: Int64, poll: Int64)] = []
    /// Scalars by key, from the examples of the specification and from replies.
    private var examples: [String: [WireNode]] = [:]
    private var heard: [String: [WireNode]] = [:]
    private var heardCount = 0

    static let words = [
        "hello", "hello world", "a", "poll", "group", "Group 1", "\u{43F}\u{440}\u{438}",
        "\u{1F44D}", "+79990000001", "https://example.org", "true",
    ]

    init(specification: Specification) {
        for file in specification.examples {
            for example in file.examples where example.role == .request {
                if let value = example.value {
                    record(value.plain) { examples[$0, default: []].append($1) }
                }
            }
        }
    }

    /// Returns a value seen under this key, preferably from a reply of the server.
    func value(under key: String, using random: inout SeededGenerator) -> WireNode? {
        if let known = heard[key], !known.isEmpty, random.below(3) > 0 {
            return known[random.below(known.count)]
        }
        guard let known = examples[key], !known.isEmpty else { return nil }
        return known[random.below(known.count)]
    }

    /// Records the ids of messages and chats in a reply, and records its other values by key.
    mutating func learn(from reply: WireNode, account: Int, chat: Int64?) {
        learnMessages(in: reply, account: account, chat: chat, depth: 0)
        record(reply) { key, value in
            heardCount += 1
            if heard[key, default: []].count < 24 {
                heard[key, default: []].append(value)
            } else {
                heard[key]?[heardCount % 24] = value
            }
        }
    }

    private mutating func learnMessages(
        in node: WireNode,
        account: Int,
        chat: Int64?,
        depth: Int
    ) {
        guard depth < 12 else { return }
        switch node {
        case .array(let items):
            for item in items.prefix(40) {
                learnMessages(in: item, account: account, chat: chat, depth: depth + 1)
            }
        case .map(let pairs):
            var chat = chat
            if case .int(let id)? = node["chatId"] { chat = id }
            if case .int(let id)? = node["id"] {
                if node["participants"] != nil {
                    chat = id
                } else if node["time"] != nil, node["type"] != nil, let chat {
                    accounts[account].learn(message: id, of: chat)
                }
            }
            for pair in pairs.prefix(40) {
                learnMessages(in: pair.value, account: account, chat: chat, depth: depth + 1)
            }
        default: break
        }
    }

    private func record(_ node: WireNode, _ take: (String, WireNode) -> Void) {
        switch node {
        case .array(let items): for item in items.prefix(40) { record(item, take) }
        case .map(let pairs):
            for pair in pairs.prefix(40) {
                guard case .string(let key) = pair.key else { continue }
                switch pair.value {
                case .int, .double, .bool: take(key, pair.value)
                case .string(let text): if text.utf8.count < 600 { take(key, pair.value) }
                case .array(let items):
                    if let first = items.first, first.isScalar { take(key, first) }
                    record(pair.value, take)
                default: record(pair.value, take)
                }
            }
        default: break
        }
    }
}

extension WireNode {
    fileprivate var isScalar: Bool {
        switch self {
        case .int, .string, .double, .bool: true
        default: false
        }
    }
}

extension SeededGenerator {
    /// Returns a number from 0 to `bound` - 1.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

    /// Returns true with a probability of 1 / `bound`.
    mutating func oneIn(_ bound: Int) -> Bool { below(bound) == 0 }

    mutating func pick<Item>(_ items: [Item]) -> Item { items[below(items.count)] }
}
