package import TambourEvents
package import TambourProtocol

/// The engine's cached copy of a member's row. The engine writes the row at most once per batch.
package final class MemberState {
    package let userID: UserID
    package let joined: Int64
    /// The read mark, Unix milliseconds; 0 if the member has never read the chat.
    package private(set) var readTime: Int64
    /// The read mark that other users see. It differs from `readTime` if the member hides the read
    /// mark or has hidden it earlier.
    package private(set) var shownTime: Int64
    /// The dense number of the newest message at or before the read mark.
    package private(set) var readNumber: Int64
    /// The commit clock of the chat's last change, as recorded in the member's row.
    private(set) var ct: Int64
    private(set) var isBig: Bool
    /// The member's rights as an administrator.
    package private(set) var permissions: RoleTable.Permissions
    /// The last message that is hidden from the member. All earlier messages are hidden too.
    package private(set) var floor: MessageID
    /// The dense number of the message that was the newest when the member hid the chat; 0 for
    /// never.
    package private(set) var hiddenNumber: Int64
    /// The number of messages after the read mark that do not count as unread, and the values for
    /// which it is valid. Nil if the number is unknown.
    private var subtracted: (count: Int64, readNumber: Int64, removals: Int)?
    /// The columns of the row that have changed and are not on the disk yet.
    private(set) var unsaved = Unsaved.nothing

    enum Unsaved: Comparable {
        case nothing
        case clock
        case marks
        case row
    }

    init(
        userID: UserID,
        joined: Int64,
        readTime: Int64,
        shownTime: Int64,
        readNumber: Int64,
        ct: Int64,
        isBig: Bool,
        permissions: RoleTable.Permissions = [],
        floor: MessageID = MessageID(0),
        hiddenNumber: Int64 = 0
    ) {
        self.userID = userID
        self.joined = joined
        self.readTime = readTime
        self.shownTime = shownTime
        self.readNumber = readNumber
        self.ct = ct
        self.isBig = isBig
        self.permissions = permissions
        self.floor = floor
        self.hiddenNumber = hiddenNumber
    }

    /// Returns the number of unread messages; nil if the store must count them.
    func unread(in chat: ChatState) -> Int64? {
        let candidates = chat.head.number - readNumber
        guard candidates > 0 else { return 0 }
        guard let subtracted, subtracted.readNumber == readNumber,
            subtracted.removals == chat.removals
        else { return nil }
        return max(0, candidates - subtracted.count)
    }

    /// Caches the unread count. It stays valid until the read mark moves, or a message is removed
    /// or hidden.
    func keep(unread: Int64, in chat: ChatState) {
        subtracted = (chat.head.number - readNumber - unread, readNumber, chat.removals)
    }

    /// Removes the cached unread count, because messages have been hidden from the member.
    func forgetUnread() {
        subtracted = nil
    }

    func setHidden(_ number: Int64) {
        hiddenNumber = number
    }

    func makeBig() {
        isBig = true
    }

    func setPermissions(_ permissions: RoleTable.Permissions) {
        self.permissions = permissions
    }

    func setFloor(_ floor: MessageID) {
        self.floor = floor
    }

    func touch(_ ct: Int64) {
        self.ct = ct
    }

    func setRead(time: Int64, number: Int64) {
        readTime = time
        readNumber = number
    }

    func setShown(_ time: Int64) {
        shownTime = time
    }

    /// - Returns: true if the row had no unsaved changes before this call.
    func mustSave(_ what: Unsaved) -> Bool {
        defer { unsaved = max(unsaved, what) }
        return unsaved == .nothing
    }

    func isSaved() {
        unsaved = .nothing
    }
}

/// The properties of a chat that its members may change.
package struct ChatDetails: Equatable, Sendable {
    package var owner: UserID
    package var title: Text?
    package var description: Text?
    package var options: RoleTable.Options = []
    package var pinned: MessageID?
    /// The public name; otherwise the invitation, in the form `join/…`.
    package var link: Text?
    /// Whether `link` is a public name.
    package var isPublic = false
    /// The reactions that the chat allows; nil for all.
    package var reactions: Packed<ChatReactionsSettings>?

    package init(
        owner: UserID,
        title: Text? = nil,
        description: Text? = nil,
        options: RoleTable.Options = [],
        pinned: MessageID? = nil,
        link: Text? = nil,
        isPublic: Bool = false,
        reactions: Packed<ChatReactionsSettings>? = nil
    ) {
        self.owner = owner
        self.title = title
        self.description = description
        self.options = options
        self.pinned = pinned
        self.link = link
        self.isPublic = isPublic
        self.reactions = reactions
    }

    /// A copy that does not keep the bytes of a request in memory.
    var detached: ChatDetails {
        var copy = self
        copy.title = title?.detached
        copy.description = description?.detached
        copy.link = link?.detached
        return copy
    }
}

/// The engine's cached copy of a chat, with the newest message and the members loaded so far.
///
/// Only the engine uses this object, and the writer's cache holds it. If a batch that changed it
/// does not commit, the cache discards it.
package final class ChatState {
    /// 0 for comments that are not stored yet.
    package private(set) var key: ChatKey
    package let kind: ChatKind
    /// The two users of a dialog, with `low < high`. For saved messages, the same user twice. Nil
    /// for other chats.
    let pair: (low: UserID, high: UserID)?
    /// The post of these comments; nil for other chats.
    package let post: Post?
    private var ownDetails: ChatDetails
    package let created: Int64
    /// Whether the chat is a channel, contains comments, or has ever had more members than the
    /// fan-out threshold. A change of a big chat updates the chat's own clock instead of every
    /// member's row.
    package private(set) var isBig: Bool
    package internal(set) var head: ChatHead
    var changeClock: Int64
    var isClockDirty = false
    /// Increases with each removal of messages.
    var removals = 0
    /// Whether this batch has messages that are not in the table yet.
    var hasPendingMessages = false
    /// All members of a small chat. For a big chat, the members loaded so far.
    var members: [UserID: MemberState]
    private var ownMemberIDs: [UserID]
    /// In a dialog, the users who have blocked the other user.
    private var blockers: Set<UserID>

    /// The post under which comments are written.
    package struct Post {
        package let channel: ChatState
        package let id: MessageID
    }

    init(
        key: ChatKey,
        kind: ChatKind,
        pair: (low: UserID, high: UserID)?,
        post: Post? = nil,
        details: ChatDetails,
        created: Int64,
        isBig: Bool,
        head: ChatHead,
        changeClock: Int64,
        members: [UserID: MemberState],
        memberIDs: [UserID],
        blockers: Set<UserID> = []
    ) {
        self.key = key
        self.kind = kind
        self.pair = pair
        self.post = post
        ownDetails = details.detached
        self.created = created
        self.isBig = isBig
        self.head = head
        self.changeClock = changeClock
        self.members = members
        ownMemberIDs = memberIDs
        self.blockers = blockers
    }

    /// Whether the other user of this dialog has blocked `user`.
    package func isShut(for user: UserID) -> Bool {
        blockers.contains { $0 != user }
    }

    /// Whether one user of this dialog has blocked the other.
    package var isShut: Bool { !blockers.isEmpty }

    /// Whether `user` has blocked the other user of this dialog.
    package func hasBlocked(by user: UserID) -> Bool { blockers.contains(user) }

    func setBlocked(_ isBlocked: Bool, by user: UserID) {
        if isBlocked {
            blockers.insert(user)
        } else {
            blockers.remove(user)
        }
    }

    /// The properties that members may change. Comments have the properties of their channel.
    package var details: ChatDetails { post?.channel.details ?? ownDetails }

    /// The users who may be notified of changes in this chat, in the order of their ids. For
    /// comments, these are the members of the channel.
    package var memberIDs: [UserID] { post?.channel.memberIDs ?? ownMemberIDs }

    package var owner: UserID { details.owner }
    package var title: Text? { details.title }
    package var memberCount: Int { memberIDs.count }

    func setKey(_ key: ChatKey) {
        self.key = key
    }

    // These methods make the same changes in the cache as in the rows. Only `Members+Writing.swift`
    // calls them.

    func set(_ details: ChatDetails) {
        ownDetails = details.detached
    }

    func add(_ added: [MemberState]) {
        for member in added {
            members[member.userID] = member
            ownMemberIDs.insert(
                member.userID,
                at: ownMemberIDs.firstPlace(notBelow: member.userID)
            )
        }
    }

    func remove(_ id: UserID) {
        members[id] = nil
        let place = ownMemberIDs.firstPlace(notBelow: id)
        if place < ownMemberIDs.count, ownMemberIDs[place] == id {
            ownMemberIDs.remove(at: place)
        }
    }

    func removeEverybody() {
        members = [:]
        ownMemberIDs = []
    }

    func makeBig() {
        isBig = true
        for member in members.values { member.makeBig() }
    }

    /// The chat id on the wire. A dialog has the same id for both users.
    package var wireID: ChatID {
        if let post { return post.channel.wireID }
        guard let pair else { return ChatID(key.rawValue) }
        return .dialog(pair.low, pair.high)
    }

    /// The address that clients use for the chat's messages.
    package var address: MessageAddress { MessageAddress(chatID: wireID, postID: post?.id) }
}
