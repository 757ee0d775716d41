import Foundation
import GRDB
public import TambourProtocol

/// Mentions of this account, and mentions that it writes.
extension Client {
    /// A range of a text that names somebody.
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
        // There is no index of mentions: a byte search finds the messages worth decoding.
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
    /// Whether it mentions a person or answers one of their messages.
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
    /// The elements in wire format; nil when there are none.
    var storedElements: Data? {
        guard !isEmpty else { return nil }
        return map(\.element).storedBytes
    }
}

extension Client.Mention {
    /// The element in wire format.
    var element: TambourProtocol.Element {
        TambourProtocol.Element(
            type: "USER_MENTION",
            from: Int64(range.lowerBound),
            length: Int64(range.count),
            entityID: user
        )
    }
}
