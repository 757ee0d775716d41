package import TambourEvents
package import TambourProtocol

/// The kind of a chat; the raw values are the values of the column `kind`.
package enum ChatKind: Int64, CaseIterable, Sendable {
    case dialog = 0
    case saved = 1
    case group = 2
    case channel = 3
    /// The comments on one post of a channel. The members and their rights are the same as in the
    /// channel.
    case comments = 4

    /// Whether the chat is a dialog or saved messages. Users cannot join or leave such a chat.
    package var isPair: Bool { self == .dialog || self == .saved }

    /// Whether users can join and leave the chat. The first message of such a chat records who
    /// created the chat.
    package var isJoined: Bool { self == .group || self == .channel }
}

/// The state of a message; the raw values are the values of the column `status`.
package enum StoredStatus: Int64, Sendable {
    case plain = 0
    case edited = 1
    /// Deleted for all users. The row stays without its content, so the newest id and the newest
    /// number of the chat never decrease.
    case removed = 2
}

/// A registered user as the store contains it.
package struct Account: Sendable {
    package let id: UserID
    /// Digits of the international number, without the plus.
    package let phone: Int64
    package let firstName: String
    package let lastName: String?
    /// Unix milliseconds.
    package let registered: Int64
    /// The commit clock of the last change of the profile.
    package let updated: Int64
    package let isBlocked: Bool
    /// Whether the account is erased, so that only its id remains. An erased account counts as
    /// blocked.
    package let isErased: Bool
    /// The time at which the user was last online, Unix milliseconds; 0 for never.
    package let seen: Int64
    /// The user's description of themselves.
    package let description: String?
    package let privacy: Privacy
    /// Increases with every change of the user's settings; 0 before the first change.
    package let settingsVersion: Int64
}

/// A session: the user, the device, and the last use of the session.
package struct SessionRecord: Sendable {
    package let id: SessionID
    package let userID: UserID
    package let deviceID: DeviceID
    package let created: Int64
    package let lastSeen: Int64
    package let client: String
    package let info: String
    package let address: String
    /// The name of the client's dialect; empty if the client uses no dialect.
    package let dialect: String

    /// An upper estimate of the session's size in the reply to opcode 96, in bytes.
    package var wireSizeEstimate: Int {
        96 + client.utf8.count + info.utf8.count + address.utf8.count
    }
}

/// A row of `message`.
package struct MessageRecord: Sendable {
    package let chat: ChatKey
    package let id: MessageID
    /// The dense number of the message in its chat. The first message has the number 1.
    package let number: Int64
    package let sender: UserID
    package let cid: Int64
    package let device: DeviceID
    package var status: StoredStatus
    /// The commit clock of the last edit or of the removal; 0 if the message has never changed.
    package var updated: Int64
    package var replyTo: MessageID?
    package var text: Text
    package var elements: Packed<[Element]>?
    package var attaches: Packed<[Attach]>?
    /// The copy of the forwarded message, encoded as on the wire.
    package var forward: Packed<MessageLink>?
    /// The counters of the message's reactions, encoded as on the wire; nil if there are no
    /// reactions.
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
/// A handler makes the content from a `NewMessage`. The store adds the id, the number and the
/// state, and thus makes a `MessageRecord`. A scheduled message also contains this content.
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
