/// Carries photos to where messages can name them.
///
/// The only one there is, `StandInUpload`, carries nothing: the server does not take uploads yet.
package protocol PhotoUpload: Sendable {
    /// Brings the bytes of a file from `offset` on to the other side.
    ///
    /// Ends soon when its task is cancelled; what it then throws is of no consequence.
    ///
    /// - Parameters:
    ///   - key: names the upload in all its attempts: when an answer was lost, the next attempt under
    ///     the same key gets it again.
    ///   - offset: the other side has said that it holds all bytes before.
    ///   - reached: to be told the offset from which on an attempt after this one goes on, at times
    ///     that are worth a write to the disk.
    func upload(
        _ file: PhotoFile,
        path: String,
        key: String,
        from offset: Int64,
        reached: @escaping @Sendable (Int64) -> Void
    ) async throws(PhotoError) -> PhotoToken
}

/// By what a message names an uploaded photo.
package struct PhotoToken: Hashable, Sendable {
    package let token: String
    /// How long from now on a message may name it.
    package let goodFor: Duration

    package init(_ token: String, goodFor: Duration) {
        self.token = token
        self.goodFor = goodFor
    }
}

/// A token as it is stored.
struct HeldPhotoToken: Codable, Hashable, Sendable {
    let token: String
    /// When it is of no use any more, Unix milliseconds of this device.
    let untilHereMs: Int64
}

/// Why a photo could not be copied or uploaded.
package struct PhotoError: Error, Hashable, Sendable {
    /// Whether another attempt makes sense.
    package let retry: RetryClass
    /// For people.
    package let reason: String

    package init(_ retry: RetryClass, _ reason: String) {
        self.retry = retry
        self.reason = reason
    }
}
