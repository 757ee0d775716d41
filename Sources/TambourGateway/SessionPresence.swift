import TambourProtocol

/// What one session shows of its user's presence, and whose presence it follows.
struct SessionPresence {
    /// What others see of the user changes by this session.
    enum Change: Equatable {
        case shown
        case hidden
    }

    /// Whether the client is in the foreground.
    private(set) var isInteractive = false
    /// Whether the user shows their presence to nobody.
    private(set) var isHidden = false
    private var isShown = false
    /// When the user's last-seen time was last stored; Unix milliseconds.
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

    /// Whether the last-seen time is worth storing: at most once in `seenStepMs` for a client that comes
    /// and goes.
    ///
    /// - Parameter always: for a login and for the end of a session.
    mutating func storesSeen(at now: Int64, always: Bool) -> Bool {
        if let seenStored, !always, now >= seenStored, now - seenStored < seenStepMs {
            return false
        }
        seenStored = now
        return true
    }

    // MARK: - Following

    /// Follows these users too.
    ///
    /// - Returns: those who were not followed before.
    mutating func follow(_ users: [UserID]) -> [UserID] {
        users.filter { followed.insert($0).inserted }
    }

    /// Takes over users whom a LOGIN has begun to follow.
    ///
    /// - Returns: those who were followed before: they count once.
    mutating func adopt(_ users: [UserID]) -> [UserID] {
        users.filter { !followed.insert($0).inserted }
    }

    /// Follows the partner in an active dialog, unless there are many.
    ///
    /// - Returns: whether the user was not followed before.
    mutating func follow(dialogPartner user: UserID) -> Bool {
        guard followed.count < mostFollowed else { return false }
        return followed.insert(user).inserted
    }

    /// - Returns: those of these users who were followed.
    mutating func unfollow(_ users: [UserID]) -> [UserID] {
        users.filter { followed.remove($0) != nil }
    }

    /// - Returns: all who were followed.
    mutating func unfollowAll() -> Set<UserID> {
        defer { followed = [] }
        return followed
    }
}
