import TambourTesting
import Testing

@testable import TerminalKit

/// Tests that the terminal ends with the newest frame, however slowly it takes bytes, and that the
/// queue holds few bytes.
struct FrameQueueTests {
    private enum Step {
        case show(String)
        case control
        case drain(Int)
        case repaint
        /// Another program has used the terminal in the meantime.
        case discard
    }

    private static let size = Size(columns: 24, rows: 5)

    private static func surface(_ text: String) -> Surface {
        var surface = Surface(size: size)
        for row in 0..<size.rows { surface.draw(text, at: Position(column: row, row: row)) }
        return surface
    }

    @Test("taken in any portions, frames and controls arrive")
    func portions() {
        Property<Step>(plays: 200, soak: 5000) { random in
            (0..<60).map { _ in
                switch random.int(0..<8) {
                case 0...2: .show(random.pick(HardText.samples))
                case 3: .control
                case 4 where random.chance(1, in: 4): .repaint
                case 5 where random.chance(1, in: 8): .discard
                default: .drain(random.int(0..<90))
                }
            }
        } failure: { steps, _ in
            var queue = FrameQueue(renderer: Renderer(), maxControlBytes: 400)
            var terminal = TestTerminal(size: Self.size)
            var newest: Surface?
            var sent = 0
            for step in steps + [.drain(.max)] {
                switch step {
                case .show(let text):
                    newest = Self.surface(text)
                    queue.show(Self.surface(text))
                case .control:
                    let before = queue.queuedBytes
                    if queue.send([0x07]) { sent += 1 } else if before < 400 { return "no room" }
                case .repaint: queue.repaint()
                case .discard:
                    queue.discard()
                    terminal.resize(to: Self.size)
                    sent = 0
                    newest = nil
                case .drain(var room):
                    let isDrained = queue.drain { bytes in
                        let count = min(bytes.count, room)
                        terminal.feed(bytes.prefix(count))
                        room -= count
                        return count
                    }
                    if isDrained != queue.isDrained { return "drained or not" }
                }
                if queue.queuedBytes > 2000 { return "\(queue.queuedBytes) bytes are held" }
            }
            if terminal.bells != sent { return "\(terminal.bells) of \(sent) controls" }
            if let newest { return terminal.difference(from: newest) }
            return nil
        }.check()
    }

    @Test("frames that a newer one replaces are skipped and counted")
    func skipping() {
        var queue = FrameQueue(renderer: Renderer())
        for number in 0..<10 { queue.show(Self.surface("\(number)")) }
        #expect(queue.skippedFrames == 9)
        let isDrained = queue.drain(\.count)
        #expect(isDrained)
        #expect(queue.renderedFrames == 1)
        #expect(queue.isDrained)
    }

    @Test("controls beyond the bound are refused")
    func bound() {
        var queue = FrameQueue(renderer: Renderer(), maxControlBytes: 10)
        let isTaken = [10, 1].map { queue.send(Array(repeating: 0, count: $0)) }
        #expect(isTaken == [true, false])
        _ = queue.drain(\.count)
        let isTakenLater = queue.send([0])
        #expect(isTakenLater)
    }
}
