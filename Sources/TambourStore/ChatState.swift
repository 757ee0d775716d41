package import TambourProtocol

/// A member as the engine holds it while it works; its row is written once per batch.
package final class MemberState {
    package let userID: UserID
    package let joined: Int64
    /// Read mark, Unix milliseconds; 0 for never.
    package private(set) var readTime: Int64
    /// What others see of the read mark; differs from it for who hides it, or did.
    package private(set) var shownTime: Int64
    /// Dense number of the newest message at or below the read mark.
    package private(set) var readNumber: Int64
    /// Change clock of the chat for this member.
    private(set) var ct: Int64
    private(set) var isBig: Bool
    /// What the member may as an administrator.
    package private(set) var permissions: RoleTable.Permissions
    /// Nothing up to this message is there for the member.
    package private(set) var floor: MessageID
    /// The dense number of the newest message when the member put the chat away; 0 for never.
    package private(set) var hiddenNumber: Int64
    /// Of the messages behind the read mark, how many do not count as unread; nil where nobody has counted.
    private var subtracted: (count: Int64, readNumber: Int64, removals: Int)?
    /// What of the row is newer here than on disk.
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

    /// How many messages of a chat the member has not read; nil where it has to be counted in the store.
    func unread(in chat: ChatState) -> Int64? {
        let candidates = chat.head.number - readNumber
        guard candidates > 0 else { return 0 }
        guard let subtracted, subtracted.readNumber == readNumber,
            subtracted.removals == chat.removals
        else { return nil }
        return max(0, candidates - subtracted.count)
    }

    /// Keeps a count until the read mark moves, or a message is removed or hidden.
    func keep(unread: Int64, in chat: ChatState) {
        subtracted = (chat.head.number - readNumber - unread, readNumber, chat.removals)
    }

    /// Messages are hidden from the member.
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

    /// - Returns: true when the row was as on disk before.
    func mustSave(_ what: Unsaved) -> Bool {
        defer { unsaved = max(unsaved, what) }
        return unsaved == .nothing
    }

    func isSaved() {
        unsaved = .nothing
    }
}

/// What its people may change about a chat.
package struct ChatDetails: Equatable, Sendable {
    package var owner: UserID
    package var title: Text?
    package var description: Text?
    package var options: RoleTable.Options = []
    package var pinned: MessageID?
    /// The public name, or the invitation as `join/…`.
    package var link: Text?
    /// Whether `link` is a public name.
    package var isPublic = false
    /// Which reactions it allows; nil for every one.
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

    /// Holds on to no request.
    var detached: ChatDetails {
        var copy = self
        copy.title = title?.detached
        copy.description = description?.detached
        copy.link = link?.detached
        return copy
    }
}

/// A chat as the engine holds it: the head of its messages and the members it has met.
///
/// Lives in the writer's cache, is touched by the engine only, and is thrown away whenever a batch
/// that touched it did not commit.
package final class ChatState {
    /// 0 for comments that are not stored yet.
    package private(set) var key: ChatKey
    package let kind: ChatKind
    /// The two of a dialog, `low < high`; the same user twice in saved messages; nil where people join.
    let pair: (low: UserID, high: UserID)?
    /// The post that these are the comments on; nil for a chat of its own.
    package let post: Post?
    private var ownDetails: ChatDetails
    package let created: Int64
    /// Above the fan-out threshold: changes move the chat's own clock, not every member's row.
    /// A chat that is big stays so.
    package private(set) var isBig: Bool
    package internal(set) var head: ChatHead
    var changeClock: Int64
    var isClockDirty = false
    /// Rises with each removal of messages.
    var removals = 0
    /// Messages of this batch that are not in the table yet.
    var hasPendingMessages = false
    /// Every member of a small chat; of a big one those met so far.
    var members: [UserID: MemberState]
    private var ownMemberIDs: [UserID]
    /// Of a dialog: those of the two who have blocked the other.
    private var blockers: Set<UserID>

    /// A post of a channel, as what is written under it needs to know it.
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

    /// Whether somebody other than `user` has shut them out of this dialog.
    package func isShut(for user: UserID) -> Bool {
        blockers.contains { $0 != user }
    }

    /// Whether one of this dialog has blocked the other.
    package var isShut: Bool { !blockers.isEmpty }

    /// Whether `user` has blocked the other one of this dialog.
    package func hasBlocked(by user: UserID) -> Bool { blockers.contains(user) }

    func setBlocked(_ isBlocked: Bool, by user: UserID) {
        if isBlocked {
            blockers.insert(user)
        } else {
            blockers.remove(user)
        }
    }

    /// What its people may change about it; of comments that of their channel.
    package var details: ChatDetails { post?.channel.details ?? ownDetails }

    /// Everybody who may hear of what happens here, in the order of their ids; of comments the members of
    /// their channel.
    package var memberIDs: [UserID] { post?.channel.memberIDs ?? ownMemberIDs }

    package var owner: UserID { details.owner }
    package var title: Text? { details.title }
    package var memberCount: Int { memberIDs.count }

    func setKey(_ key: ChatKey) {
        self.key = key
    }

    // What the rows say has changed with these; `WriteTransaction+Members.swift` alone calls them.

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

    /// The id that travels; in a dialog the same number for both.
    package var wireID: ChatID {
        if let post { return post.channel.wireID }
        guard let pair else { return ChatID(key.rawValue) }
        return .dialog(pair.low, pair.high)
    }

    /// Where its messages stand for clients.
    package var address: MessageAddress { MessageAddress(chatID: wireID, postID: post?.id) }
}
