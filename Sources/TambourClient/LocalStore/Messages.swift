import Foundation
import GRDB
import TambourProtocol

/// Messages as the server last sent them. Unconfirmed changes of this device are overlays.
extension StoreTransaction {
    /// Stores a message unless the stored version is newer.
    ///
    /// Edits are ordered by the edit time in the message. Reactions have no time. Of two versions
    /// with the same edit time, the version received later therefore wins.
    /// - Parameters:
    ///   - revision: the revision at which the message was received; for a page, the revision of
    ///     its request.
    ///   - isPushed: whether the message comes from a push. A push has the same bytes for all
    ///     members and therefore lacks the account's own reaction.
    func put(_ message: Message, in chat: ChatID, revision: Int64, isPushed: Bool) throws {
        let version = message.updateTime ?? 0
        let known = try row(
            "SELECT updateTime, revision, data FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.id.rawValue]
        )
        var message = message
        if let sender = message.sender { strangers.insert(sender) }
        for attach in message.shownAttaches where attach.type == .control {
            strangers.formUnion(attach.userIDs ?? [])
            if let user = attach.userID { strangers.insert(user) }
        }
        if let known {
            let held: (version: Int64, revision: Int64) = (known["updateTime"], known["revision"])
            guard (version, revision) >= held else {
                let old = Message(stored: known["data"])
                let isSame = old?.reactionInfo?.stored == message.reactionInfo?.stored
                if version == held.version, !isSame { outrun.append(message.id) }
                return
            }
            if isPushed, let old = Message(stored: known["data"]) { message.keepReaction(of: old) }
        }
        message.chatID = nil
        try execute(
            """
            INSERT INTO message (chat, id, sender, cid, updateTime, revision, text, data, replyTo)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (chat, id) DO UPDATE SET
              updateTime = excluded.updateTime, revision = excluded.revision, text = excluded.text,
              data = excluded.data, cid = coalesce(excluded.cid, cid), replyTo = excluded.replyTo
            """,
            [
                chat.rawValue, message.id.rawValue, message.sender?.rawValue, message.cid, version,
                revision, "\(message.text)", message.storedBytes,
                message.answered(in: message.link == nil ? chat : place(of: chat).chat)?.rawValue,
            ]
        )
        changes.histories.insert(chat)
        // The newest message appears in the list of chats.
        let newest = try row(
            "SELECT 1 FROM chat WHERE id = ? AND lastMessage = ?",
            [chat.rawValue, message.id.rawValue]
        )
        if newest != nil { changes.chats.insert(chat) }
    }

    /// Changes a stored message. Does nothing if the message is not stored.
    func change(
        _ message: MessageID,
        in chat: ChatID,
        revision: Int64,
        _ body: (inout Message) -> Void
    ) throws {
        guard var held = try self.message(message, in: chat) else { return }
        body(&held)
        try execute(
            "UPDATE message SET revision = ?, data = ? WHERE chat = ? AND id = ?",
            [revision, held.storedBytes, chat.rawValue, message.rawValue]
        )
        changes.histories.insert(chat)
    }

    func removeMessage(_ message: MessageID, in chat: ChatID) throws {
        try execute(
            "DELETE FROM message WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        )
        changes.histories.insert(chat)
        if chat.isGroup { try removeComments(on: message) }
    }
}

extension Message {
    /// The message of the same chat that this message answers.
    func answered(in chat: ChatID) -> MessageID? {
        guard let link = link?.stored, link.type == .reply else { return nil }
        // A server may omit the chat and send 0.
        guard link.chatID == chat || link.chatID.rawValue == 0 else { return nil }
        return link.messageID ?? link.message.id
    }

    /// Keeps the account's own reaction, which a push lacks.
    fileprivate mutating func keepReaction(of old: Message) {
        guard let own = old.reactionInfo?.stored?.yourReaction else { return }
        guard var info = reactionInfo?.stored else { return }
        info.yourReaction = own
        reactionInfo = Packed(info)
    }
}
