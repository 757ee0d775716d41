import Synchronization
import TambourProtocol
package import TambourStore

/// Who is online, and who wants to know. In memory only: `seen` is stored by a deferred command.
///
/// A user is online while at least one live session is interactive. Going offline is told after a
/// delay, so a reconnect is not worth two pushes. A session follows its most recent dialog partners
/// and those whose chats it opens.
package final class PresenceRegistry: Sendable {
    fileprivate struct User {
        var interactive = 0
        /// What others were told last.
        var isOnline = false
        /// Unix milliseconds; when it was online last, 0 for unknown.
        var seen: Int64 = 0
        /// When what others see of it changed last, on the commit clock: logins compare it with a mark.
        var changed: Int64 = 0
    }

    private struct State {
        var users: [UserID: User] = [:]
        /// How many sessions of a watcher follow a user.
        var watchers: [UserID: [UserID: Int]] = [:]
    }

    private let state = Mutex(State())
    private let clock: CommitClock
    /// What clients were told before is not known here: commit clock.
    private let started: Int64

    /// - Parameter wall: the wall clock, Unix milliseconds, as everywhere here.
    package init(clock: CommitClock, wall: Int64) {
        self.clock = clock
        started = clock.now(wall: wall)
    }

    /// A session became interactive: the presence to push when that made the user come online.
    func entered(_ id: UserID, wall: Int64) -> Event? {
        state.withLock { state in
            var user = state.users[id] ?? User()
            user.interactive += 1
            user.seen = max(user.seen, wall)
            let cameOnline = !user.isOnline
            if cameOnline {
                user.isOnline = true
                user.changed = clock.now(wall: wall)
            }
            state.users[id] = user
            return cameOnline ? event(id, user, state) : nil
        }
    }

    /// Whether the user has a live session that is interactive.
    func isThere(_ id: UserID) -> Bool {
        state.withLock { $0.users[id, default: User()].interactive > 0 }
    }

    /// A session went to the background or closed.
    ///
    /// - Returns: true when it was the last: then call `settled` after the delay.
    func left(_ id: UserID, wall: Int64) -> Bool {
        state.withLock { state in
            guard var user = state.users[id], user.interactive > 0 else { return false }
            user.interactive -= 1
            user.seen = max(user.seen, wall)
            state.users[id] = user
            return user.interactive == 0
        }
    }

    /// A login that is not interactive: nobody is told, but it shows at the next login of others.
    func noted(_ id: UserID, wall: Int64) {
        state.withLock { state in
            var user = state.users[id] ?? User()
            user.seen = max(user.seen, wall)
            user.changed = clock.now(wall: wall)
            state.users[id] = user
        }
    }

    /// The delay after the last `left` is over: the push when the user stayed away.
    func settled(_ id: UserID, wall: Int64) -> Event? {
        state.withLock { state in
            guard var user = state.users[id], user.interactive == 0, user.isOnline else {
                return nil
            }
            user.isOnline = false
            user.changed = clock.now(wall: wall)
            state.users[id] = user
            return event(id, user, state)
        }
    }

    func watch(_ users: some Sequence<UserID>, by watcher: UserID) {
        state.withLock { state in
            for user in users { state.watchers[user, default: [:]][watcher, default: 0] += 1 }
        }
    }

    func unwatch(_ users: some Sequence<UserID>, by watcher: UserID) {
        state.withLock { state in
            for user in users {
                guard let count = state.watchers[user]?[watcher] else { continue }
                if count > 1 {
                    state.watchers[user]?[watcher] = count - 1
                } else {
                    state.watchers[user]?[watcher] = nil
                    if state.watchers[user]?.isEmpty == true { state.watchers[user] = nil }
                }
            }
        }
    }

    /// The presence of each of `users` that changed after `since` (commit clock).
    ///
    /// - Parameter users: with what the store knows of when each was online last.
    func presence(
        of users: [(id: UserID, seen: Int64)],
        since: Int64
    ) -> IDMap<UserID, Presence> {
        state.withLock { state in
            var pairs: [(UserID, Presence)] = []
            for (id, stored) in users {
                let user = state.users[id] ?? User(seen: stored, changed: started)
                guard since <= 0 || user.changed > since else { continue }
                pairs.append((id, user.presence(stored: stored)))
            }
            return IDMap(pairs)
        }
    }

    private func event(_ id: UserID, _ user: User, _ state: State) -> Event? {
        guard let watchers = state.watchers[id], !watchers.isEmpty else { return nil }
        let push = NotifPresence(
            userID: id,
            presence: user.presence(stored: 0),
            time: user.changed
        )
        return .push(.notifPresence(push), to: watchers.keys.sorted(), except: nil)
    }
}

extension PresenceRegistry.User {
    /// `seen` is in seconds on the wire.
    fileprivate func presence(stored: Int64) -> Presence {
        Presence(seen: max(seen, stored) / 1000, status: isOnline ? 1 : 0)
    }
}
