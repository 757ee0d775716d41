import Synchronization
package import TambourProtocol

/// The users whom each user has recently found by phone, name or link.
///
/// A user who finds others, the finder, may see them, write to them or add them. A message or a
/// contact makes this permission permanent. The record can therefore be small and in memory only.
/// It keeps at least the `maxFinders / 2` most recent finders, each with the last `maxFoundPeople`
/// people that they found.
package final class FoundPeople: Sendable {
    /// The people whom one user has found, in a ring.
    private struct Ring {
        var people: [UserID] = []
        /// The slot that is overwritten next when the ring is full.
        var place = 0
    }

    /// New finders are added to `young`. If `young` already contains half of `maxFinders`, it first
    /// becomes `old`, and the previous `old` is dropped.
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
