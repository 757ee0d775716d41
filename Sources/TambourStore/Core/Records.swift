package import TambourEvents
package import TambourProtocol

/// The kind of a chat; the raw values are the values of the column `kind`.
package enum ChatKind: Int64, CaseIterable, Sendable {
    case dialog = 0
    case saved = 1
    case group = 2
    case channel = 3
    /// The comments on one post of a channel; members and rights are the channel's.
    case comments = 4

    /// Whether it is a dialog or saved messages, which users cannot join or leave.
    package var isPair: Bool { self == .dialog || self == .saved }

    /// Whether users join and leave. The first message then records who created the chat.
    package var isJoined: Bool { self == .group || self == .channel }
}

/// The state of a message; the raw values are the values of the column `status`.
package enum StoredStatus: Int64, Sendable {
    case plain = 0
    case edited = 1
    /// Deleted for all users. The row stays without its content, so ids and numbers never decrease.
    case removed = 2
}

/// A registered user as stored.
package struct Account: Sendable {
    package let id: UserID
    /// Digits of the international number, without the plus.
    package let phone: Int64
    package let firstName: String
    package let lastName: String?
    /// Unix milliseconds.
    package let registered: Int64
    /// Commit clock of the last change of the profile.
    package let updated: Int64
    package let isBlocked: Bool
    /// Whether only the id remains; an erased account counts as blocked.
    package let isErased: Bool
    /// When the user was last online, Unix milliseconds; 0 for never.
    package let seen: Int64
    /// The user's description of themselves.
    package let description: String?
    package let privacy: Privacy
    /// Increases with every change of the user's settings; 0 before the first change.
    package let settingsVersion: Int64
}

/// A login: the user, the device, and its last use.
package struct SessionRecord: Sendable {
    package let id: SessionID
    package let userID: UserID
    package let deviceID: DeviceID
    package let created: Int64
    package let lastSeen: Int64
    package let client: String
    package let info: String
    package let address: String
    /// The name of the client's dialect; empty if it uses none.
    package let dialect: String

    /// An upper estimate of the session's bytes in the reply to opcode 96.
    package var wireSizeEstimate: Int {
        96 + client.utf8.count + info.utf8.count + address.utf8.count
    }
}

/// A row of `message`.
package struct MessageRecord: Sendable {
    package let chat: ChatKey
    package let id: MessageID
    /// Dense number in its chat, from 1.
    package let number: Int64
    package let sender: UserID
    package let cid: Int64
    package let device: DeviceID
    package var status: StoredStatus
    /// Commit clock of the last edit or removal; 0 if the message never changed.
    package var updated: Int64
    package var replyTo: MessageID?
    package var text: Text
    package var elements: Packed<[Element]>?
    package var attaches: Packed<[Attach]>?
    /// The snapshot of the forwarded message, encoded as on the wire.
    package var forward: Packed<MessageLink>?
    /// The counters of its reactions, encoded as on the wire; nil if there are no reactions.
    package var reactions: Packed<ReactionInfo>?
    /// Nil if no attachment is a poll.
    package var poll: PollMark?

    package var content: MessageContent {
        MessageContent(
            cid: cid,
            text: text,
            elements: elements,
            attaches: attaches,
            poll: poll,
            replyTo: replyTo,
            forward: forward
        )
    }
}

/// The content of a message, as its author wrote it.
///
/// A handler builds it from a `NewMessage`; the store adds id, number and state to form a
/// `MessageRecord`. A scheduled message contains it too.
package struct MessageContent: Sendable {
    package var cid: Int64
    package var text: Text
    package var elements: Packed<[Element]>?
    package var attaches: Packed<[Attach]>?
    /// Nil if no attachment is a poll.
    package var poll: PollMark?
    package var replyTo: MessageID?
    package var forward: Packed<MessageLink>?

    package init(
        cid: Int64,
        text: Text,
        elements: Packed<[Element]>? = nil,
        attaches: Packed<[Attach]>? = nil,
        poll: PollMark? = nil,
        replyTo: MessageID? = nil,
        forward: Packed<MessageLink>? = nil
    ) {
        self.cid = cid
        self.text = text
        self.elements = elements
        self.attaches = attaches
        self.poll = poll
        self.replyTo = replyTo
        self.forward = forward
    }
}
