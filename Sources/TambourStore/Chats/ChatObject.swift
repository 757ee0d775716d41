package import TambourProtocol

/// The parts from which a `Chat` for the wire is built. No other code builds a `Chat`.
///
/// Every caller must set the fields without a default; the compiler reports a forgotten field.
package struct ChatObject {
    package let id: ChatID
    package let kind: ChatKind
    package var status = ChatStatus.active
    package let owner: UserID
    /// Unix milliseconds.
    package let created: Int64
    /// The time at which the receiver joined, Unix milliseconds.
    package let joined: Int64
    /// The commit clock of the last change that the receiver can see.
    package let modified: Int64
    /// The time of the newest message, Unix milliseconds. If the chat has never had a message, its
    /// creation time. For a former member, the end of the membership.
    package let lastEvent: Int64
    /// The read mark that the receiver sees for each member. For a big chat, contains only a few
    /// members at most.
    package let participants: IDMap<UserID, Int64>
    /// Nil omits the details. It is nil for tombstones, and for saved messages before the first
    /// message.
    package let details: Details?
    /// Nil omits the administrators.
    package let admins: [Admin]?
    package let messages: Messages?
    /// The times of the last change of the receiver's scheduled messages and of the last failure to
    /// send one of these messages. Unix milliseconds; 0 for never.
    package var delayed: (updated: Int64, failed: Int64) = (0, 0)

    package struct Details {
        let title: Text?
        let description: Text?
        let memberCount: Int
        /// Nil omits the options.
        let options: RoleTable.Options?
        /// The public name; otherwise the invitation, if the receiver may see it.
        let link: Text?
        /// Whether `link` is a public name.
        let isPublic: Bool
        /// The reactions that the chat allows; nil for all.
        let reactions: Packed<ChatReactionsSettings>?

        package init(
            title: Text?,
            description: Text?,
            memberCount: Int,
            options: RoleTable.Options?,
            link: Text?,
            isPublic: Bool,
            reactions: Packed<ChatReactionsSettings>?
        ) {
            self.title = title
            self.description = description
            self.memberCount = memberCount
            self.options = options
            self.link = link
            self.isPublic = isPublic
            self.reactions = reactions
        }
    }

    /// The messages and counts that the receiver sees.
    package struct Messages {
        let last: Message?
        /// The id of the message before the last message; nil omits it.
        let previous: MessageID?
        let pinned: Message?
        /// The number of unread messages; nil omits the number.
        let unread: Int64?

        package init(last: Message?, previous: MessageID?, pinned: Message?, unread: Int64?) {
            self.last = last
            self.previous = previous
            self.pinned = pinned
            self.unread = unread
        }
    }

    package init(
        id: ChatID,
        kind: ChatKind,
        owner: UserID,
        created: Int64,
        joined: Int64,
        modified: Int64,
        lastEvent: Int64,
        participants: IDMap<UserID, Int64>,
        details: Details?,
        admins: [Admin]?,
        messages: Messages?
    ) {
        self.id = id
        self.kind = kind
        self.owner = owner
        self.created = created
        self.joined = joined
        self.modified = modified
        self.lastEvent = lastEvent
        self.participants = participants
        self.details = details
        self.admins = admins
        self.messages = messages
    }

    /// The object for the wire.
    package var wire: Chat {
        let shown = kind.isJoined ? details : nil
        return Chat(
            id: id,
            type: kind.onWire,
            status: status,
            owner: owner,
            participants: participants,
            title: details?.title,
            lastMessage: messages?.last,
            lastEventTime: lastEvent,
            lastDelayedUpdateTime: delayed.updated,
            lastFireDelayedErrorTime: delayed.failed,
            created: created,
            joinTime: joined,
            modified: modified,
            newMessages: messages?.unread,
            participantsCount: shown.map { Int64($0.memberCount) },
            prevMessageID: messages?.previous,
            access: shown.map { $0.isPublic ? .public : .private },
            link: details?.link,
            description: details?.description,
            options: shown?.options?.onWire,
            pinnedMessage: messages?.pinned,
            admins: admins.map { [owner] + $0.map(\.id) },
            adminParticipants: admins.map { .admins($0, owner: owner) },
            reactions: details?.reactions
        )
    }
}

extension Chat {
    /// Returns the tombstone of a group or channel for a former member.
    ///
    /// - Parameter ct: the commit clock at the end of the membership.
    package static func left(
        _ key: ChatKey,
        owner: UserID,
        created: Int64,
        joined: Int64,
        at ct: Int64
    ) -> Chat {
        var chat = ChatObject(
            id: ChatID(key.rawValue),
            kind: ChatID(key.rawValue).isChannel ? .channel : .group,
            owner: owner,
            created: created,
            joined: joined,
            modified: ct,
            lastEvent: ct,
            participants: IDMap([]),
            details: nil,
            admins: nil,
            messages: nil
        )
        chat.status = .removed
        return chat.wire
    }
}
