import TambourMessenger
import TambourProtocol

/// One LOGIN in flight: what it asked for, and what happened meanwhile that its snapshot may be too old
/// to show.
struct LoginFlow {
    /// What the session begins with when the LOGIN is accepted.
    struct Start {
        let settingsVersion: Int64
        let isHidden: Bool
        let isInteractive: Bool
        /// Users whose presence the session follows.
        let followed: [UserID]
        /// Users whom the snapshot began to follow, and who are not to be followed any more.
        let unfollowed: [UserID]
    }

    private var isInteractive: Bool
    private var settings: (version: Int64, isHidden: Bool)?
    private var unfollowed: Set<UserID> = []

    init(_ request: LoginRequest) {
        isInteractive = request.interactive ?? true
    }

    /// Notes what a PING said after the LOGIN: it overrides what the LOGIN says.
    mutating func noted(interactive: Bool) {
        isInteractive = interactive
    }

    mutating func noted(settingsVersion: Int64, isHidden: Bool) {
        settings = (settingsVersion, isHidden)
    }

    mutating func noted(unfollowed users: [UserID]) {
        unfollowed.formUnion(users)
    }

    func accepted(_ following: Answer.Following) -> Start {
        Start(
            settingsVersion: settings?.version ?? following.settingsVersion,
            isHidden: settings?.isHidden ?? following.isHidden,
            isInteractive: isInteractive,
            followed: following.partners.filter { !unfollowed.contains($0) },
            unfollowed: following.partners.filter { unfollowed.contains($0) }
        )
    }
}
