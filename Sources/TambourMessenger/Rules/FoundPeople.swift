import Synchronization
package import TambourProtocol

/// The users whom each user has recently found by phone, name or link.
///
/// The finder may see, message or add the found users. A message or a contact makes this permission
/// permanent, so the record is bounded and in memory only. It keeps the last `maxFoundPeople`
/// people of each finder, for at least the `maxFinders / 2` most recent finders.
package final class FoundPeople: Sendable {
    /// The people that one user has found, in a ring.
    private struct Ring {
        var people: [UserID] = []
        /// The next slot to overwrite once the ring is full.
        var place = 0
    }

    /// Finders are added to `young`. When it already holds half of `maxFinders`, it becomes `old`
    /// before the next finder is added, and the previous `old` is dropped.
    private struct State {
        var young: [UserID: Ring] = [:]
        var old: [UserID: Ring] = [:]
    }

    private let state = Mutex(State())
    private let perFinder: Int
    private let halfOfFinders: Int

    package init(limits: Limits) {
        perFinder = limits.maxFoundPeople
        halfOfFinders = max(1, limits.maxFinders / 2)
    }

    package func note(_ people: some Sequence<UserID>, by finder: UserID) {
        state.withLock { state in
            var ring = state.young[finder] ?? state.old[finder] ?? Ring()
            for user in people where user != finder && !ring.people.contains(user) {
                if ring.people.count < perFinder {
                    ring.people.append(user)
                } else {
                    ring.people[ring.place] = user
                    ring.place = (ring.place + 1) % perFinder
                }
            }
            guard !ring.people.isEmpty else { return }
            if state.young[finder] == nil, state.young.count >= halfOfFinders {
                state.old = state.young
                state.young = [:]
            }
            state.young[finder] = ring
        }
    }

    package func has(_ user: UserID, foundBy finder: UserID) -> Bool {
        state.withLock { state in
            (state.young[finder] ?? state.old[finder])?.people.contains(user) ?? false
        }
    }
}
