import Testing

@testable import tambour_spec

/// Tests the bounds that the check computes from types and limits, and the mistakes that the check
/// refuses.
@Suite("Check of bounds")
struct BoundsCheckTests {
    typealias Mistake = SpecificationCheckTests.Mistake

    @Test("refuses a planted mistake, with the field and the reason", arguments: mistakes)
    func findsMistake(mistake: Mistake) throws {
        var specification = try Repository.specification()
        try mistake.plant(&specification)
        let problems = SpecificationCheck.problems(of: specification).map(\.description)
        #expect(
            problems.contains { $0.contains(mistake.expected) },
            "\(problems.joined(separator: "\n"))"
        )
    }

    @Test("has at least twenty mistakes to find, no two alike")
    func count() {
        #expect(Self.mistakes.count >= 20)
        #expect(Set(Self.mistakes.map(\.testDescription)).count == Self.mistakes.count)
    }

    @Test("computes the largest payloads, largest first")
    func table() throws {
        let table = BoundsTable(try Repository.specification())
        let sizes = table.rows.map { $0.inflated ?? .max }
        #expect(sizes == sizes.sorted(by: >))
        #expect(table.rows.allSatisfy { $0.bytes != nil })
        #expect(Set(table.rows.map(\.kind)).count == BoundsTable.Row.Kind.allCases.count)
        let message = try #require(table.rows.first { $0.name == "Message" })
        #expect(message.bytes == 65_536)
        #expect(
            try #require(table.rows.first { $0.name == "LOGIN" && $0.kind == .reply }).depth > 12
        )
        print(
            table.rows.prefix(25).map {
                "\($0.inflated ?? -1) \($0.kind) \($0.name), \($0.depth) levels, beside pages \($0.besidePages ?? 0)"
            }.joined(separator: "\n")
        )
    }

    @Test("the bound of a payload is not below what the writer makes of its largest value")
    func isNoLowerThanTheWriter() throws {
        var specification = try Repository.specification()
        specification.limits.append(limit("five", 5))
        specification.limits.append(limit("three", 3))
        let field = { (key: String, type: WireType, change: (inout Field) -> Void) -> Field in
            var field = specification.structs[0].fields[0]
            (field.key, field.type, field.isRequired) = (key, type, true)
            (field.limitUnits, field.limitBytes, field.limitItems) = (nil, nil, [])
            change(&field)
            return field
        }
        var type = specification.structs[0]
        type.limitBytes = nil
        type.fields = [
            field("text", .text) { $0.limitUnits = "five" },
            field("ids", .list(.userID)) { $0.limitItems = ["three"] },
            field("marks", .map(key: .userID, value: .ms)) { $0.limitItems = ["three"] },
            field("any", .any) { $0.limitBytes = "five" },
        ]
        let largest = WireNode.map([
            .init(key: .string("text"), value: .string(String(repeating: "語", count: 5))),
            .init(key: .string("ids"), value: .array([.int(.max), .int(.max), .int(.max)])),
            .init(
                key: .string("marks"),
                value: .map(
                    (0..<3).map {
                        .init(key: .string("\(Int64.min + Int64($0))"), value: .int(.max))
                    }
                )
            ),
            .init(key: .string("any"), value: .string("abcd")),
        ])
        var bounds = Bounds(specification)
        let extent = bounds.extent(of: type)
        #expect(extent.failure == nil)
        #expect(extent.bytes == WireEncoder.encode(largest).count)
        #expect(extent.depth == 1 + 8)
        #expect(extent.deepest == ["any"])
    }

    private func limit(_ name: String, _ value: Int) -> Specification.Limit {
        .init(
            name: name,
            value: value,
            unit: "items",
            reason: "A test.",
            since: 1,
            origin: Origin(file: "limits.yaml", line: 0)
        )
    }

    // MARK: Mistakes

    /// Returns a mistake in one field of a payload.
    private static func field(
        _ name: String,
        _ opcode: String,
        _ part: any WritableKeyPath<OpcodeEntry, StructType?> & Sendable,
        _ key: String,
        _ expected: String,
        _ change: @escaping @Sendable (inout Field) -> Void
    ) -> Mistake {
        .opcode(name, of: opcode, expected) { entry in
            guard let index = entry[keyPath: part]?.fields.firstIndex(where: { $0.key == key })
            else { return }
            if var field = entry[keyPath: part]?.fields[index] {
                change(&field)
                entry[keyPath: part]?.fields[index] = field
            }
        }
    }

    private static func limit(_ name: String, _ limit: String, _ value: Int, _ expected: String)
        -> Mistake
    {
        Mistake(name, expected) { specification in
            let index = try #require(specification.limits.firstIndex { $0.name == limit })
            specification.limits[index].value = value
            specification.limits[index].max = nil
        }
    }

    /// Returns a type: lists within lists, to this depth.
    private static func lists(_ depth: Int, of type: WireType) -> WireType {
        (0..<depth).reduce(type) { type, _ in .list(type) }
    }

    static let mistakes: [Mistake] = unbounded + ambiguous + unsendable + tooDeep + endless

    private static let unbounded: [Mistake] = [
        field(
            "a text of a request",
            "AUTH_REQUEST",
            \.request,
            "language",
            "AuthRequestRequest.language: has no bound in bytes"
        ) {
            $0.limitBytes = nil
        },
        field(
            "a list of a request",
            "CHAT_INFO",
            \.request,
            "chatIds",
            "ChatInfoRequest.chatIds: has no bound in items"
        ) {
            $0.limitItems = []
        },
        field(
            "names of a request",
            "SYNC",
            \.request,
            "contactList",
            "SyncRequest.contactList: has no bound in items"
        ) {
            $0.limitItems = []
        },
        field(
            "an any of a request",
            "COMPLAIN",
            \.request,
            "reason",
            "ComplainRequest.reason: has no bound in bytes"
        ) {
            $0.limitBytes = nil
        },
        .field(
            "a map of an object of a request",
            of: "SettingsChange",
            "chats",
            "SettingsChange.chats: has no bound in items"
        ) {
            $0.limitItems = []
        },
        .field(
            "the inner names of a map",
            of: "SettingsChange",
            "chats",
            "SettingsChange.chats: has no bound in items at each level"
        ) {
            $0.limitItems.removeLast()
        },
        .field(
            "an any of a nested object",
            of: "Element",
            "attributes",
            "Element.attributes: has no bound in bytes"
        ) {
            $0.limitBytes = nil
        },
        .field(
            "bytes of a request",
            of: "NewReaction",
            "id",
            "NewReaction.id: has no bound in bytes"
        ) {
            $0.type = .bytes
            $0.limitBytes = nil
        },
        field(
            "a text of a reply",
            "GET_QR",
            \.reply,
            "qrLink",
            "GetQrReply.qrLink: has no bound in bytes"
        ) {
            $0.limitBytes = nil
        },
        field(
            "a list of a reply",
            "MSG_DELETE",
            \.reply,
            "messageIds",
            "MsgDeleteReply.messageIds: has no bound in items"
        ) {
            $0.limitItems = []
        },
        field(
            "a map of a reply",
            "MSG_GET_STAT",
            \.reply,
            "stats",
            "MsgGetStatReply.stats: has no bound in items"
        ) {
            $0.limitItems = []
        },
        field(
            "a list of a push",
            "NOTIF_MSG_DELETE",
            \.push,
            "messageIds",
            "NotifMsgDelete.messageIds: has no bound in items"
        ) {
            $0.limitItems = []
        },
        field(
            "a text of a push",
            "NOTIF_TYPING",
            \.push,
            "type",
            "NotifTyping.type: has no bound in bytes"
        ) {
            $0.limitBytes = nil
        },
        .field(
            "a text of an object that is embedded",
            of: "UserName",
            "name",
            "UserName.name: has no bound in bytes"
        ) {
            $0.limitBytes = nil
        },
        field(
            "a page that is not cut",
            "CHAT_MEMBERS",
            \.reply,
            "members",
            "CHAT_MEMBERS reply/members: up to"
        ) {
            $0.isPage = false
        },
        field(
            "a page of a request",
            "CHAT_INFO",
            \.request,
            "chatIds",
            "the server cuts no pages of what clients send"
        ) {
            $0.isPage = true
        },
        field(
            "a bound that no reader counts",
            "CHAT_INFO",
            \.request,
            "chatIds",
            "totalBytes is for what the server builds"
        ) {
            $0.totalBytes = "maxReplyBytes"
        },
        .field(
            "a reply that nobody checks",
            of: "LoginConfig",
            "server",
            "LoginConfig.server: checkedBy is for what clients send"
        ) {
            $0.anyCheck = .skipped
        },
        limit(
            "limits that multiply beyond counting",
            "maxIDsPerRequest",
            .max / 4,
            "its limits multiply beyond 64 bits"
        ),
    ]

    private static let ambiguous: [Mistake] = [
        field(
            "ids twice",
            "MSG_DELETE",
            \.request,
            "messageIds",
            "MsgDeleteRequest.messageIds: may name one thing twice and has no duplicates"
        ) {
            $0.duplicates = nil
        },
        .field(
            "keys twice",
            of: "SettingsChange",
            "user",
            "SettingsChange.user: may name one thing twice and has no duplicates"
        ) {
            $0.duplicates = nil
        },
        field(
            "objects with ids twice",
            "GET_POLL_UPDATES",
            \.request,
            "polls",
            "GetPollUpdatesRequest.polls: may name one thing twice and has no duplicates"
        ) {
            $0.duplicates = nil
        },
    ]

    private static let unsendable: [Mistake] = [
        limit(
            "messages that no reply holds",
            "maxMessageBytes",
            1_000_000,
            "MSG_SEND reply/chat: up to"
        ),
        limit(
            "messages that no push holds",
            "maxMessageBytes",
            1_000_000,
            "NOTIF_MESSAGE push/chat: up to"
        ),
        limit(
            "an item that its page cannot hold",
            "maxMessageBytes",
            1_000_000,
            "CHAT_HISTORY reply/"
        ),
        limit(
            "administrators that no chat can name",
            "maxChatAdmins",
            20_000,
            "CHAT_INFO reply/chats: up to"
        ),
        limit(
            "settings that no login brings",
            "maxConfigReplyBytes",
            600_000,
            "LOGIN reply/config: up to"
        ),
        limit(
            "folders that do not fit their reply",
            "maxFolderBytes",
            65_536,
            "FOLDERS_GET reply/folders: up to"
        ),
        .field(
            "a part of a push that is not cut",
            of: "ReactionInfo",
            "counters",
            "MSG_GET_REACTIONS reply/messagesReactions: up to"
        ) {
            $0.limitItems = ["maxIDsPerRequest"]
        },
    ]

    private static let tooDeep: [Mistake] = [
        limit(
            "values that nest as deep as a peer reads",
            "maxAnyDepth",
            28,
            "levels deep, a peer reads 32"
        ),
        .field("lists in lists", of: "Chat", "title", "CHAT_INFO reply/chats/title: nests") {
            $0.type = lists(30, of: .text)
            $0.limitItems = Array(repeating: "pollVotersShown", count: 30)
        },
        limit("a reader that reads less", "maxDepth", 12, "LOGIN reply/"),
    ]

    private static let endless: [Mistake] = [
        .field(
            "a message in a message in a message",
            of: "MessageLink",
            "message",
            "Message.link.message: holds another Message without an end"
        ) {
            $0.without = []
        },
        .field(
            "a chat in a chat",
            of: "Chat",
            "lastMessage",
            "Chat.lastMessage: holds another Chat without an end"
        ) {
            $0.type = .list(.named("Chat"))
            $0.limitItems = ["maxFewItems"]
        },
    ]
}
