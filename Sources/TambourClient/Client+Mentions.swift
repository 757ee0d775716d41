import Foundation
import GRDB
public import TambourProtocol

/// Where people speak of this account, and how it speaks of them.
extension Client {
    /// A stretch of a text that names somebody.
    public struct Mention: Hashable, Sendable {
        public let user: UserID
        /// UTF-16 units from the start of the text.
        public let range: Range<Int>

        public init(user: UserID, range: Range<Int>) {
            self.user = user
            self.range = range
        }
    }

    /// Messages held here that mention this account or answer it, the newest first.
    public func mentions(count: Int = 50) throws(ClientError) -> [Found] {
        try store.read { try Reader($0).mentions(count: count) }
    }
}

extension Reader {
    func mentions(count: Int) throws -> [Client.Found] {
        // There is no index of mentions: the bytes say which messages are worth being read.
        let rows = try Row.fetchCursor(
            db.cachedStatement(
                sql: """
                    SELECT chat, data FROM message
                    WHERE sender IS NOT ? AND (instr(data, CAST('USER_MENTION' AS BLOB)) > 0
                      OR instr(data, CAST('REPLY' AS BLOB)) > 0)
                    ORDER BY id DESC
                    """
            ),
            arguments: [me.rawValue]
        )
        var found: [Client.Found] = []
        while found.count < count, let row = try rows.next() {
            guard let message = Message(stored: row["data"]), message.concerns(me) else { continue }
            let chat = ChatID(row["chat"] as Int64)
            var overlays = try Overlays(of: chat, db)
            if overlays.isDeleted(message.id) { continue }
            let title = try self.chat(chat)?.title ?? ""
            let context = Context(chat: chat, title: title, readMark: 0)
            found.append(
                Client.Found(
                    chat: chat,
                    chatTitle: title,
                    row: self.row(message, context, &overlays)
                )
            )
        }
        return found
    }
}

extension Message {
    /// Whether it mentions somebody or answers them.
    func concerns(_ user: UserID) -> Bool {
        let isMentioned = (elements?.stored ?? []).contains {
            "\($0.type)" == "USER_MENTION" && $0.entityID == user
        }
        if isMentioned { return true }
        guard let link = link?.stored, link.type == .reply else { return false }
        return link.message.sender == user
    }
}

extension [Client.Mention] {
    /// As they travel with a text; nil when there are none.
    var storedElements: Data? {
        guard !isEmpty else { return nil }
        return map(\.element).storedBytes
    }
}

extension Client.Mention {
    /// As it travels with a text.
    var element: TambourProtocol.Element {
        TambourProtocol.Element(
            type: "USER_MENTION",
            from: Int64(range.lowerBound),
            length: Int64(range.count),
            entityID: user
        )
    }
}
