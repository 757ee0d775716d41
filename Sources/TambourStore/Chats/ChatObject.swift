package import TambourProtocol

/// Everything that the wire's `Chat` is made of: the one place that builds it.
///
/// What everybody who shows a chat has to decide on has no default: a field that is forgotten does
/// not compile.
package struct ChatObject {
    package let id: ChatID
    package let kind: ChatKind
    package var status = ChatStatus.active
    package let owner: UserID
    /// Unix milliseconds.
    package let created: Int64
    /// When the receiver joined, Unix milliseconds.
    package let joined: Int64
    /// Commit clock of the last change that the receiver can see.
    package let modified: Int64
    /// The time of the newest message, or of the chat itself before the first, Unix milliseconds.
    package let lastEvent: Int64
    /// The read marks that are shown, by member; in big chats those of a few members at most.
    package let participants: IDMap<UserID, Int64>
    /// Nil to omit them: for tombstones, and for saved messages before the first one.
    package let details: Details?
    /// Nil to omit them.
    package let admins: [Admin]?
    package let messages: Messages?
    /// When the receiver's scheduled messages last changed, and when sending one last failed, Unix
    /// milliseconds; 0 for never.
    package var delayed: (updated: Int64, failed: Int64) = (0, 0)

    package struct Details {
        let title: Text?
        let description: Text?
        let memberCount: Int
        /// Nil to omit them.
        let options: RoleTable.Options?
        /// The public name, or the invitation if the receiver may see it.
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

    /// What the receiver is shown of the messages.
    package struct Messages {
        let last: Message?
        /// The id of the message before the last one; nil to omit it.
        let previous: MessageID?
        let pinned: Message?
        /// How many are unread; nil to omit the number.
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

    /// The object as it is sent.
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
    /// - Parameter ct: when the membership ended, commit clock.
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
