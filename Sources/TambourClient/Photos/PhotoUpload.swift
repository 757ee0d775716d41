/// Uploads photos, so that messages can refer to them.
///
/// The only implementation, `StandInUpload`, uploads nothing: the server does not accept uploads
/// yet.
package protocol PhotoUpload: Sendable {
    /// Uploads the bytes of a file, starting at `offset`.
    ///
    /// Returns soon after its task is cancelled; an error it throws then is ignored.
    ///
    /// - Parameters:
    ///   - key: the idempotency key of all attempts. After a lost answer, the next attempt under
    ///     the same key gets it again.
    ///   - offset: the server has confirmed all bytes before it.
    ///   - reached: called with the offset from which a later attempt can continue, not more often
    ///     than is worth a write to disk.
    func upload(
        _ file: PhotoFile,
        path: String,
        key: String,
        from offset: Int64,
        reached: @escaping @Sendable (Int64) -> Void
    ) async throws(PhotoError) -> PhotoToken
}

/// A token with which a message refers to an uploaded photo.
package struct PhotoToken: Hashable, Sendable {
    package let token: String
    /// How long a message may use it, from now on.
    package let goodFor: Duration

    package init(_ token: String, goodFor: Duration) {
        self.token = token
        self.goodFor = goodFor
    }
}

/// A stored token.
struct HeldPhotoToken: Codable, Hashable, Sendable {
    let token: String
    /// When it expires, in Unix milliseconds of this device.
    let untilHereMs: Int64
}

/// Why a photo could not be copied or uploaded.
package struct PhotoError: Error, Hashable, Sendable {
    /// How to retry.
    package let retry: RetryClass
    /// For people.
    package let reason: String

    package init(_ retry: RetryClass, _ reason: String) {
        self.retry = retry
        self.reason = reason
    }
}
