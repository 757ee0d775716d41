package import TambourEvents
package import TambourProtocol
import TambourSQL

extension MessageRecord {
    init(row: SQLRow<MessageColumn>) {
        self.init(
            chat: ChatKey(row.int(.chat)),
            id: MessageID(row.int(.id)),
            number: row.int(.n),
            sender: UserID(row.int(.sender)),
            cid: row.int(.cid),
            device: DeviceID(row.int(.device)),
            status: StoredStatus(rawValue: row.int(.status)) ?? .plain,
            updated: row.int(.updated),
            replyTo: row.nonZero(.replyTo).map { MessageID($0) },
            text: row.text(.text),
            elements: row.packed(.elements),
            attaches: row.packed(.attaches),
            forward: row.packed(.forward),
            reactions: row.packed(.reactions),
            poll: PollMark(rawValue: row.int(.poll))
        )
    }
}

extension Message {
    /// An upper estimate of the bytes that the message takes on the wire.
    package var wireSizeEstimate: Int {
        200 + text.bytes.count + (elements?.bytes.count ?? 0) + attaches.bytes.count
            + (link?.bytes.count ?? 0) + (reactionInfo.map { 16 + $0.bytes.count } ?? 0)
    }
}

/// A reader of a chat and the start of the reader's view; both determine which data is shown.
package struct Viewpoint: Sendable {
    package let user: UserID
    /// The last message before the user's view of the chat; it and all earlier messages are hidden.
    package let floor: MessageID

    package init(user: UserID, floor: MessageID) {
        self.user = user
        self.floor = floor
    }
}

extension ChatView {
    package var viewpoint: Viewpoint { Viewpoint(user: viewer, floor: floor) }
}

/// The newest message of a chat, even if removed.
package struct ChatHead: Sendable {
    /// Zero in an empty chat; the post's id before the first comment is stored.
    package var id: MessageID
    /// Dense number of this message; 0 in an empty chat.
    package var number: Int64

    static let empty = ChatHead(id: MessageID(0), number: 0)
}

extension ChatHead {
    init(row: SQLRow<MessageNumberColumn>) {
        self.init(id: MessageID(row.int(.id)), number: row.int(.n))
    }
}

/// One page of history, oldest first.
package struct HistoryPage: Sendable {
    package var messages: [Message] = []
    /// True when a requested direction has more messages than the page.
    package var more = false

    package init() {}
}

extension MessageID {
    /// Returns the largest possible message id of a millisecond; safe for any 64-bit input.
    package static func last(at time: Int64) -> MessageID {
        if time < 0 { return MessageID(0) }
        if time >= Int64.max >> 16 { return MessageID(.max) }
        return MessageID(time << 16 | 0xFFFF)
    }
}

extension MessageRecord {
    /// Returns the message object for the wire. The author of a post is secret, except to the
    /// author. The object therefore hides from other users everything that could distinguish the
    /// authors of posts.
    ///
    /// - Parameter viewer: nil for all members.
    package func message(
        at address: MessageAddress,
        link: Packed<MessageLink>?,
        previous: MessageID?,
        reactions: Packed<ReactionInfo>? = nil,
        for viewer: UserID? = nil
    ) -> Message {
        let wireStatus: MessageStatus? =
            switch status {
            case .plain: nil
            case .edited: .edited
            case .removed: .removed
            }
        return Message(
            id: id,
            time: id.timeMs,
            type: address.isOfPosts ? "CHANNEL" : "USER",
            text: text,
            sender: address.isOfPosts ? nil : sender,
            chatID: address.chatID,
            cid: device == .server || address.isOfPosts && viewer != sender ? nil : cid,
            elements: elements,
            attaches: attaches ?? .emptyList,
            link: link,
            status: wireStatus,
            updateTime: updated == 0 ? nil : updated,
            reactionInfo: reactions,
            postID: address.postID,
            prevMessageID: previous
        )
    }
}

extension Packed where Value == [Attach] {
    package static var emptyList: Self { Self(unchecked: Bytes([0x90])) }
}
