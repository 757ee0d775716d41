import TambourMessenger
import TambourProtocol

/// One LOGIN in flight: its request, and the changes since the LOGIN began. These changes override
/// the values of the LOGIN's snapshot.
struct LoginFlow {
    /// The state of the session after the LOGIN is accepted.
    struct Start {
        let settingsVersion: Int64
        let isHidden: Bool
        let isInteractive: Bool
        /// Users whose presence the session follows.
        let followed: [UserID]
        /// Users whom the LOGIN began to follow, but whom the session must unfollow. Their
        /// `unfollow` arrived while the LOGIN was in flight.
        let unfollowed: [UserID]
    }

    private var isInteractive: Bool
    private var settings: (version: Int64, isHidden: Bool)?
    private var unfollowed: Set<UserID> = []

    init(_ request: LoginRequest) {
        isInteractive = request.interactive ?? true
    }

    /// Records whether the client is in the foreground. The value comes from a PING after the
    /// LOGIN, and overrides the value in the LOGIN.
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
