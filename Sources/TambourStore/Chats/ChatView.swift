package import TambourEvents
package import TambourProtocol
import TambourSQL

/// A chat as one member sees it, without its messages.
package struct ChatView: Sendable {
    package private(set) var key: ChatKey
    package private(set) var kind: ChatKind
    /// For comments: the post and its channel; nil for other chats.
    package private(set) var post: (channel: ChatKey, id: MessageID)?
    package let viewer: UserID
    /// The other user of a dialog. For saved messages, the viewer. Nil for groups and channels.
    package let partner: UserID?
    package let owner: UserID
    package let title: Text?
    /// Unix milliseconds.
    package let created: Int64
    package let memberCount: Int64
    package let joined: Int64
    /// The viewer's own read mark, Unix milliseconds.
    package let readTime: Int64
    package let readNumber: Int64
    /// The commit clock of the last change that the viewer can see.
    package let modified: Int64
    /// Whether the chat is big: a change updates the chat's own clock instead of every member's
    /// row.
    package let isBig: Bool
    package let description: Text?
    package let options: RoleTable.Options
    package let pinned: MessageID?
    /// The viewer's rights as an administrator.
    package let permissions: RoleTable.Permissions
    /// The last message that is hidden from the viewer. All earlier messages are hidden too.
    package let floor: MessageID
    /// The public name; otherwise the invitation, if the viewer may see it.
    package let link: Text?
    /// Whether `link` is a public name.
    package let isPublic: Bool
    /// The dense number of the message that was the newest when the viewer hid the chat; 0 for
    /// never.
    package let hiddenNumber: Int64
    /// The reactions that the chat allows; nil for all.
    package let reactions: Packed<ChatReactionsSettings>?
    /// The time of the last change of the viewer's scheduled messages, Unix milliseconds; 0 for
    /// never.
    package let delayedUpdated: Int64
    /// The time of the last failure to send one of the viewer's scheduled messages, Unix
    /// milliseconds; 0 for never.
    package let delayedFailed: Int64

    /// The chat id that this viewer sees on the wire.
    package var wireID: ChatID {
        switch kind {
        case .group, .channel, .comments: ChatID((post?.channel ?? key).rawValue)
        case .dialog, .saved: .dialog(viewer, partner ?? viewer)
        }
    }

    /// The address that clients use for the chat's messages.
    package var address: MessageAddress { MessageAddress(chatID: wireID, postID: post?.id) }

    /// Returns the view of the comments on a post of this channel. The viewer's rights and floor
    /// stay the same as in the channel.
    ///
    /// - Parameter key: the key of the comments.
    func comments(on post: MessageID, key: ChatKey) -> ChatView {
        var view = self
        view.post = (self.key, post)
        view.key = key
        view.kind = .comments
        return view
    }

    init(row: SQLRow<ChatViewColumn>) {
        key = ChatKey(row.int(.id))
        kind = ChatKind(rawValue: row.int(.kind)) ?? .group
        viewer = UserID(row.int(.userID))
        partner =
            kind.isPair
            ? UserID(row.int(.lowUser) + row.int(.highUser) - row.int(.userID)) : nil
        owner = UserID(row.int(.owner))
        title = row.optionalText(.title)
        created = row.int(.created)
        memberCount = row.int(.memberCount)
        joined = row.int(.joined)
        readTime = row.int(.readTime)
        readNumber = row.int(.readN)
        isBig = row.bool(.big)
        modified = isBig ? max(row.int(.ctHead), row.int(.ct)) : row.int(.ct)
        description = row.optionalText(.description)
        options = RoleTable.Options(rawValue: row.int(.options))
        pinned = row.nonZero(.pinned).map { MessageID($0) }
        permissions = RoleTable.Permissions(rawValue: row.int(.permissions))
        floor = MessageID(row.int(.floor))
        isPublic = row.bool(.isPublic)
        hiddenNumber = row.int(.hiddenN)
        let place = RoleTable.Place(
            of: viewer,
            in: kind,
            owner: owner,
            permissions: permissions,
            options: options,
            isBanned: false
        )
        let showsLink = isPublic || RoleTable.allows(.seeLink, in: place)
        link = showsLink ? row.optionalText(.link) : nil
        reactions = row.packed(.reactions)
        delayedUpdated = row.int(.delayedUpdated)
        delayedFailed = row.int(.delayedFailed)
    }
}
