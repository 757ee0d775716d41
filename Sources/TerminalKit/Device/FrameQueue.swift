/// The output queue of a terminal. It contains control bytes, which must not be lost, and the
/// newest frame.
///
/// A frame is rendered only after all earlier bytes have been written. If the terminal is slow,
/// older frames are skipped, and it shows at most one outdated frame. The renderer always knows the
/// contents of the terminal. The queue holds at most one rendered frame and `maxControlBytes`
/// control bytes.
package struct FrameQueue: Sendable {
    private let maxControlBytes: Int
    private var renderer: Renderer
    private var bytes: [UInt8] = []
    private var sent = 0
    private var waiting: Surface?
    private var newest: Surface?

    /// The number of frames that were never rendered, because a newer frame replaced them.
    private(set) var skippedFrames = 0
    private(set) var renderedFrames = 0
    /// The number of bytes written so far.
    private(set) var totalBytes = 0

    package init(renderer: Renderer, maxControlBytes: Int = 256 * 1024) {
        self.renderer = renderer
        self.maxControlBytes = maxControlBytes
    }

    /// Whether all bytes have been written, and no frame waits.
    var isDrained: Bool { sent == bytes.count && waiting == nil }
    /// Whether some but not all of the rendered bytes have been written.
    var isCutOff: Bool { sent > 0 && sent < bytes.count }
    var queuedBytes: Int { bytes.count - sent }

    /// Queues a surface, to be rendered when the terminal has accepted all earlier bytes. Replaces
    /// a surface that still waits.
    package mutating func show(_ surface: Surface) {
        if waiting != nil { skippedFrames += 1 }
        waiting = surface
        newest = surface
    }

    /// Queues bytes that are not part of a frame.
    ///
    /// - Returns: Whether the queue had room for the bytes.
    package mutating func send(_ control: some Collection<UInt8>) -> Bool {
        guard queuedBytes + control.count <= maxControlBytes else { return false }
        bytes.append(contentsOf: control)
        return true
    }

    /// Forgets what the terminal shows. The next frame is therefore painted in full.
    mutating func forget() { renderer.forget() }

    /// Paints the newest frame in full, because other output has changed the terminal.
    package mutating func repaint() {
        forget()
        waiting = newest
    }

    /// Drops all unwritten bytes and the waiting frame. The contents of the terminal are then
    /// unknown.
    mutating func discard() {
        bytes.removeAll()
        sent = 0
        waiting = nil
        renderer.forget()
    }

    /// Passes bytes to `write` until `write` accepts none or the queue is empty. `write` returns
    /// the number of bytes written.
    ///
    /// - Returns: Whether all bytes were written, including the bytes of a waiting frame.
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
