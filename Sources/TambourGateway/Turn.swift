import TambourProtocol

/// The bytes and frames that a connection may still handle before other connections get their turn.
struct Turn {
    private var bytes: Int
    private var frames: Int
    /// The work so far, roughly in bytes.
    private(set) var work = 0

    /// The fixed work for each frame, as the number of payload bytes that take the same time.
    private static let bytesPerFrame = 256

    /// - Parameter sharing: the number of the account's connections on the lane. Together they have
    ///   the turn of one connection, but each may handle at least one frame.
    init(_ limits: Limits, isStranger: Bool, sharing: Int = 1) {
        bytes = isStranger ? limits.maxTurnBytesBeforeLogin : limits.maxTurnBytes / max(1, sharing)
        frames =
            isStranger ? limits.maxTurnFramesBeforeLogin : limits.maxTurnFrames / max(1, sharing)
    }

    var isOver: Bool { bytes <= 0 || frames <= 0 }

    /// Counts a handled frame of `count` bytes.
    mutating func handled(_ count: Int) {
        frames -= 1
        bytes -= count
        work += count + Self.bytesPerFrame
    }

    /// Counts the `count` bytes by which a payload grew when it was inflated.
    mutating func inflated(by count: Int) {
        guard count > 0 else { return }
        bytes -= count
        work += count
    }
}
