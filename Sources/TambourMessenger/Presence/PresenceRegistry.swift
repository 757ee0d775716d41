import Synchronization
import TambourEvents
package import TambourProtocol
package import TambourStore

/// The online users and the presence subscriptions, in memory only. A later command stores the time
/// `seen`.
///
/// A user is online while at least one live session is interactive. The offline state is pushed
/// only after `presenceOfflineDelayMs`, so that a short reconnect causes no pushes. If the user
/// returns soon after the offline push, the online push follows after another delay.
///
/// A session follows its user's most recent dialog partners. It also follows the partners whose
/// dialogs the client opens.
package final class PresenceRegistry: Sendable {
    fileprivate struct User {
        var interactive = 0
        /// A number that changes with every entry and exit. If it is unchanged at the end of a
        /// delay, nothing has happened in the meantime.
        var turn = 0
        /// Whether other users see the user as online. It becomes false only after the delay.
        var isOnline = false
        /// Whether the last push said that the user is online.
        var isToldOnline = false
        /// Whether the user's offline state was pushed recently. Until another delay is over, no
        /// further push is sent.
        var isResting = false
        /// The time when the user was last online, in Unix milliseconds; 0 if unknown.
        var seen: Int64 = 0
        /// The time of the last change of the visible state, by the commit clock. Logins compare
        /// this time with a cursor.
        var changed: Int64 = 0
    }

    /// The followers of a user, in the order in which they last began to follow.
    private struct Watchers {
        /// For each follower, the number of its sessions that follow the user, and the follower's
        /// index in `order`.
        private var places: [UserID: (sessions: Int, place: Int)] = [:]
        /// The followers in order. An element is nil if its follower has left or has moved to a
        /// later place.
        private var order: [UserID?] = []

        var isEmpty: Bool { places.isEmpty }

        mutating func add(_ watcher: UserID) {
            let known = places[watcher]
            if let known { order[known.place] = nil }
            if order.count > 2 * places.count + 32 { closeGaps() }
            places[watcher] = ((known?.sessions ?? 0) + 1, order.count)
            order.append(watcher)
        }

        /// Removes one session of a follower.
        mutating func remove(_ watcher: UserID) {
            guard let (sessions, place) = places[watcher] else { return }
            if sessions > 1 {
                places[watcher] = (sessions - 1, place)
            } else {
                places[watcher] = nil
                order[place] = nil
            }
        }

        /// Returns the latest followers, at most `limit`, in the order of their ids.
        func newest(_ limit: Int) -> [UserID] {
            order.reversed().lazy.compactMap(\.self).prefix(limit).sorted()
        }

        private mutating func closeGaps() {
            order.removeAll { $0 == nil }
            for (place, watcher) in order.enumerated() {
                if let watcher { places[watcher]?.place = place }
            }
        }
    }

    private struct State {
        var users: [UserID: User] = [:]
        var watchers: [UserID: Watchers] = [:]
    }

    private let state = Mutex(State())
    private let clock: CommitClock
    /// The time when the registry started, by the commit clock. The registry does not know changes
    /// before this time.
    private let started: Int64
    /// The maximum number of followers to whom a change is pushed.
    private let audience: Int

    /// - Parameter wall: the time by the wall clock, in Unix milliseconds. It has the same meaning
    ///   in all methods of this type.
    package init(clock: CommitClock, wall: Int64, limits: Limits) {
        self.clock = clock
        started = clock.now(wall: wall)
        audience = limits.presencePushes
    }

    /// Records that a session became interactive. Returns a push if the user thereby came online.
    /// If the offline state was pushed only recently, returns nil, and `rested` returns the push
    /// later.
    func entered(_ id: UserID, wall: Int64) -> Event? {
        state.withLock { state in
            var user = state.users[id] ?? User()
            user.interactive += 1
            user.turn += 1
            user.seen = max(user.seen, wall)
            if !user.isOnline {
                user.isOnline = true
                user.changed = clock.now(wall: wall)
            }
            return tell(id, &user, &state)
        }
    }

    /// Returns whether the user has a live interactive session.
    func isThere(_ id: UserID) -> Bool {
        state.withLock { $0.users[id, default: User()].interactive > 0 }
    }

    /// Records that a session went to the background or closed.
    ///
    /// - Returns: nil if the user has another interactive session. Otherwise the turn, which the
    ///   caller passes to `settled` after the delay.
    func left(_ id: UserID, wall: Int64) -> Int? {
        state.withLock { state in
            guard var user = state.users[id], user.interactive > 0 else { return nil }
            user.interactive -= 1
            user.turn += 1
            user.seen = max(user.seen, wall)
            state.users[id] = user
            return user.interactive == 0 ? user.turn : nil
        }
    }

    /// Records a login that is not interactive. This change causes no push. Other users see the new
    /// last-seen time at their next login.
    func noted(_ id: UserID, wall: Int64) {
        state.withLock { state in
            var user = state.users[id] ?? User()
            user.seen = max(user.seen, wall)
            user.changed = clock.now(wall: wall)
            state.users[id] = user
        }
    }

    /// Ends the delay after a call of `left`.
    ///
    /// - Parameter turn: the value that `left` returned.
    /// - Returns: the push that the user is offline; nil if a session became interactive during the
    ///   delay. After a push, the caller must call `rested` when another delay is over.
    func settled(_ id: UserID, turn: Int, wall: Int64) -> Event? {
        state.withLock { state in
            guard var user = state.users[id], user.turn == turn, user.isOnline else { return nil }
            user.isOnline = false
            user.changed = clock.now(wall: wall)
            return tell(id, &user, &state)
        }
    }

    /// Ends the delay after a push from `settled`. Returns a push if the user is online again.
    func rested(_ id: UserID) -> Event? {
        state.withLock { state in
            guard var user = state.users[id] else { return nil }
            user.isResting = false
            // If there is no interactive session, the user returned only for a short time. Do not
            // push this.
            if user.interactive > 0 { return tell(id, &user, &state) }
            state.users[id] = user
            return nil
        }
    }

    /// Stores the user's new state. Returns the push that must be sent now, or nil.
    private func tell(_ id: UserID, _ user: inout User, _ state: inout State) -> Event? {
        defer { state.users[id] = user }
        guard user.isOnline != user.isToldOnline, !user.isResting else { return nil }
        user.isToldOnline = user.isOnline
        guard let watchers = state.watchers[id] else { return nil }
        user.isResting = !user.isOnline
        let push = NotifPresence(
            userID: id,
            presence: user.presence(stored: 0),
            time: user.changed
        )
        return .push(.notifPresence(push), to: watchers.newest(audience), except: nil)
    }

    func watch(_ users: some Sequence<UserID>, by watcher: UserID) {
        state.withLock { state in
            for user in users { state.watchers[user, default: Watchers()].add(watcher) }
        }
    }

    func unwatch(_ users: some Sequence<UserID>, by watcher: UserID) {
        state.withLock { state in
            for user in users {
                state.watchers[user]?.remove(watcher)
                if state.watchers[user]?.isEmpty == true { state.watchers[user] = nil }
            }
        }
    }

    /// Returns the presences of those `users` whose presence changed after `since`, a time of the
    /// commit clock.
    ///
    /// - Parameter users: the users, each with the last-seen time from the store.
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
}

extension PresenceRegistry.User {
    /// Returns the presence in its wire form, in which `seen` is in seconds.
    fileprivate func presence(stored: Int64) -> Presence {
        Presence(seen: max(seen, stored) / 1000, status: isOnline ? 1 : 0)
    }
}
