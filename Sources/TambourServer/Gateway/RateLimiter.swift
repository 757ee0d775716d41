import Synchronization
package import TambourNet
package import TambourProtocol

/// The token buckets of users and addresses.
///
/// A bucket is one number: the time at which it is full again. A full bucket needs no memory, so only
/// buckets in use are kept, at most `maxRateBuckets` of users and as many of addresses: a stranger with
/// many addresses cannot have the buckets of users forgotten. Lanes ask before a request starts, so a
/// flood costs the engine nothing.
package final class RateLimiter: Sendable {
    /// Whose bucket it is.
    package enum Subject: Hashable, Sendable {
        case user(UserID)
        case address(PeerAddress)
    }

    /// A bucket that its owner keeps: the limiter knows its size.
    package struct OwnBucket {
        /// The steady time at which it is full, microseconds.
        fileprivate var fullAt: Int64 = 0

        package init() {}
    }

    private struct Key: Hashable {
        let bucket: RateBucket
        let subject: Subject
    }

    private struct Rate {
        /// Microseconds until one more unit is there.
        let interval: Int64
        let burst: Int64

        init(burst: Int, perMinute: Int) {
            self.burst = Int64(burst)
            interval = 60_000_000 / Int64(perMinute)
        }

        /// How long an empty bucket takes to be full, microseconds.
        var depth: Int64 {
            let (depth, isTooLong) = interval.multipliedReportingOverflow(by: burst)
            return isTooLong ? RateLimiter.longestDepth : min(depth, RateLimiter.longestDepth)
        }

        /// What units take from the bucket, or all it can hold if that is less; microseconds.
        func price(of units: Int) -> Int64 {
            interval * min(max(0, Int64(units)), depth / max(1, interval))
        }

        /// Takes a price.
        ///
        /// - Returns: nil when it was there, otherwise in how many milliseconds it will be; nothing
        ///   is taken then.
        func take(_ units: Int, from fullAt: inout Int64, now: Int64) -> Int64? {
            let price = price(of: units)
            let left = min(max(fullAt, now), now + depth)
            let missing = left + price - now - depth
            fullAt = missing > 0 ? left : left + price
            return missing > 0 ? (missing + 999) / 1000 : nil
        }

        /// Takes a price, or what is left.
        func drain(_ units: Int, from fullAt: inout Int64, now: Int64) {
            fullAt = min(max(fullAt, now) + price(of: units), now + depth)
        }
    }

    /// Two generations: the buckets touched since the last turn, and those touched in the one before.
    private struct Generations {
        var young: [Key: Int64] = [:]
        var old: [Key: Int64] = [:]
        var turnedAt: Int64 = 0

        var count: Int { young.count + old.count }
    }

    private struct State {
        var users = Generations()
        var addresses = Generations()
        var clock = SteadyClock()
    }

    /// Time that never goes back, whatever is done to the wall clock: buckets go on where they are.
    private struct SteadyClock {
        private var lastWall = Int64.min
        private var ahead: Int64 = 0

        /// The steady time, microseconds.
        mutating func time(wallMs: Int64) -> Int64 {
            if wallMs < lastWall { ahead += lastWall - wallMs }
            lastWall = wallMs
            return (wallMs + ahead) * 1000
        }
    }

    /// Three hundred years, microseconds: the limits of an operator may ask for more.
    private static let longestDepth: Int64 = 9_467_280_000_000_000

    private let rates: [Rate]
    private let capacity: Int
    /// After so many microseconds without a touch every bucket is full.
    private let longest: Int64
    private let wallMs: @Sendable () -> Int64
    private let state = Mutex(State())

    package init(limits: Limits, wallMs: @escaping @Sendable () -> Int64) {
        rates = RateBucket.allCases.map {
            Rate(burst: $0.burst(in: limits), perMinute: $0.perMinute(in: limits))
        }
        capacity = limits.maxRateBuckets
        longest = rates.map(\.depth).max() ?? 0
        self.wallMs = wallMs
    }

    /// Takes units out of a bucket, or all it can ever hold if that is less.
    ///
    /// - Returns: nil when they were there, otherwise in how many milliseconds they will be; nothing
    ///   is taken then.
    package func take(_ units: Int = 1, from bucket: RateBucket, of subject: Subject) -> Int64? {
        withBucket(bucket, of: subject) { rate, fullAt, now in
            rate.take(units, from: &fullAt, now: now)
        } ?? nil
    }

    /// Takes units out of a bucket, or all that are left: for what is known only when it is done.
    package func charge(_ units: Int, to bucket: RateBucket, of subject: Subject) {
        _ = withBucket(bucket, of: subject) { rate, fullAt, now in
            rate.drain(units, from: &fullAt, now: now)
        }
    }

    /// Lends a bucket to `body`.
    ///
    /// - Returns: nil for a bucket without a bound.
    private func withBucket<R: Sendable>(
        _ bucket: RateBucket,
        of subject: Subject,
        _ body: (Rate, _ fullAt: inout Int64, _ now: Int64) -> R
    ) -> R? {
        let rate = rates[Int(bucket.rawValue)]
        if rate.interval == 0 { return nil }
        return state.withLock { state in
            let now = state.clock.time(wallMs: wallMs())
            let key = Key(bucket: bucket, subject: subject)
            return switch subject {
            case .user: lend(key, of: &state.users, now) { body(rate, &$0, now) }
            case .address: lend(key, of: &state.addresses, now) { body(rate, &$0, now) }
            }
        }
    }

    /// The same with a bucket that its owner keeps.
    package func take(
        _ units: Int = 1,
        from bucket: RateBucket,
        kept own: inout OwnBucket
    ) -> Int64? {
        let rate = rates[Int(bucket.rawValue)]
        if rate.interval == 0 { return nil }
        let now = state.withLock { $0.clock.time(wallMs: wallMs()) }
        return rate.take(units, from: &own.fullAt, now: now)
    }

    private func lend<R: Sendable>(
        _ key: Key,
        of buckets: inout Generations,
        _ now: Int64,
        _ body: (_ fullAt: inout Int64) -> R
    ) -> R {
        turnIfDue(&buckets, now)
        var fullAt = buckets.young[key] ?? buckets.old.removeValue(forKey: key) ?? 0
        defer { buckets.young[key] = fullAt }
        return body(&fullAt)
    }

    /// Forgets buckets that were not touched for a whole generation: they are full, unless there were
    /// too many.
    private func turnIfDue(_ buckets: inout Generations, _ now: Int64) {
        let age = now - buckets.turnedAt
        guard buckets.young.count >= max(1, capacity / 2) || age > longest else { return }
        buckets.old = buckets.young
        buckets.young = [:]
        buckets.turnedAt = now
    }

    /// The number of buckets that are kept.
    package var count: Int { state.withLock { $0.users.count + $0.addresses.count } }
}
