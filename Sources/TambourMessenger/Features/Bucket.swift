import Crypto
import TambourProtocol

/// The bucket of a subject for one feature.
///
/// The bucket is the first four bytes of the SHA-256 of `feature|salt|subject`, modulo 10,000. A
/// rule compares the bucket with a percentage. The next four bytes of the hash choose the
/// variation. The bucket and the variation of a subject are therefore independent of each other.
/// They are also independent of the subject's buckets and variations for other features.
struct Bucket {
    /// The number of buckets. It allows percentages with two decimals.
    static let count = 10_000

    /// The numbers from the hash. They are computed on first use, because most rules do not need
    /// them.
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

    /// - Parameter subject: nil for a client without a user and without a device id. Only a
    ///   percentage of 100 includes such a client, and the client gets no variation.
    init(feature: String, salt: String, subject: String?) {
        self.feature = feature
        self.salt = salt
        self.subject = subject
    }

    /// Returns whether the bucket is one of the first `percent` buckets.
    ///
    /// - Parameter percent: a percentage in hundredths, because each bucket is a hundredth of a
    /// percent.
    mutating func isWithin(_ percent: Int) -> Bool {
        if percent >= Self.count { return true }
        return percent > 0 && subject != nil && numbers.bucket < percent
    }

    /// Returns the subject's variation, which is chosen by weight.
    mutating func share(of variations: [FeaturePlan.Variation]) -> String? {
        let sum = variations.reduce(0) { $0 + UInt64($1.weight) }
        guard subject != nil, sum > 0 else { return nil }
        // Compute `share * sum / 2^32`. The product may need more than 64 bits.
        let (high, low) = numbers.share.multipliedFullWidth(by: sum)
        var left = high << 32 | low >> 32
        for variation in variations {
            if left < UInt64(variation.weight) { return variation.name }
            left -= UInt64(variation.weight)
        }
        preconditionFailure("a share is below the sum of the weights")
    }
}
