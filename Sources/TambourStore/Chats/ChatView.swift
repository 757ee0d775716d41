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
    /// The other user of a dialog; the viewer in saved messages; nil in groups and channels.
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
    /// Commit clock of the last change that the viewer can see.
    package let modified: Int64
    /// Whether the chat is above the fan-out threshold; changes then move the chat's own clock.
    package let isBig: Bool
    package let description: Text?
    package let options: RoleTable.Options
    package let pinned: MessageID?
    /// The viewer's rights as an administrator.
    package let permissions: RoleTable.Permissions
    /// The last message before the viewer's view of the chat; it and all earlier messages are
    /// hidden.
    package let floor: MessageID
    /// The public name, or the invitation if the viewer may see it.
    package let link: Text?
    /// Whether `link` is a public name.
    package let isPublic: Bool
    /// The dense number of the newest message when the viewer hid the chat; 0 for never.
    package let hiddenNumber: Int64
    /// The reactions that the chat allows; nil for all.
    package let reactions: Packed<ChatReactionsSettings>?
    /// When the viewer's scheduled messages last changed, Unix milliseconds; 0 for never.
    package let delayedUpdated: Int64
    /// When one of the viewer's scheduled messages last failed to send, Unix milliseconds; 0 for
    /// never.
    package let delayedFailed: Int64

    /// The chat id that this viewer sees on the wire.
    package var wireID: ChatID {
        switch kind {
        case .group, .channel, .comments: ChatID((post?.channel ?? key).rawValue)
        case .dialog, .saved: .dialog(viewer, partner ?? viewer)
        }
    }

    /// The address of the chat's messages for clients.
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
