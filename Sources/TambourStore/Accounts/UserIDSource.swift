import TambourProtocol

/// The source of ids for new users.
///
/// A user id is random and below 2^43. Nobody can therefore find users by trying successive ids.
/// JavaScript and JSON can represent such an id exactly. A dialog's id (`A xor B`) is also below
/// 2^43. In older stores, the existing users keep their ids, which count from 1.
package struct UserIDSource: Sendable {
    private static let bits = 43
    private static let bytes = 6
    /// The maximum number of ids to try. If all of them are taken, the random source is broken,
    /// because even with two billion users only one id in 4,000 is taken.
    static let maxTries = 64

    /// Returns any number; its low 43 bits become the id.
    private let next: @Sendable () -> UInt64

    /// A source of unpredictable ids.
    ///
    /// - Parameter randomBytes: returns the requested number of unpredictable bytes.
    package static func random(
        _ randomBytes: @escaping @Sendable (_ count: Int) -> [UInt8]
    ) -> Self {
        Self { randomBytes(bytes).reduce(0) { $0 << 8 | UInt64(truncatingIfNeeded: $1) } }
    }

    /// - Parameter next: returns any number; its low 43 bits become the id.
    package init(_ next: @escaping @Sendable () -> UInt64) {
        self.next = next
    }

    /// Returns an id. Returns nil instead of the id 0, which is never assigned.
    func candidate() -> UserID? {
        let id = next() & (1 << Self.bits - 1)
        return id == 0 ? nil : UserID(Int64(id))
    }
}

extension WriteTransaction {
    /// Returns an id that no account has and no earlier account had. The rows of erased accounts
    /// stay, so the ids of these accounts are not reused.
    ///
    /// - Throws: `UserIDsExhausted` if the source returns only taken ids.
    func newUserID() throws -> UserID {
        for _ in 0..<UserIDSource.maxTries {
            guard let id = userIDs.candidate(), try reader.account(id) == nil else { continue }
            return id
        }
        throw UserIDsExhausted()
    }
}

/// The error for a source that returns only taken ids.
struct UserIDsExhausted: Error, CustomStringConvertible {
    var description: String {
        "no free user id in \(UserIDSource.maxTries) tries: the random source repeats itself"
    }
}
