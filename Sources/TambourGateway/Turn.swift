import TambourProtocol

/// A connection's turn: the bytes and frames that it may still handle before other connections get
/// their turns.
struct Turn {
    private var bytes: Int
    private var frames: Int
    /// The work so far, roughly in bytes.
    private(set) var work = 0

    /// The fixed work for each frame. It takes as long as the work for this many payload bytes.
    private static let bytesPerFrame = 256

    /// - Parameter sharing: the number of the account's connections on the lane. Together they get
    ///   the turn of one connection, but each of them may handle at least one frame.
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

    /// Counts an inflated payload, which is `count` bytes longer than its compressed form.
    mutating func inflated(by count: Int) {
        guard count > 0 else { return }
        bytes -= count
        work += count
    }
}
