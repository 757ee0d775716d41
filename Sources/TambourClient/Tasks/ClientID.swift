import TambourProtocol

/// The name a client gives to what it sends (`cid`), by which the server knows a second sending.
///
/// Made once, before the first attempt, and kept in the payload of the task:
///
///     cid = -((ms << 20) | random20)
///
/// Negative numbers cannot be taken for ids that the server gave.
package struct ClientID: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: Int64

    package init(_ rawValue: Int64) { self.rawValue = rawValue }

    package var description: String { String(rawValue) }
}

/// Makes client ids, none twice in the life of a generator.
///
/// The same number twice would make the server answer the second message with the first, which is a
/// message lost. So a number that does not rise by itself, in one millisecond or after the clock
/// went back, is the last one plus one; across processes the 20 random bits tell ids apart.
package struct ClientIDGenerator: Sendable {
    private static let randomBits: Int64 = 20
    /// What is left of 63 bits: enough until the year 2248.
    private static let latestMs: Int64 = (1 << (63 - randomBits)) - 1

    private var last: Int64 = 0

    package init() {}

    /// The next id.
    ///
    /// - Parameter nowMs: Unix time in milliseconds; what does not fit into 43 bits is cut to fit.
    /// - Parameter random: of which 20 bits are taken.
    package mutating func next(nowMs: Int64, random: UInt64) -> ClientID {
        let ms = min(max(nowMs, 1), Self.latestMs)
        let bits = Int64(truncatingIfNeeded: random) & ((1 << Self.randomBits) - 1)
        let fresh = (ms << Self.randomBits) | bits
        // At the very end of the range the numbers begin anew rather than overflow.
        last = fresh > last || last == .max ? fresh : last + 1
        return ClientID(-last)
    }
}
