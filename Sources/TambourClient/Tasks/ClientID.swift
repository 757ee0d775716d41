import TambourProtocol

/// The idempotency key of a message (`cid`), by which the server recognises a retry.
///
/// It is generated once, before the first attempt, and stored in the task's payload:
///
///     cid = -((ms << 20) | random20)
///
/// Negative numbers cannot be confused with ids that the server assigns.
package struct ClientID: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package var description: String { String(rawValue) }
}

/// Generates client ids. A generator never returns the same id twice.
///
/// If two messages had the same id, the server would answer the request for the second message with
/// the first message. The second message would be lost. The numbers must therefore rise. Within one
/// millisecond, or after the clock went back, the generator returns the last number plus one. The
/// 20 random bits distinguish the ids of different processes.
package struct ClientIDGenerator: Sendable {
    private static let randomBits: Int64 = 20
    /// The largest time that fits into the other 43 bits: the year 2248.
    private static let latestMs: Int64 = (1 << (63 - randomBits)) - 1

    private var last: Int64 = 0

    package init() {}

    /// Returns the next id.
    ///
    /// - Parameter nowMs: Unix time in milliseconds, clamped to 43 bits.
    /// - Parameter random: random bits; 20 of them are used.
    package mutating func next(nowMs: Int64, random: UInt64) -> ClientID {
        let ms = min(max(nowMs, 1), Self.latestMs)
        let bits = Int64(truncatingIfNeeded: random) & ((1 << Self.randomBits) - 1)
        let fresh = (ms << Self.randomBits) | bits
        // At the very end of the range, the numbers start over instead of overflowing.
        last = fresh > last || last == .max ? fresh : last + 1
        return ClientID(-last)
    }
}
