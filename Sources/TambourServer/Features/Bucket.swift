import Crypto
import TambourProtocol

/// Where a subject falls for one feature.
///
/// The SHA-256 of `feature|salt|subject`: its first four bytes, modulo 10,000, are held against a
/// percentage; the next four choose a variation. So the two do not depend on each other, nor does
/// either on another feature.
struct Bucket {
    /// How many there are: a percentage has two decimals.
    static let count = 10_000

    /// Made when the first rule asks: most rules do not.
    private lazy var numbers: (bucket: Int, share: UInt64) = {
        var sha = SHA256()
        for text in [feature, "|", salt, "|", subject ?? ""] { sha.update(data: Array(text.utf8)) }
        let digest = Array(sha.finalize())
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
            bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        return (Int(number(digest[..<4]) % UInt64(Self.count)), number(digest[4..<8]))
    }()
    private let feature: String
    private let salt: String
    private let subject: String?

    /// - Parameter subject: nil for who has no name: in everybody's percentage only, and in no variation.
    init(feature: String, salt: String, subject: String?) {
        self.feature = feature
        self.salt = salt
        self.subject = subject
    }

    /// Whether it is among the first `percent` hundredths of a percent.
    mutating func isWithin(_ percent: Int) -> Bool {
        if percent >= Self.count { return true }
        return percent > 0 && subject != nil && numbers.bucket < percent
    }

    /// The variation it falls into by weight.
    mutating func share(of variations: [FeaturePlan.Variation]) -> String? {
        let sum = variations.reduce(0) { $0 + UInt64($1.weight) }
        guard subject != nil, sum > 0 else { return nil }
        // The product may need more than 64 bits: weights are many.
        let (high, low) = numbers.share.multipliedFullWidth(by: sum)
        var left = high << 32 | low >> 32
        for variation in variations {
            if left < UInt64(variation.weight) { return variation.name }
            left -= UInt64(variation.weight)
        }
        preconditionFailure("a share is below the sum of the weights")
    }
}
