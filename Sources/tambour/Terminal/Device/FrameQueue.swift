/// What is on its way to the terminal: bytes that must arrive, and the newest frame behind them.
///
/// A frame becomes bytes when all before it have left. So a slow terminal is never more than one
/// frame behind, frames in between are skipped, and the renderer knows what the terminal shows. It
/// holds no more than one rendered frame and `maxControlBytes`.
struct FrameQueue: Sendable {
    private let maxControlBytes: Int
    private var renderer: Renderer
    private var bytes: [UInt8] = []
    private var sent = 0
    private var waiting: Surface?
    private var newest: Surface?

    /// Frames that a newer one replaced before they were rendered.
    private(set) var skippedFrames = 0
    private(set) var renderedFrames = 0
    /// All bytes that were taken out.
    private(set) var totalBytes = 0

    init(renderer: Renderer, maxControlBytes: Int = 256 * 1024) {
        self.renderer = renderer
        self.maxControlBytes = maxControlBytes
    }

    /// Whether nothing is left to write.
    var isDrained: Bool { sent == bytes.count && waiting == nil }
    /// Whether a part of what was rendered has left and a part has not.
    var isCutOff: Bool { sent > 0 && sent < bytes.count }
    var queuedBytes: Int { bytes.count - sent }

    /// Shows a surface as soon as the terminal has taken what it was sent before.
    mutating func show(_ surface: Surface) {
        if waiting != nil { skippedFrames += 1 }
        waiting = surface
        newest = surface
    }

    /// Sends bytes that are no part of a frame.
    ///
    /// - Returns: Whether there was room for them.
    mutating func send(_ control: some Collection<UInt8>) -> Bool {
        guard queuedBytes + control.count <= maxControlBytes else { return false }
        bytes.append(contentsOf: control)
        return true
    }

    /// What the terminal shows is unknown: the next frame is painted in full.
    mutating func forget() { renderer.forget() }

    /// Paints the newest frame in full: something else wrote to the terminal.
    mutating func repaint() {
        forget()
        waiting = newest
    }

    /// Drops what has not left; what the terminal shows is unknown from here on.
    mutating func discard() {
        bytes.removeAll()
        sent = 0
        waiting = nil
        renderer.forget()
    }

    /// Gives what is to be written next to `write`, which says how much of it was taken.
    ///
    /// - Returns: Whether all was taken.
    mutating func drain(_ write: (UnsafeRawBufferPointer) -> Int) -> Bool {
        while true {
            if sent == bytes.count {
                bytes.removeAll(keepingCapacity: bytes.count < 64 * 1024)
                sent = 0
                guard let surface = waiting else { return true }
                waiting = nil
                renderedFrames += 1
                bytes = renderer.render(surface)
                if bytes.isEmpty { return true }
            }
            let taken = bytes.withUnsafeBytes {
                write(UnsafeRawBufferPointer(rebasing: $0[sent...]))
            }
            guard taken > 0 else { return false }
            sent += taken
            totalBytes += taken
        }
    }
}
