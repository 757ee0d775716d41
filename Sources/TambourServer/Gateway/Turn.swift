import TambourProtocol

/// What a connection may still have handled before the others get their turn.
struct Turn {
    private var bytes: Int
    private var frames: Int
    /// What was handled so far, roughly in bytes.
    private(set) var work = 0

    /// The bytes of a large frame that cost as much as the smallest frame does.
    private static let bytesPerFrame = 256

    init(_ limits: Limits, isStranger: Bool) {
        bytes = isStranger ? limits.maxTurnBytesBeforeLogin : limits.maxTurnBytes
        frames = isStranger ? limits.maxTurnFramesBeforeLogin : limits.maxTurnFrames
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
