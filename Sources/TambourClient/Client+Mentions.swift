import Foundation
import TambourProtocol

/// Messages that mention this account or answer one of its messages.
extension Client {
    /// Returns messages on this device that mention this account or answer one of its messages,
    /// newest first.
    public func mentions(count: Int = 50) throws(ClientError) -> [Found] {
        try store.read { try Reader($0).mentions(count: count) }
    }
}

extension Reader {
    func mentions(count: Int) throws -> [Client.Found] {
        var found: [Client.Found] = []
        guard count > 0 else { return found }
        try store.forEachMessage(concerning: me) { chat, message in
            var overlays = try store.overlays(of: chat)
            if overlays.isDeleted(message.id) { return true }
            let title = try self.chat(chat)?.title ?? ""
            let context = Context(chat: chat, title: title, readMark: 0)
            found.append(
                Client.Found(
                    chat: chat,
                    chatTitle: title,
                    row: self.row(message, context, &overlays)
                )
            )
            return found.count < count
        }
        return found
    }
}

extension Message {
    /// Returns whether the message mentions a person or answers one of that person's messages.
    func concerns(_ user: UserID) -> Bool {
        let isMentioned = (elements?.stored ?? []).contains {
            "\($0.type)" == "USER_MENTION" && $0.entityID == user
        }
        if isMentioned { return true }
        guard let link = link?.stored, link.type == .reply else { return false }
        return link.message.sender == user
    }
}
