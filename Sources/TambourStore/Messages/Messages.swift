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
    /// An upper estimate of the message's size on the wire, in bytes.
    package var wireSizeEstimate: Int {
        200 + text.bytes.count + (elements?.bytes.count ?? 0) + attaches.bytes.count
            + (link?.bytes.count ?? 0) + (reactionInfo.map { 16 + $0.bytes.count } ?? 0)
    }
}

/// A reader of a chat, and the message at which the reader's view of the chat starts. Together they
/// determine what the reader sees.
package struct Viewpoint: Sendable {
    package let user: UserID
    /// The last message that is hidden from the user. All earlier messages are hidden too.
    package let floor: MessageID

    package init(user: UserID, floor: MessageID) {
        self.user = user
        self.floor = floor
    }
}

extension ChatView {
    package var viewpoint: Viewpoint { Viewpoint(user: viewer, floor: floor) }
}

/// The newest message of a chat, even if it is removed.
package struct ChatHead: Sendable {
    /// The id of the message; 0 in an empty chat. Before the first comment on a post is stored, the
    /// chat of its comments has the id of the post here.
    package var id: MessageID
    /// The dense number of this message; 0 in an empty chat.
    package var number: Int64

    static let empty = ChatHead(id: MessageID(0), number: 0)
}

extension ChatHead {
    init(row: SQLRow<MessageNumberColumn>) {
        self.init(id: MessageID(row.int(.id)), number: row.int(.n))
    }
}

/// A page of history, the oldest message first.
package struct HistoryPage: Sendable {
    package var messages: [Message] = []
    /// Whether, in a requested direction, messages exist that are not on the page.
    package var more = false

    package init() {}
}

extension MessageID {
    /// Returns the largest possible message id of a millisecond. Accepts any 64-bit number as
    /// `time`.
    package static func last(at time: Int64) -> MessageID {
        if time < 0 { return MessageID(0) }
        if time >= Int64.max >> 16 { return MessageID(.max) }
        return MessageID(time << 16 | 0xFFFF)
    }
}

extension MessageRecord {
    /// Returns the message object for the wire. Only the author of a post may know who wrote it.
    /// For other users, the object therefore omits everything by which they could recognize the
    /// author.
    ///
    /// - Parameter viewer: the user who receives the object; nil for all members.
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
