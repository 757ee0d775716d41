import Synchronization
package import TambourProtocol

/// What may be asked for only so often; `protocol-spec/prose/session.md` says which request is what.
package enum RateClass: UInt8, CaseIterable, Sendable {
    case send, create, invite, join, search, phoneBook, auth, login
}

/// Token buckets of users and addresses.
///
/// A bucket is one number: the time at which it is full again. One that is full is as good as none,
/// so only those in use are kept, at most `maxRateBuckets`. Asked on lanes, before a request starts: a
/// flood costs the engine nothing.
package final class RateLimiter: Sendable {
    /// Whose bucket it is.
    package enum Subject: Hashable, Sendable {
        case user(UserID)
        /// Of an IPv6 address the first half: whoever has one has all that begin so.
        case address(String)

        package init(address: String) {
            guard address.contains(":") else {
                self = .address(address)
                return
            }
            let groups = address.split(separator: ":", omittingEmptySubsequences: false)
            self = .address(groups.prefix(4).joined(separator: ":"))
        }
    }

    private struct Key: Hashable {
        let kind: RateClass
        let subject: Subject
    }

    private struct Rate {
        /// Microseconds until one more may be asked for.
        let interval: Int64
        let burst: Int64

        init(burst: Int, perMinute: Int) {
            self.burst = Int64(burst)
            interval = 60_000_000 / Int64(perMinute)
        }

        /// How long an empty bucket takes to be full, microseconds.
        var depth: Int64 { interval * burst }
    }

    /// Two generations: what was touched since the last turn, and what was touched in the one before.
    private struct State {
        var young: [Key: Int64] = [:]
        var old: [Key: Int64] = [:]
        var turnedAt: Int64 = 0
    }

    private let rates: [Rate]
    private let capacity: Int
    /// After so many microseconds without a touch every bucket is full.
    private let longest: Int64
    private let wallMs: @Sendable () -> Int64
    private let state = Mutex(State())

    package init(limits: Limits, wallMs: @escaping @Sendable () -> Int64) {
        rates = RateClass.allCases.map { kind in
            switch kind {
            case .send: Rate(burst: limits.sendBurst, perMinute: limits.sendsPerMinute)
            case .create: Rate(burst: limits.createBurst, perMinute: limits.createsPerMinute)
            case .invite: Rate(burst: limits.inviteBurst, perMinute: limits.invitesPerMinute)
            case .join: Rate(burst: limits.joinBurst, perMinute: limits.joinsPerMinute)
            case .search: Rate(burst: limits.searchBurst, perMinute: limits.searchesPerMinute)
            case .phoneBook:
                Rate(burst: limits.phoneBookBurst, perMinute: limits.phoneBookPerMinute)
            case .auth: Rate(burst: limits.authBurst, perMinute: limits.authsPerMinute)
            case .login: Rate(burst: limits.loginBurst, perMinute: limits.loginsPerMinute)
            }
        }
        capacity = limits.maxRateBuckets
        longest = rates.map(\.depth).max() ?? 0
        self.wallMs = wallMs
    }

    /// Takes `cost` out of a bucket, or all it can ever hold if that is less.
    ///
    /// - Returns: nil when it was there, otherwise in how many milliseconds it will be; nothing is
    ///   taken then.
    package func take(_ kind: RateClass, of subject: Subject, cost: Int = 1) -> Int64? {
        let rate = rates[Int(kind.rawValue)]
        let price = rate.interval * min(Int64(cost), rate.burst)
        if price == 0 { return nil }
        let now = wallMs() * 1000
        let key = Key(kind: kind, subject: subject)
        return state.withLock { state in
            turnIfDue(&state, now)
            let known = state.young[key] ?? state.old.removeValue(forKey: key) ?? 0
            // A clock that was set back must not lock anybody out for longer than a bucket takes.
            let left = min(max(known, now), now + rate.depth)
            let missing = left + price - now - rate.depth
            state.young[key] = missing > 0 ? left : left + price
            return missing > 0 ? (missing + 999) / 1000 : nil
        }
    }

    /// Forgets what was not touched for a whole generation: it is full, unless there were too many.
    private func turnIfDue(_ state: inout State, _ now: Int64) {
        let age = now - state.turnedAt
        guard state.young.count >= max(1, capacity / 2) || age > longest || age < 0 else { return }
        state.old = state.young
        state.young = [:]
        state.turnedAt = now
    }

    /// Buckets that are kept.
    package var count: Int { state.withLock { $0.young.count + $0.old.count } }
}
