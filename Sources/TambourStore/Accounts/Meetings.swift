package import TambourProtocol
import TambourSQL

/// How much a viewer may learn about a user.
package enum Nearness: Comparable, Sendable {
    /// The viewer may learn nothing: the user looks like an id that no user has.
    case stranger
    /// The viewer may see only the profile.
    case met
    /// The viewer may see the profile. The viewer may also see the presence, if the user shows it
    /// and has not blocked the viewer.
    case near
}

/// The numbers of rows through which the viewer `$1` may have met the user `$2`. Each count ends at
/// `$3`.
enum TraceColumn: Int, SQLColumn {
    case groups, former, named, ownPublic, requests

    var sql: String {
        switch self {
        case .groups: Self.count("SELECT 1 FROM member WHERE user_id = $2 AND chat < 0")
        case .former: Self.count("SELECT 1 FROM former_member WHERE user_id = $2")
        case .named: Self.count("SELECT 1 FROM introduction WHERE user_id = $2")
        case .ownPublic:
            Self.count("SELECT 1 FROM chat WHERE owner = $2 AND is_public = 1", limit: "1")
        // The permission with the value 2 allows an administrator to decide join requests.
        case .requests:
            """
            (SELECT count(*)
             FROM (SELECT chat FROM join_request WHERE user_id = $2 LIMIT $3) AS r
             CROSS JOIN member m CROSS JOIN chat c
             WHERE m.user_id = $1 AND m.chat = r.chat AND c.id = r.chat
               AND (c.owner = $1 OR m.permissions % 4 >= 2))
            """
        }
    }

    static func count(_ rows: String, limit: String = "$3") -> String {
        "(SELECT count(*) FROM (\(rows) LIMIT \(limit)) AS part)"
    }
}

/// The statements that find out where two users have met.
struct MeetingStatements {
    let chats: any SQLStatement
    let traces: SQLQuery<TraceColumn>
    let together: any SQLStatement
    /// Finds a group of which the first user is a member and the second user is a former member.
    /// `leftByFirst` does the same with the two users exchanged.
    let left: any SQLStatement
    let leftByFirst: any SQLStatement
    /// Finds a chat of which the first user is a member and in which a message names the second
    /// user. `firstNamed` does the same with the two users exchanged.
    let named: any SQLStatement
    let firstNamed: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let rows = "SELECT 1 FROM member WHERE user_id = $1"
        chats = try sql.prepare("SELECT \(TraceColumn.count(rows, limit: "$2"))")
        traces = try sql.query("SELECT \(TraceColumn.list)")
        // Scans the rows of the first user and looks up the rows of the second user. CROSS JOIN
        // makes SQLite keep this order. Members of a channel do not see each other.
        together = try sql.prepare(
            """
            SELECT 1
            FROM (SELECT chat, permissions FROM member
                  WHERE user_id = $1 AND chat < 0 LIMIT $3) AS x
            CROSS JOIN member y CROSS JOIN chat c
            WHERE y.user_id = $2 AND y.chat = x.chat AND c.id = x.chat
              AND (c.kind = 2 OR CAST($4 AS bigint) = 0 AND (c.owner = $1 OR c.owner = $2
                OR x.permissions > 0 OR y.permissions > 0))
            LIMIT 1
            """
        )
        func shared(_ first: String, _ second: String, onlyGroups: Bool) -> String {
            """
            SELECT 1 FROM (SELECT chat FROM \(first) WHERE user_id = $1 LIMIT $3) AS x
            CROSS JOIN \(second) y \(onlyGroups ? "CROSS JOIN chat c" : "")
            WHERE y.user_id = $2 AND y.chat = x.chat
              \(onlyGroups ? "AND c.id = x.chat AND c.kind = 2" : "")
            LIMIT 1
            """
        }
        left = try sql.prepare(shared("member", "former_member", onlyGroups: true))
        leftByFirst = try sql.prepare(shared("former_member", "member", onlyGroups: true))
        named = try sql.prepare(shared("member", "introduction", onlyGroups: false))
        firstNamed = try sql.prepare(shared("introduction", "member", onlyGroups: false))
    }
}

/// Decides how much the viewer may learn about each user of one request.
///
/// Evaluates the users in the order of the request. After it has compared `maxComparedRows` rows,
/// every further user who is not a contact counts as a stranger.
package struct Meetings {
    package let viewer: UserID
    /// The viewer's number of chats, at most `maxComparedChats`; nil until it is needed.
    private var chats: Int64?
    private let maxChats: Int64
    private var rows: Int64

    package init(of viewer: UserID, limits: Limits) {
        self.viewer = viewer
        maxChats = Int64(limits.maxComparedChats)
        rows = Int64(limits.maxComparedRows)
    }

    /// Whether a user is at least as near to the viewer as `wanted`.
    ///
    /// The same statements run for unknown users and for strangers, so the time of an answer
    /// reveals little about which users exist.
    ///
    /// - Parameter contact: the contact that the viewer has for the user; nil if no user has this
    ///   id.
    package mutating func isAtLeast(
        _ wanted: Nearness,
        _ user: UserID,
        as contact: Contact?,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        if user == viewer { return true }
        if let contact {
            if contact.nearness >= wanted { return true }
            // An erased account reveals only that it existed.
            if contact.account.isErased, wanted <= .met { return true }
        }
        guard rows > 0 else { return false }
        let own = try chats ?? snapshot.chatCount(of: viewer, atMost: maxChats)
        if chats == nil { compared(own, in: snapshot) }
        chats = own
        let traces = try snapshot.traces(of: user, for: viewer, limit: own + 1)
        compared(traces.groups + traces.former + traces.named + 1, in: snapshot)
        if try snapshot.areTogether(viewer, user, own, traces.groups, wanted, maxChats) {
            return true
        }
        guard wanted <= .met else { return false }
        if traces.ownsPublic || traces.asksToJoin { return true }
        return try snapshot.isShared(viewer, user, own, traces.former, .left, maxChats)
            || snapshot.isShared(viewer, user, own, traces.named, .named, maxChats)
    }

    private mutating func compared(_ count: Int64, in snapshot: ReadTransaction) {
        rows -= count
        // Each row is counted and then looked up. Looking up a row takes about as long as counting
        // several rows, so each row counts as four.
        snapshot.store.noteCounted(4 * Int(clamping: count))
    }
}

extension Contact {
    /// The nearness that follows from the contact alone. A former contact still counts as met.
    var nearness: Nearness {
        isAdded || isPartner ? .near : wasMet ? .met : .stranger
    }
}

/// The numbers of a user's rows through which other users may have met this user. Each count ends
/// at a limit.
private struct Traces {
    var groups: Int64 = 0
    var former: Int64 = 0
    var named: Int64 = 0
    var ownsPublic = false
    var asksToJoin = false
}

private enum SharedPlace {
    case left, named
}

extension ReadTransaction {
    fileprivate func chatCount(of user: UserID, atMost limit: Int64) throws -> Int64 {
        try store.meetings.chats.oneInt {
            $0.bind(1, user.rawValue)
            $0.bind(2, limit)
        } ?? 0
    }

    fileprivate func traces(of user: UserID, for viewer: UserID, limit: Int64) throws -> Traces {
        try store.meetings.traces.one {
            $0.bind(1, viewer.rawValue)
            $0.bind(2, user.rawValue)
            $0.bind(3, limit)
        } read: {
            Traces(
                groups: $0.int(.groups),
                former: $0.int(.former),
                named: $0.int(.named),
                ownsPublic: $0.int(.ownPublic) > 0,
                asksToJoin: $0.int(.requests) > 0
            )
        } ?? Traces()
    }

    /// - Parameters:
    ///   - own: the viewer's number of chats.
    ///   - others: the number of groups and channels of the user, at most `own + 1`.
    fileprivate func areTogether(
        _ viewer: UserID,
        _ user: UserID,
        _ own: Int64,
        _ others: Int64,
        _ wanted: Nearness,
        _ limit: Int64
    ) throws -> Bool {
        guard own > 0, others > 0 else { return false }
        let (first, second) = own < others ? (viewer, user) : (user, viewer)
        let statement = store.meetings.together
        statement.bind(4, wanted == .near ? 1 : 0)
        return try isFound(by: statement, first, second, limit)
    }

    fileprivate func isShared(
        _ viewer: UserID,
        _ user: UserID,
        _ own: Int64,
        _ others: Int64,
        _ place: SharedPlace,
        _ limit: Int64
    ) throws -> Bool {
        guard own > 0, others > 0 else { return false }
        let meetings = store.meetings
        let isOwnFirst = own < others
        let statement =
            switch place {
            case .left: isOwnFirst ? meetings.left : meetings.leftByFirst
            case .named: isOwnFirst ? meetings.named : meetings.firstNamed
            }
        let (first, second) = isOwnFirst ? (viewer, user) : (user, viewer)
        return try isFound(by: statement, first, second, limit)
    }

    private func isFound(
        by statement: any SQLStatement,
        _ first: UserID,
        _ second: UserID,
        _ limit: Int64
    ) throws -> Bool {
        try statement.hasRow {
            $0.bind(1, first.rawValue)
            $0.bind(2, second.rawValue)
            $0.bind(3, limit)
        }
    }
}
