import Foundation
import GRDB
import TambourProtocol

/// A chat with all values that the list of chats shows.
struct ListedChat {
    let id: ChatID
    let type: String
    let status: ChatStatus
    let title: String?
    let lastEventMs: Int64
    let othersReadMark: Int64
    let unread: Int64
    /// The end of the mute, in Unix milliseconds; 0 if the chat is not muted, -1 if it is muted for
    /// ever.
    let mutedUntil: Int64
    /// The number that orders the pinned chats; 0 if the chat is not pinned.
    let favourite: Int64
    let draft: String?
    /// The number of messages and changes that the server refused, plus the number of scheduled
    /// messages that the server could not send.
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

    /// The unsent message after the newest message of the chat, if any. A queued message always
    /// comes last. A refused message counts only if it is newer than all received messages.
    var unsent: (shown: SendTask.Shown, isRefused: Bool)? {
        guard let own = waiting ?? refused,
            let shown = try? JSONDecoder().decode(SendTask.Shown.self, from: own)
        else { return nil }
        return (shown, waiting == nil)
    }

    /// The newest message on the server.
    var message: Message? { newest.flatMap { Message(stored: $0) } }
}

extension StoreReading {
    /// Returns the list of chats: first pinned chats, then the other chats by time, newest first.
    func chatList(includingHidden: Bool, limit: Int?) throws -> [ListedChat] {
        let hidden = includingHidden ? "" : " AND chat.status != 'HIDDEN'"
        // A negative limit means no limit.
        return try rows(ChatListQuery.chats + hidden + ChatListQuery.order, [limit ?? -1])
            .map { ListedChat($0) }
    }

    /// Returns a chat of the list; nil for a chat outside of the list.
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
           WHERE overlay.chat = chat.id AND task.state LIKE 'failed%')
          + (SELECT count(*) FROM scheduled JOIN scheduled_list USING (chat)
             WHERE scheduled.chat = chat.id AND scheduled.time <= scheduled_list.failed) AS failed,
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
