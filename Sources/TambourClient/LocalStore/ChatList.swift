import Foundation
import GRDB
import TambourProtocol

/// A chat of the list with everything that the list shows of it.
struct ListedChat {
    let id: ChatID
    let type: String
    let status: ChatStatus
    let title: String?
    let lastEventMs: Int64
    let othersReadMark: Int64
    let unread: Int64
    /// -1 for ever, 0 for not muted, else until this time in Unix milliseconds.
    let mutedUntil: Int64
    /// 0 for not pinned.
    let favourite: Int64
    let draft: String?
    /// The number of messages and changes that could not be sent.
    let failed: Int64
    private let waiting: Data?
    private let refused: Data?
    private let newest: Data?

    fileprivate init(_ row: Row) {
        id = ChatID(row["id"])
        type = row["type"]
        status = ChatStatus(name: Text(row["status"] as String))
        title = row["title"]
        lastEventMs = row["lastEventTime"]
        othersReadMark = row["othersReadMark"]
        unread = row["unread"]
        mutedUntil = row["mutedUntil"]
        favourite = row["favourite"]
        draft = row["draftText"]
        failed = row["failed"]
        waiting = row["waiting"]
        refused = row["refused"]
        newest = row["messageData"]
    }

    /// A message of this device that comes after all others: a queued one, else one that was
    /// refused, which stays where it was.
    var unsent: (shown: SendTask.Shown, isRefused: Bool)? {
        guard let own = waiting ?? refused,
            let shown = try? JSONDecoder().decode(SendTask.Shown.self, from: own)
        else { return nil }
        return (shown, waiting == nil)
    }

    /// The newest message that the server has.
    var message: Message? { newest.flatMap { Message(stored: $0) } }
}

extension StoreReading {
    /// The list of chats: pinned ones first, then by time, newest first.
    func chatList(includingHidden: Bool, limit: Int?) throws -> [ListedChat] {
        let hidden = includingHidden ? "" : " AND chat.status != 'HIDDEN'"
        // A negative limit means no limit.
        return try rows(ChatListQuery.chats + hidden + ChatListQuery.order, [limit ?? -1])
            .map { ListedChat($0) }
    }

    /// A chat of the list; nil for one that is not in the list.
    func listedChat(_ chat: ChatID) throws -> ListedChat? {
        try row(ChatListQuery.chats + " AND chat.id = ?", [chat.rawValue]).map { ListedChat($0) }
    }
}

private enum ChatListQuery {
    static let order =
        " ORDER BY favourite = 0, favourite, lastEventTime DESC, chat.id LIMIT ?"
    static let chats = """
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
}
