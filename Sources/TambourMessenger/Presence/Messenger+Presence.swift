package import TambourProtocol
import TambourStore

/// Handles online users and presence subscriptions. Doors report changes of their sessions here.
extension Messenger {
    /// Records that one more session shows its user as online.
    package func shown(_ user: UserID) {
        if let event = presence.entered(user, wall: environment.wallMs()) { router.route([event]) }
    }

    /// Records that a session no longer shows its user as online. Pushes the offline state only
    /// after a delay, so that a short reconnect does not cause two pushes.
    ///
    /// - Parameter later: runs a closure after a delay, on any queue.
    package func hidden(
        _ user: UserID,
        later: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    ) {
        guard let turn = presence.left(user, wall: environment.wallMs()) else { return }
        let delay = Duration.milliseconds(limits.presenceOfflineDelayMs)
        later(delay) { [self] in
            guard let gone = presence.settled(user, turn: turn, wall: environment.wallMs()) else {
                return
            }
            router.route([gone])
            later(delay) { [self] in
                if let back = presence.rested(user) { router.route([back]) }
            }
        }
    }

    /// Records a login that does not show its user as online.
    package func noted(_ user: UserID) {
        presence.noted(user, wall: environment.wallMs())
    }

    /// Subscribes `watcher` to the presence of `users`. Each session of the watcher subscribes
    /// separately.
    package func follow(_ users: some Sequence<UserID>, by watcher: UserID) {
        presence.watch(users, by: watcher)
    }

    /// Ends a subscription that `follow` or a LOGIN began.
    package func unfollow(_ users: some Sequence<UserID>, by watcher: UserID) {
        presence.unwatch(users, by: watcher)
    }

    /// Stores the user's last-seen time with the next commit.
    ///
    /// - Parameter address: the address of the client if the session has just logged in; otherwise
    ///   nil.
    package func storeSeen(at now: Int64, of caller: Caller, from address: String?) {
        engine.post(
            Command(for: .user(caller.userID)) { tx in
                try tx.setSeen(
                    now,
                    user: caller.userID,
                    session: caller.sessionID,
                    address: address
                )
                return .done
            }
        )
    }
}
