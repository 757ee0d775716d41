import TambourProtocol

/// Where the ids of new users come from.
///
/// A user id is random below 2^43, so that nobody finds users by counting: JavaScript and JSON hold it
/// exactly, and a dialog's id (`A xor B`) stays below 2^43 as well. Ids of older stores count from 1 and stay.
package struct UserIDSource: Sendable {
    private static let bits = 43
    private static let bytes = 6
    /// Of two billion users one id in 4,000 is taken: so many in a row are a random source that is broken.
    static let maxTries = 64

    /// Any number; the id is its last 43 bits.
    private let next: @Sendable () -> UInt64

    /// Ids that nobody can guess.
    ///
    /// - Parameter randomBytes: as many unpredictable bytes as asked for.
    package static func random(
        _ randomBytes: @escaping @Sendable (_ count: Int) -> [UInt8]
    ) -> Self {
        Self { randomBytes(bytes).reduce(0) { $0 << 8 | UInt64(truncatingIfNeeded: $1) } }
    }

    /// - Parameter next: any number; the id is its last 43 bits.
    package init(_ next: @escaping @Sendable () -> UInt64) {
        self.next = next
    }

    /// Nil for 0, which is nobody's id.
    func candidate() -> UserID? {
        let id = next() & (1 << Self.bits - 1)
        return id == 0 ? nil : UserID(Int64(id))
    }
}

extension WriteTransaction {
    /// An id that no account has or had: rows of erased accounts stay.
    ///
    /// - Throws: `UserIDsExhausted` when the source brings nothing but ids that are taken.
    func newUserID() throws -> UserID {
        for _ in 0..<UserIDSource.maxTries {
            guard let id = userIDs.candidate(), try reader.account(id) == nil else { continue }
            return id
        }
        throw UserIDsExhausted()
    }
}

/// The random source repeats itself.
struct UserIDsExhausted: Error, CustomStringConvertible {
    var description: String {
        "no free user id in \(UserIDSource.maxTries) tries: the random source repeats itself"
    }
}
