import Synchronization
package import TambourProtocol

/// The token buckets of users and addresses.
///
/// The limiter stores a bucket as the time at which the bucket will be full again. It forgets full
/// buckets. It keeps at most `maxRateBuckets` buckets of users, and as many buckets of addresses. A
/// stranger with many addresses therefore cannot displace the buckets of users. When there are too
/// many buckets, the limiter forgets nearly full buckets before drained buckets.
///
/// Doors charge a request before it starts, so a flood of requests costs the engine no time.
package final class RateLimiter: Sendable {
    /// The owner of a bucket.
    package enum Subject: Hashable, Sendable {
        case user(UserID)
        case address(PeerAddress)
    }

    /// A bucket that its owner stores. The limiter stores only the size and the rate of the bucket.
    package struct OwnBucket {
        /// The steady time at which the bucket is full, in microseconds.
        fileprivate var fullAt: Int64 = 0

        package init() {}
    }

    private struct Key: Hashable {
        let subject: Subject
        let bucket: RateBucket
    }

    private struct Rate {
        /// The time in which the bucket gains one unit, in microseconds.
        let interval: Int64
        let burst: Int64

        init(burst: Int, perMinute: Int) {
            self.burst = Int64(burst)
            interval = 60_000_000 / Int64(perMinute)
        }

        /// The time in which an empty bucket becomes full, in microseconds.
        var depth: Int64 {
            let (depth, isTooLong) = interval.multipliedReportingOverflow(by: burst)
            return isTooLong ? RateLimiter.longestDepth : min(depth, RateLimiter.longestDepth)
        }

        /// Returns the price of `units`, in microseconds. It is at most the depth of the bucket.
        func price(of units: Int) -> Int64 {
            interval * min(max(0, Int64(units)), depth / max(1, interval))
        }

        /// Takes the price of `units` out of a bucket.
        ///
        /// - Returns: nil on success. If the bucket holds too little, takes nothing and returns the
        ///   time until the price is available, in milliseconds.
        func take(_ units: Int, from fullAt: inout Int64, now: Int64) -> Int64? {
            let price = price(of: units)
            let left = min(max(fullAt, now), now + depth)
            let missing = left + price - now - depth
            fullAt = missing > 0 ? left : left + price
            return missing > 0 ? (missing + 999) / 1000 : nil
        }

        /// Takes the price of `units` out of a bucket. If the bucket holds less, takes everything.
        func drain(_ units: Int, from fullAt: inout Int64, now: Int64) {
            fullAt = min(max(fullAt, now) + price(of: units), now + depth)
        }
    }

    /// The buckets that are not full. Each operation examines a constant number of them.
    private struct Buckets {
        private struct Slot {
            let key: Key
            /// The steady time at which the bucket is full, in microseconds.
            var fullAt: Int64
        }

        private let capacity: Int
        private var slots: [Slot] = []
        private var places: [Key: Int] = [:]
        /// The next slot that `sweep` or `makeRoom` examines.
        private var hand = 0

        /// The number of slots that each use of a bucket examines. Full buckets among them are
        /// forgotten.
        private static let sweptPerUse = 2
        /// The number of slots that are examined when all slots are in use. The bucket that is
        /// nearest to full is forgotten.
        private static let sampledForRoom = 16

        init(capacity: Int) {
            self.capacity = max(1, capacity)
        }

        var count: Int { slots.count }

        mutating func lend<R: Sendable>(
            _ key: Key,
            _ now: Int64,
            _ body: (_ fullAt: inout Int64) -> R
        ) -> R {
            for _ in 0..<Self.sweptPerUse { sweep(now) }
            if let place = places[key] { return body(&slots[place].fullAt) }
            var fullAt: Int64 = 0
            let result = body(&fullAt)
            if fullAt > now {
                if slots.count >= capacity { makeRoom() }
                places[key] = slots.count
                slots.append(Slot(key: key, fullAt: fullAt))
            }
            return result
        }

        /// Forgets the bucket at `hand` if it is full. Otherwise advances `hand`.
        private mutating func sweep(_ now: Int64) {
            guard let place = nextPlace() else { return }
            if slots[place].fullAt <= now { forget(place) } else { hand = place + 1 }
        }

        /// Examines the next slots, and forgets the bucket that will be full soonest. A forgotten
        /// bucket counts as full, so this choice gives the fewest units away.
        private mutating func makeRoom() {
            var nearest: Int?
            for _ in 0..<Self.sampledForRoom {
                guard let place = nextPlace() else { return }
                hand = place + 1
                if slots[place].fullAt < nearest.map({ slots[$0].fullAt }) ?? .max {
                    nearest = place
                }
            }
            if let nearest { forget(nearest) }
        }

        /// Returns the index of the slot at `hand`; nil when there are no slots.
        private func nextPlace() -> Int? {
            slots.isEmpty ? nil : hand < slots.count ? hand : 0
        }

        /// Removes a slot. The last slot moves to its index.
        private mutating func forget(_ place: Int) {
            places[slots[place].key] = nil
            let last = slots.removeLast()
            guard place < slots.count else { return }
            slots[place] = last
            places[last.key] = place
        }
    }

    private struct State {
        var users: Buckets
        var addresses: Buckets
        var clock = SteadyClock()
    }

    /// A clock that never goes back, even if the wall clock is set back. Buckets then continue to
    /// fill from their current level.
    private struct SteadyClock {
        private var lastWall = Int64.min
        private var ahead: Int64 = 0

        /// Returns the steady time, in microseconds.
        mutating func time(wallMs: Int64) -> Int64 {
            if wallMs < lastWall { ahead += lastWall - wallMs }
            lastWall = wallMs
            return (wallMs + ahead) * 1000
        }
    }

    /// The longest time in which an empty bucket becomes full: three hundred years, in
    /// microseconds. An operator's limits could result in a longer time.
    private static let longestDepth: Int64 = 9_467_280_000_000_000

    private let rates: [Rate]
    private let wallMs: @Sendable () -> Int64
    private let state: Mutex<State>

    package init(limits: Limits, wallMs: @escaping @Sendable () -> Int64) {
        rates = RateBucket.allCases.map {
            Rate(burst: $0.burst(in: limits), perMinute: $0.perMinute(in: limits))
        }
        self.wallMs = wallMs
        let buckets = Buckets(capacity: limits.maxRateBuckets)
        state = Mutex(State(users: buckets, addresses: buckets))
    }

    /// Takes units out of a bucket. If `units` exceeds the bucket's capacity, takes the capacity.
    ///
    /// - Returns: nil on success. If the bucket holds too few units, takes none and returns the
    ///   time until they are available, in milliseconds.
    package func take(_ units: Int = 1, from bucket: RateBucket, of subject: Subject) -> Int64? {
        withBucket(bucket, of: subject) { rate, fullAt, now in
            rate.take(units, from: &fullAt, now: now)
        } ?? nil
    }

    /// Takes units out of a bucket. If the bucket holds fewer, takes all of them. Callers use this
    /// method for costs that are known only after the work.
    package func charge(_ units: Int, to bucket: RateBucket, of subject: Subject) {
        _ = withBucket(bucket, of: subject) { rate, fullAt, now in
            rate.drain(units, from: &fullAt, now: now)
        }
    }

    /// Calls `body` with a bucket.
    ///
    /// - Returns: the result of `body`; nil for an unlimited bucket.
    private func withBucket<R: Sendable>(
        _ bucket: RateBucket,
        of subject: Subject,
        _ body: (Rate, _ fullAt: inout Int64, _ now: Int64) -> R
    ) -> R? {
        let rate = rates[Int(bucket.rawValue)]
        if rate.interval == 0 { return nil }
        return state.withLock { state in
            let now = state.clock.time(wallMs: wallMs())
            let key = Key(subject: subject, bucket: bucket)
            return switch subject {
            case .user: state.users.lend(key, now) { body(rate, &$0, now) }
            case .address: state.addresses.lend(key, now) { body(rate, &$0, now) }
            }
        }
    }

    /// Takes units out of a bucket that its owner stores.
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

    /// The number of buckets that the limiter stores.
    package var count: Int { state.withLock { $0.users.count + $0.addresses.count } }
}
