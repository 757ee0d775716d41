import TambourProtocol
import TambourSQL

// Finds numbers that no server writes. Examples are ids without a possible next id, and times that
// do not fit into ids.
extension StoreCheck {
    /// The valid ranges of a table's columns.
    struct Numbers {
        let table: String
        /// The numeric columns of the table's key.
        let keys: [String]
        let ranges: [(column: String, range: ClosedRange<Int64>)]

        init(
            _ table: String,
            _ keys: [String],
            _ columns: [(names: [String], range: ClosedRange<Int64>)]
        ) {
            self.table = table
            self.keys = keys
            ranges = columns.flatMap { columns in columns.names.map { ($0, columns.range) } }
        }
    }

    /// The valid ids. The server computes the next id from the last id, so the range ends far below
    /// the maximum of the type.
    static let ids: ClosedRange<Int64> = 1...(1 << 62)
    /// The valid counts, and the valid ids in columns in which 0 means absent.
    private static let counts: ClosedRange<Int64> = 0...(1 << 62)
    /// The valid keys of chats. Groups and channels have negative keys.
    private static let chats: ClosedRange<Int64> = -(1 << 62)...(1 << 62)
    /// The valid ids of messages and entities. The high bits of such an id are a time; 0 means
    /// absent.
    static let messages: ClosedRange<Int64> = 0...(.max - 0xFFFF)
    private static let times = MessageID.times
    /// The valid flags, kinds and small counts.
    private static let small: ClosedRange<Int64> = 0...Int64(Int32.max)
    /// The valid bits of a poll, and the valid times in columns in which the maximum means never.
    private static let positive: ClosedRange<Int64> = 0...(.max)

    /// The columns that may contain any number. The comments state who chooses the number.
    package static let unbounded: Set<String> = [
        // The client chooses this number, to recognize its own message.
        "message.cid", "delayed_message.cid", "delayed_key.cid",
        // The client chooses this number. The server reads the message with this id only when the
        // draft is sent.
        "draft.reply_to",
        // The client chooses this number, which only people read.
        "report.reason",
        // All 64 bits are used, one bit for each block.
        "search_word.blocks",
        // The device chooses these numbers: the time, the number of the device, the numbers of its
        // operations, and positions in a series.
        "object.modified", "object.device", "object.creator", "object.created_by",
        "object.position",
        "object_purge.modified", "object_purge.device",
        "object_reply.device", "object_reply.op_id",
        // Each key has its own kind of value.
        "meta.v",
    ]

    /// The checked columns and their ranges. A key is the name of a table and a column, such as
    /// `account.id`.
    package static let ranges: [String: ClosedRange<Int64>] = Dictionary(
        uniqueKeysWithValues: numbers.flatMap { table in
            table.ranges.map { ("\(table.table).\($0.column)", $0.range) }
        }
    )

    static let numbers: [Numbers] = [
        Numbers(
            "account",
            ["id"],
            [
                (["id"], ids), (["registered", "updated", "seen", "settings_ct"], times),
                (["blocked", "privacy"], small),
                // For an erased account, this column contains the negated id of the account.
                (["phone"], chats),
            ]
        ),
        Numbers("account_word", [], [(["user_id"], ids)]),
        Numbers(
            "account_end",
            ["user_id"],
            [
                (["user_id"], ids), (["delete_at"], times), (["inactive_days", "erasing"], small),
                (["due"], positive), (["erased_up_to"], messages),
            ]
        ),
        Numbers("device", ["id"], [(["id", "user_id"], ids)]),
        Numbers(
            "session",
            ["id"],
            [(["id", "user_id", "device"], ids), (["created", "last_seen"], times)]
        ),
        Numbers(
            "login_code",
            [],
            [
                (["phone", "user_id", "invitation"], counts),
                (["created", "expires"], times), (["tries"], small),
            ]
        ),
        Numbers("registration", [], [(["phone", "invitation"], counts), (["expires"], times)]),
        Numbers(
            "invitation",
            ["id"],
            [
                (["id"], ids), (["phone", "user_id"], counts), (["max_uses", "uses"], small),
                (["created", "expires"], times),
            ]
        ),
        Numbers(
            "invitation_use",
            ["user_id"],
            [(["user_id", "invitation"], ids), (["used"], times)]
        ),
        Numbers("email_code", [], [(["user_id"], counts), (["created"], times)]),
        Numbers(
            "password",
            ["user_id"],
            [
                (["user_id"], ids), (["log_rounds", "tries", "version"], small),
                (["tries_since"], times),
            ]
        ),
        Numbers(
            "track",
            [],
            [
                (["user_id", "session"], counts), (["created", "expires", "code_expires"], times),
                (["kind", "checked", "email_checked", "code_tries", "codes_sent"], small),
            ]
        ),
        Numbers(
            "chat",
            ["id"],
            [
                (["id"], chats), (["low_user", "high_user", "owner", "member_count"], counts),
                (["created", "ct_head"], times), (["kind", "is_public"], small),
                (["options"], counts), (["pinned"], messages),
            ]
        ),
        Numbers("chat_word", [], [(["chat"], chats)]),
        Numbers(
            "chat_purge",
            ["chat", "sender"],
            [(["chat", "sender"], chats), (["up_to"], messages)]
        ),
        Numbers(
            "member",
            ["user_id", "chat"],
            [
                (["user_id"], ids), (["chat"], chats),
                (["joined", "read_time", "shown_time", "ct"], times),
                (["read_n", "hidden_n", "permissions"], counts), (["big"], small),
                (["floor", "delayed_updated", "delayed_failed"], messages),
            ]
        ),
        Numbers(
            "former_member",
            ["user_id", "chat"],
            [
                (["user_id"], ids), (["chat"], chats), (["owner"], counts),
                (["joined", "ct"], times),
            ]
        ),
        Numbers(
            "join_request",
            ["chat", "user_id"],
            [(["chat"], chats), (["user_id"], ids), (["asked"], times)]
        ),
        Numbers(
            "introduction",
            ["user_id", "chat"],
            [(["user_id"], ids), (["chat"], chats)]
        ),
        Numbers(
            "comment_thread",
            ["channel", "post"],
            [(["channel", "chat"], chats), (["post"], messages), (["comments"], counts)]
        ),
        Numbers("commenter", ["user_id", "chat"], [(["user_id"], ids), (["chat"], chats)]),
        Numbers("comment_ban", ["chat", "user_id"], [(["chat"], chats), (["user_id"], ids)]),
        Numbers(
            "message",
            ["chat", "id"],
            [
                (["chat"], chats), (["id", "n"], 1...messages.upperBound),
                (["sender", "device"], counts), (["status"], small),
                (["updated", "changed"], times), (["reply_to"], messages), (["poll"], positive),
            ]
        ),
        Numbers(
            "message_hidden",
            ["user_id", "chat", "message"],
            [(["user_id"], ids), (["chat"], chats), (["message"], messages), (["ct"], times)]
        ),
        Numbers(
            "delayed_message",
            ["user_id", "peer", "id"],
            [
                (["user_id"], ids), (["peer"], chats), (["id", "reply_to"], messages),
                (["fire", "updated"], times), (["failed", "notify"], small),
                (["device", "bytes"], counts), (["poll"], positive),
            ]
        ),
        Numbers(
            "delayed_key",
            ["user_id", "peer"],
            [
                (["user_id"], ids), (["peer"], chats), (["device"], counts), (["id"], messages),
                (["ct"], times),
            ]
        ),
        Numbers(
            "draft",
            ["user_id", "peer"],
            [
                (["user_id"], ids), (["peer"], chats), (["ct", "saved"], times),
            ]
        ),
        Numbers(
            "reaction",
            ["chat", "message", "user_id"],
            [(["chat"], chats), (["message"], messages), (["user_id"], ids)]
        ),
        Numbers(
            "poll_vote",
            ["chat", "message", "user_id"],
            [
                (["chat"], chats), (["message"], messages), (["user_id"], ids),
                (["answer"], small), (["voted"], times),
            ]
        ),
        Numbers(
            "contact",
            ["owner", "user_id"],
            [
                (["owner", "user_id"], ids), (["added", "blocked", "partner"], small),
                (["ct"], times),
            ]
        ),
        Numbers("user_setting", ["user_id"], [(["user_id"], ids)]),
        Numbers("chat_setting", ["user_id", "chat"], [(["user_id"], ids), (["chat"], chats)]),
        Numbers("folder", ["user_id"], [(["user_id"], ids), (["updated"], times)]),
        Numbers("folder_order", ["user_id"], [(["user_id"], ids), (["sync"], times)]),
        Numbers("search_part", ["chat", "part"], [(["chat"], chats), (["part"], counts)]),
        Numbers("search_stale", ["chat", "block"], [(["chat"], chats), (["block"], counts)]),
        Numbers(
            "search_word",
            ["chat", "part"],
            [(["chat"], chats), (["scale"], small), (["part"], counts)]
        ),
        Numbers(
            "report",
            ["id"],
            [
                (["id"], ids), (["reporter", "user_id"], counts), (["chat"], chats),
                (["message"], messages), (["created"], times),
            ]
        ),
        Numbers(
            "audit",
            ["id"],
            [
                (["id", "n", "times"], ids), (["kind"], small), (["user_id"], counts),
                (["created", "last"], times),
            ]
        ),
        Numbers("default_chat", ["chat"], [(["chat"], chats), (["added"], times)]),
        Numbers(
            "announcement",
            ["id"],
            [
                (["id"], ids), (["chat"], chats), (["created"], times), (["up_to"], counts),
                (["message"], messages),
            ]
        ),
        Numbers("measurement", ["day"], [(["day", "row_count", "bytes"], counts)]),
        Numbers(
            "object",
            ["user_id", "id"],
            [
                (["user_id"], ids), (["id", "parent"], messages), (["version"], counts),
                (["deleted"], small), (["ct"], times),
            ]
        ),
        Numbers(
            "object_count",
            ["user_id"],
            [
                (["user_id"], ids), (["live", "elements", "replies"], counts),
                (["last_id"], messages),
            ]
        ),
        Numbers("object_reply", ["user_id"], [(["user_id"], ids), (["ct"], times)]),
        Numbers(
            "object_purge",
            ["user_id", "parent"],
            [(["user_id"], ids), (["parent"], messages), (["version"], counts)]
        ),
    ]

    /// The valid ranges of the numbers in `meta`.
    private static let meta: [String: ClosedRange<Int64>] = [
        "ct": times, "ct_lease": times, "restored": times, "changes_unknown": times, "up": times,
        "spared_until": times, "last_session": counts, "last_invitation": counts,
    ]

    /// The maximum number of reported rows per table.
    static let maxRows = 100

    static func impossibleNumbers(in store: StoreConnection) throws -> [String] {
        var problems: [String] = []
        for (name, value) in try metaValues(store.sql) {
            guard let range = meta[name], !range.contains(value) else { continue }
            problems.append(
                "meta \(name): \(value) is no \(range == times ? "time" : "id")"
            )
        }
        for table in numbers { problems += try impossible(table, in: store.sql) }
        return problems
    }

    /// Scans a table once and returns its invalid rows.
    private static func impossible(
        _ table: Numbers,
        in sql: any SQLConnection
    ) throws -> [String] {
        let columns = (table.keys + table.ranges.map(\.column)).joined(separator: ", ")
        let isImpossible = table.ranges.map { column, range in
            range.upperBound == .max
                ? "\(column) < \(range.lowerBound)"
                : "\(column) NOT BETWEEN \(range.lowerBound) AND \(range.upperBound)"
        }
        let statement = try sql.prepare(
            """
            SELECT \(columns) FROM \(table.table)
            WHERE \(isImpossible.joined(separator: " OR ")) LIMIT \(maxRows)
            """
        )
        defer { statement.reset() }
        var problems: [String] = []
        while try statement.step() {
            let key = table.keys.indices.map { " \(statement.int($0))" }.joined()
            for (index, (column, range)) in table.ranges.enumerated() {
                let place = table.keys.count + index
                guard !statement.isNull(place), !range.contains(statement.int(place)) else {
                    continue
                }
                problems.append("\(table.table)\(key): \(column) is \(statement.int(place))")
            }
        }
        return problems
    }

    private static func metaValues(_ sql: any SQLConnection) throws -> [(String, Int64)] {
        let query: SQLQuery<MetaColumn> = try sql.query(
            "SELECT \(MetaColumn.list) FROM meta ORDER BY k"
        )
        return try query.all(read: { ($0.string(.k), $0.int(.v)) })
    }
}

private enum MetaColumn: Int, SQLColumn {
    case k, v
}
