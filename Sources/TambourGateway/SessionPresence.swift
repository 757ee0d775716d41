import TambourProtocol

/// The presence that one session shows of its user, and the users whose presence the session
/// follows.
struct SessionPresence {
    /// A change of the presence that this session shows.
    enum Change: Equatable {
        case shown
        case hidden
    }

    /// Whether the client is in the foreground.
    private(set) var isInteractive = false
    /// Whether the user hides their presence from everybody.
    private(set) var isHidden = false
    private var isShown = false
    /// The time when the session last stored the user's last-seen time, in Unix milliseconds.
    private var seenStored: Int64?
    private var followed: Set<UserID> = []
    private let mostFollowed: Int
    private let seenStepMs: Int64

    init(limits: Limits) {
        mostFollowed = 2 * limits.presenceWatch
        seenStepMs = Int64(limits.seenStepMs)
    }

    mutating func setInteractive(_ interactive: Bool) -> Change? {
        isInteractive = interactive
        return show()
    }

    mutating func setHidden(_ hidden: Bool) -> Change? {
        isHidden = hidden
        return show()
    }

    private mutating func show() -> Change? {
        guard isShown != (isInteractive && !isHidden) else { return nil }
        isShown.toggle()
        return isShown ? .shown : .hidden
    }

    /// Returns whether to store the last-seen time now. A client that often switches to the
    /// background causes at most one write in each period of `seenStepMs`.
    ///
    /// - Parameter always: true for a login and for the end of a session.
    mutating func storesSeen(at now: Int64, always: Bool) -> Bool {
        if let seenStored, !always, now >= seenStored, now - seenStored < seenStepMs {
            return false
        }
        seenStored = now
        return true
    }

    // MARK: - Following

    /// Adds users to the followed users.
    ///
    /// - Returns: the users who were not followed before.
    mutating func follow(_ users: [UserID]) -> [UserID] {
        users.filter { followed.insert($0).inserted }
    }

    /// Adds the users whom a LOGIN has begun to follow.
    ///
    /// - Returns: the users whom the session already followed. They now have two subscriptions, and
    ///   the caller ends one.
    mutating func adopt(_ users: [UserID]) -> [UserID] {
        users.filter { !followed.insert($0).inserted }
    }

    /// Follows the partner in an active dialog, unless the session already follows too many users.
    ///
    /// - Returns: whether the user was not followed before.
    mutating func follow(dialogPartner user: UserID) -> Bool {
        guard followed.count < mostFollowed else { return false }
        return followed.insert(user).inserted
    }

    /// - Returns: those of the given users whom the session followed.
    mutating func unfollow(_ users: [UserID]) -> [UserID] {
        users.filter { followed.remove($0) != nil }
    }

    /// - Returns: all users whom the session followed.
    mutating func unfollowAll() -> Set<UserID> {
        defer { followed = [] }
        return followed
    }
}
