import Foundation
import GRDB
import TambourProtocol

/// Reads chats and people from one snapshot of the store.
struct Reader {
    let db: Database
    let me: UserID
    private let names: Names

    init(_ db: Database) throws {
        self.db = db
        let user = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM setting WHERE name = 'user'")
        )
        me = UserID(user ?? 0)
        names = Names()
    }

    /// A cache of names.
    private final class Names {
        var known: [UserID: String] = [:]
    }

    /// The name of a person, or their number if nothing about them is stored.
    func name(_ user: UserID) -> String {
        if let known = names.known[user] { return known }
        let statement = try? db.cachedStatement(sql: "SELECT name FROM person WHERE id = ?")
        let found = statement.flatMap { try? String.fetchOne($0, arguments: [user.rawValue]) }
        let name = found.flatMap { $0.isEmpty ? nil : $0 } ?? "user \(user)"
        names.known[user] = name
        return name
    }

    // MARK: - Chats

    /// The list of chats: pinned ones first, then by time, newest first.
    func chats(includingHidden: Bool, limit: Int? = nil) throws -> [ChatSummary] {
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: Self.chatsQuery + (includingHidden ? "" : Self.notHidden) + Self.order
                    + " LIMIT ?"
            ),
            // A negative limit means no limit.
            arguments: [limit ?? -1]
        )
        return try rows.map(summary)
    }

    func chat(_ chat: ChatID) throws -> ChatSummary? {
        try Row.fetchOne(
            db.cachedStatement(sql: Self.chatsQuery + " AND chat.id = ?" + Self.order),
            arguments: [chat.rawValue]
        ).map(summary)
    }

    private static let notHidden = " AND chat.status != 'HIDDEN'"
    private static let order = " ORDER BY favourite = 0, favourite, lastEventTime DESC, chat.id"
    private static let chatsQuery = """
        SELECT chat.*, draft.text AS draftText, message.data AS messageData,
          (SELECT count(*) FROM overlay JOIN task ON task.id = overlay.task
           WHERE overlay.chat = chat.id AND task.state LIKE 'failed%') AS failed,
          (SELECT overlay.value FROM overlay JOIN task ON task.id = overlay.task
           WHERE overlay.chat = chat.id AND overlay.kind = 'send' AND task.state NOT LIKE 'failed%'
           ORDER BY task.place DESC LIMIT 1) AS waiting,
          (SELECT overlay.value FROM overlay JOIN task ON task.id = overlay.task
           WHERE overlay.chat = chat.id AND overlay.kind = 'send' AND task.state LIKE 'failed%'
             AND overlay.createdAtHere > COALESCE(chat.lastMessage, 0) >> 16
           ORDER BY task.place DESC LIMIT 1) AS refused
        FROM chat
        LEFT JOIN draft ON draft.chat = chat.id
        LEFT JOIN message ON message.chat = chat.id AND message.id = chat.lastMessage
        WHERE chat.status != 'LEFT'
        """

    private func summary(_ row: Row) throws -> ChatSummary {
        let id = ChatID(row["id"])
        let kind = kind(of: id, type: row["type"])
        let favourite: Int64 = row["favourite"]
        let muted: Int64 = row["mutedUntil"]
        var isOnline = false
        if case .dialog(let partner) = kind {
            isOnline =
                try Bool.fetchOne(
                    db.cachedStatement(sql: "SELECT isOnline FROM person WHERE id = ?"),
                    arguments: [partner.rawValue]
                ) ?? false
        }
        return ChatSummary(
            id: id,
            kind: kind,
            title: title(of: kind, row["title"]),
            unread: Int(count: row["unread"] as Int64),
            isMuted: muted != 0 && (muted < 0 || muted > row["lastEventTime"]),
            isPinned: favourite != 0,
            isHidden: row["status"] == "HIDDEN",
            isGone: row["status"] == "REMOVED",
            isOnline: isOnline,
            lastEventMs: row["lastEventTime"],
            preview: preview(of: row),
            draft: row["draftText"],
            failedCount: Int(count: row["failed"] as Int64)
        )
    }

    private func kind(of chat: ChatID, type: String) -> ChatSummary.Kind {
        if chat.isGroup { return type == "CHANNEL" ? .channel : .group }
        guard let partner = chat.partner(of: me), partner != me else { return .savedMessages }
        return .dialog(partner: partner)
    }

    private func title(of kind: ChatSummary.Kind, _ title: String?) -> String {
        switch kind {
        case .dialog(let partner): name(partner)
        case .savedMessages: "Saved messages"
        case .group, .channel: title ?? ""
        }
    }

    private func preview(of row: Row) -> ChatSummary.Preview? {
        // A queued message comes after all others; a refused one stays where it was.
        let waiting = row["waiting"] as Data?
        if let own = waiting ?? row["refused"] as Data?,
            let shown = try? JSONDecoder().decode(SendTask.Shown.self, from: own)
        {
            let state: MessageState = waiting == nil ? .failed(reason: "") : .waiting
            return ChatSummary.Preview(
                sender: name(me),
                isOwn: true,
                text: shown.line,
                state: state
            )
        }
        guard let data = row["messageData"] as Data?, let message = Message(stored: data) else {
            return nil
        }
        let isEvent = message.eventText(name: name) != nil
        return ChatSummary.Preview(
            sender: isEvent ? nil : message.sender.map(name),
            isOwn: message.sender == me,
            text: message.line(name: name),
            state: state(of: message, readMark: row["othersReadMark"])
        )
    }

    func state(of message: Message, readMark: Int64) -> MessageState {
        guard message.sender == me else { return .received }
        return message.time <= readMark ? .read : .sent
    }

    // MARK: - People

    func people() throws -> [Person] {
        try Row.fetchAll(
            db.cachedStatement(sql: "SELECT * FROM person WHERE isContact ORDER BY name, id")
        ).map(person)
    }

    func person(_ user: UserID) throws -> Person? {
        try Row.fetchOne(
            db.cachedStatement(sql: "SELECT * FROM person WHERE id = ?"),
            arguments: [user.rawValue]
        ).map(person)
    }

    private func person(_ row: Row) -> Person {
        let user = User(stored: row["data"])
        return Person(
            id: UserID(row["id"]),
            name: row["name"],
            isContact: row["isContact"],
            isOnline: row["isOnline"],
            seenMs: row["seen"],
            phone: user?.phone.map { "\($0)" },
            about: user?.description.map { "\($0)" },
            link: user?.link.map { "\($0)" }
        )
    }
}
