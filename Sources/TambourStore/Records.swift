package import TambourProtocol

/// What kind of chat a row of `chat` is.
package enum ChatKind: Int64, CaseIterable, Sendable {
    case dialog = 0
    case saved = 1
    case group = 2
    case channel = 3
    /// The comments on one post of a channel, whose members and rights are the channel's.
    case comments = 4

    /// Two people, or one with themselves: nobody joins or leaves.
    package var isPair: Bool { self == .dialog || self == .saved }

    /// People join and leave, and the first message says who made it.
    package var isJoined: Bool { self == .group || self == .channel }
}

/// Where a message stands; the raw values are those of the column `status`.
package enum StoredStatus: Int64, Sendable {
    case plain = 0
    case edited = 1
    /// Deleted for all. The row stays without its content, so ids and numbers never fall back.
    case removed = 2
}

/// A registered user as the store keeps it.
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
    /// Nothing but the id is left; counts as blocked.
    package let isErased: Bool
    /// When the user was last online, Unix milliseconds; 0 for never.
    package let seen: Int64
    /// What the user says about themselves.
    package let description: String?
    package let privacy: Privacy
    /// Rises with every change of the user's settings; 0 before the first.
    package let settingsVersion: Int64
}

/// A login: who, on which device, seen when.
package struct SessionRecord: Sendable {
    package let id: SessionID
    package let userID: UserID
    package let deviceID: DeviceID
    package let created: Int64
    package let lastSeen: Int64
    package let client: String
    package let info: String
    package let address: String
    /// The name of the dialect that its client speaks; empty for none of its own.
    package let dialect: String

    /// About how many bytes it takes in the reply to 96, never fewer.
    package var wireSizeEstimate: Int {
        96 + client.utf8.count + info.utf8.count + address.utf8.count
    }
}

/// What a client says about itself when it signs in; stored with the session and shown by 96.
package struct SessionOrigin: Sendable {
    /// The client's own stable name for this installation.
    package let installation: String
    package let client: String
    package let info: String
    package let address: String
    /// The name of the dialect that it speaks; empty for none of its own.
    package var dialect: String

    package init(
        installation: String,
        client: String,
        info: String,
        address: String,
        dialect: String = ""
    ) {
        self.installation = installation
        self.client = client
        self.info = info
        self.address = address
        self.dialect = dialect
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
    /// Commit clock of the last edit or removal, 0 for none.
    package var updated: Int64
    package var replyTo: MessageID?
    package var text: Text
    package var elements: Packed<[Element]>?
    package var attaches: Packed<[Attach]>?
    /// The snapshot a forward carries, as the link travels.
    package var forward: Packed<MessageLink>?
    /// The counters of its reactions, as they travel; nil for none.
    package var reactions: Packed<ReactionInfo>?
    /// Nil when there is no poll among the attachments.
    package var poll: PollMark?
}

/// What a handler asks the store to append: everything of a message that the store does not give.
package struct MessageDraft: Sendable {
    package var cid: Int64
    package var text: Text
    package var elements: Packed<[Element]>?
    package var attaches: Packed<[Attach]>?
    /// Nil when there is no poll among the attachments.
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
