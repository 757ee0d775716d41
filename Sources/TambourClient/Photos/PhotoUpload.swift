/// Uploads photos, so that messages can refer to them.
///
/// The only implementation, `StandInUpload`, uploads nothing: the server does not accept uploads
/// yet.
package protocol PhotoUpload: Sendable {
    /// Uploads the bytes of a file, starting at `offset`.
    ///
    /// Returns soon after its task is cancelled. An error thrown after that is ignored.
    ///
    /// - Parameters:
    ///   - key: the idempotency key, which is the same for all attempts. After a lost answer, the
    ///     next attempt with the key receives the same answer.
    ///   - offset: the server has confirmed all bytes before this offset.
    ///   - reached: called with the offset from which a later attempt can continue. The calls are
    ///     rare enough to store each offset on disk.
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
    /// The remaining time in which a message may use the token.
    package let goodFor: Duration

    package init(_ token: String, goodFor: Duration) {
        self.token = token
        self.goodFor = goodFor
    }
}

/// A stored token.
struct HeldPhotoToken: Codable, Hashable, Sendable {
    let token: String
    /// The time of expiry, in Unix milliseconds of this device.
    let untilHereMs: Int64
}

/// The reason why a photo could not be copied or uploaded.
package struct PhotoError: Error, Hashable, Sendable {
    /// How to retry.
    package let retry: RetryClass
    /// The reason, as text for the user.
    package let reason: String

    package init(_ retry: RetryClass, _ reason: String) {
        self.retry = retry
        self.reason = reason
    }
}
