import Synchronization
package import TambourProtocol
package import TambourStore

/// Who is online, and who wants to know. In memory only: `seen` is stored by a deferred command.
///
/// A user is online while at least one live session is interactive. Going offline is told after a
/// delay, so a reconnect is not worth two pushes; who comes back soon after that is told of at the end of
/// one more. A session follows its most recent dialog partners and those whose chats it opens.
package final class PresenceRegistry: Sendable {
    fileprivate struct User {
        var interactive = 0
        /// Changes with every coming and going: what ends a delay knows whether it was the last.
        var turn = 0
        /// What those see who ask: going shows after the delay.
        var isOnline = false
        /// What others were told last.
        var isToldOnline = false
        /// Others were told a moment ago that the user went: that much later they hear how it goes on.
        var isResting = false
        /// Unix milliseconds; when it was online last, 0 for unknown.
        var seen: Int64 = 0
        /// When what others see of it changed last, on the commit clock: logins compare it with a mark.
        var changed: Int64 = 0
    }

    /// Those who follow a user, in the order in which they began to.
    private struct Watchers {
        /// How many sessions of each follow, and where in `order` the one stands that began last.
        private var places: [UserID: (sessions: Int, place: Int)] = [:]
        /// Nil where somebody stood who follows no more, or has begun anew.
        private var order: [UserID?] = []

        var isEmpty: Bool { places.isEmpty }

        mutating func add(_ watcher: UserID) {
            let known = places[watcher]
            if let known { order[known.place] = nil }
            if order.count > 2 * places.count + 32 { closeGaps() }
            places[watcher] = ((known?.sessions ?? 0) + 1, order.count)
            order.append(watcher)
        }

        /// One session less.
        mutating func remove(_ watcher: UserID) {
            guard let (sessions, place) = places[watcher] else { return }
            if sessions > 1 {
                places[watcher] = (sessions - 1, place)
            } else {
                places[watcher] = nil
                order[place] = nil
            }
        }

        /// Those who began last, at most `limit`, in the order of their ids.
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
    /// What clients were told before is not known here: commit clock.
    private let started: Int64
    /// How many users hear of a change, at most.
    private let audience: Int

    /// - Parameter wall: the wall clock, Unix milliseconds, as everywhere here.
    package init(clock: CommitClock, wall: Int64, limits: Limits) {
        self.clock = clock
        started = clock.now(wall: wall)
        audience = limits.presencePushes
    }

    /// A session became interactive: the presence to push when that made the user come online. After
    /// a short absence that was told, `rested` has it.
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

    /// Whether the user has a live session that is interactive.
    func isThere(_ id: UserID) -> Bool {
        state.withLock { $0.users[id, default: User()].interactive > 0 }
    }

    /// A session went to the background or closed.
    ///
    /// - Returns: when it was the last: what `settled` is to be called with after the delay.
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

    /// A login that is not interactive: nobody is told, but it shows at the next login of others.
    func noted(_ id: UserID, wall: Int64) {
        state.withLock { state in
            var user = state.users[id] ?? User()
            user.seen = max(user.seen, wall)
            user.changed = clock.now(wall: wall)
            state.users[id] = user
        }
    }

    /// The delay after the last `left` is over.
    ///
    /// - Parameter turn: what `left` returned.
    /// - Returns: the push when the user stayed away all the time: then call `rested` after one more delay.
    func settled(_ id: UserID, turn: Int, wall: Int64) -> Event? {
        state.withLock { state in
            guard var user = state.users[id], user.turn == turn, user.isOnline else { return nil }
            user.isOnline = false
            user.changed = clock.now(wall: wall)
            return tell(id, &user, &state)
        }
    }

    /// The delay after the push of `settled` is over: the push when the user is there again.
    func rested(_ id: UserID) -> Event? {
        state.withLock { state in
            guard var user = state.users[id] else { return nil }
            user.isResting = false
            // Whoever is about to go again has not come for others.
            if user.interactive > 0 { return tell(id, &user, &state) }
            state.users[id] = user
            return nil
        }
    }

    /// Stores what has become of the user, and says what others are to be told of it now.
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
}

extension PresenceRegistry.User {
    /// `seen` is in seconds on the wire.
    fileprivate func presence(stored: Int64) -> Presence {
        Presence(seen: max(seen, stored) / 1000, status: isOnline ? 1 : 0)
    }
}
