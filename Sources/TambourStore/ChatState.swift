package import TambourProtocol

/// A member as the engine holds it while it works; its row is written once per batch.
package final class MemberState {
    package let userID: UserID
    package let joined: Int64
    /// Read mark, Unix milliseconds; 0 for never.
    package private(set) var readTime: Int64
    /// Dense number of the newest message at or below the read mark.
    package private(set) var readNumber: Int64
    /// Change clock of the chat for this member.
    private(set) var ct: Int64
    let isBig: Bool
    /// True while the row is newer here than on disk.
    var isDirty = false

    init(
        userID: UserID,
        joined: Int64,
        readTime: Int64,
        readNumber: Int64,
        ct: Int64,
        isBig: Bool
    ) {
        self.userID = userID
        self.joined = joined
        self.readTime = readTime
        self.readNumber = readNumber
        self.ct = ct
        self.isBig = isBig
    }

    func touch(_ ct: Int64) {
        self.ct = ct
    }

    func setRead(time: Int64, number: Int64) {
        readTime = time
        readNumber = number
    }
}

/// A chat as the engine holds it: the head of its messages and the members it has met.
///
/// Lives in the writer's cache, is touched by the engine only, and is thrown away whenever a batch
/// that touched it did not commit.
package final class ChatState {
    package let key: ChatKey
    package let kind: ChatKind
    /// The two of a dialog, `low < high`; the same user twice in saved messages; nil in groups.
    let pair: (low: UserID, high: UserID)?
    package let owner: UserID
    package let title: Text?
    package let created: Int64
    package let memberCount: Int
    /// Above the fan-out threshold: changes move the chat's own clock, not every member's row.
    package let isBig: Bool
    package internal(set) var head: ChatHead
    var changeClock: Int64
    var isClockDirty = false
    /// Messages of this batch that are not in the table yet.
    var hasPendingMessages = false
    /// Every member of a small chat; of a big one those met so far.
    var members: [UserID: MemberState]
    /// Everybody who hears of what happens here, in the order of their ids.
    package let memberIDs: [UserID]
    /// Of a dialog: those of the two who have blocked the other.
    private var blockers: Set<UserID>

    init(
        key: ChatKey,
        kind: ChatKind,
        pair: (low: UserID, high: UserID)?,
        owner: UserID,
        title: Text?,
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
        self.owner = owner
        self.title = title?.detached
        self.created = created
        self.memberCount = memberIDs.count
        self.isBig = isBig
        self.head = head
        self.changeClock = changeClock
        self.members = members
        self.memberIDs = memberIDs
        self.blockers = blockers
    }

    /// Whether somebody other than `user` has shut them out of this dialog.
    package func isShut(for user: UserID) -> Bool {
        blockers.contains { $0 != user }
    }

    /// Whether `user` has blocked the other one of this dialog.
    package func hasBlocked(by user: UserID) -> Bool { blockers.contains(user) }

    func setBlocked(_ isBlocked: Bool, by user: UserID) {
        if isBlocked {
            blockers.insert(user)
        } else {
            blockers.remove(user)
        }
    }

    /// The id that travels; in a dialog the same number for both.
    package var wireID: ChatID {
        guard let pair else { return ChatID(key.rawValue) }
        return .dialog(pair.low, pair.high)
    }
}
