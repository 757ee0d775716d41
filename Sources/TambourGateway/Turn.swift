import TambourProtocol

/// What a connection may still have handled before the others get their turn.
struct Turn {
    private var bytes: Int
    private var frames: Int
    /// What was handled so far, roughly in bytes.
    private(set) var work = 0

    /// The bytes of a large frame that cost as much as the smallest frame does.
    private static let bytesPerFrame = 256

    /// - Parameter sharing: the connections of the account on the lane. They have the turn of one together,
    ///   but each has a frame of it at least.
    init(_ limits: Limits, isStranger: Bool, sharing: Int = 1) {
        bytes = isStranger ? limits.maxTurnBytesBeforeLogin : limits.maxTurnBytes / max(1, sharing)
        frames =
            isStranger ? limits.maxTurnFramesBeforeLogin : limits.maxTurnFrames / max(1, sharing)
    }

    var isOver: Bool { bytes <= 0 || frames <= 0 }

    /// A frame of `count` bytes was handled.
    mutating func handled(_ count: Int) {
        frames -= 1
        bytes -= count
        work += count + Self.bytesPerFrame
    }

    /// A payload has become larger by `count` bytes.
    mutating func inflated(by count: Int) {
        guard count > 0 else { return }
        bytes -= count
        work += count
    }
}
