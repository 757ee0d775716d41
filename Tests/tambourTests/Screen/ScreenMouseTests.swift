import Foundation
import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Tests that clicks do the same as keys.
@Suite("The mouse at the screen", .serialized)
struct ScreenMouseTests {
    private static var two: Before {
        Before { world in
            try world.bob.send("hello", to: world.chat, cid: 1)
            try world.bob.send("second", to: world.chat, cid: 2)
        }
    }

    /// Clicks on the first occurrence of a text on the screen.
    private func click(on text: String, at desk: Desk) throws {
        let lines = desk.display.lines
        let row = try #require(lines.firstIndex { $0.contains(text) })
        let start = try #require(lines[row].range(of: text)).lowerBound
        let column = lines[row].distance(from: lines[row].startIndex, to: start)
        desk.tell(
            .mouse(MouseEvent(action: .press, button: 0, position: .init(column: column, row: row)))
        )
    }

    @Test("opens chats, selects messages, and picks items of panels")
    func clicks() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.display.waits(for: "Bob")
            try click(on: "Bob", at: desk)
            try await desk.display.waits(for: " hello")
            #expect(desk.look(\.open) == desk.chat)
            try click(on: " hello", at: desk)
            #expect(desk.look(\.selectedRow)?.text == "hello")
            #expect(desk.look(\.focus) == .messages)
            try await desk.display.waits(for: "reply")
            try click(on: "> ", at: desk)
            #expect(desk.look(\.focus) == .input)
            desk.press(.alt("g"))
            try await desk.display.waits(for: "▌Bob")
            // The panel covers the list, so a click on the list has no effect.
            desk.tell(
                .mouse(MouseEvent(action: .press, button: 0, position: .init(column: 0, row: 20)))
            )
            #expect(desk.look(\.panel) != nil)
            desk.press(KeyPress(.escape))
            #expect(desk.look(\.panel) == nil)
        }
    }

    @Test("a click on the selected item of a panel is like Enter")
    func panel() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.display.waits(for: "Bob")
            desk.press(.alt("g"))
            try await desk.display.waits(for: "▌Bob")
            try click(on: "▌Bob", at: desk)
            #expect(desk.look(\.panel) == nil)
            #expect(desk.look(\.open) == desk.chat)
        }
    }

    @Test("other buttons and releases do nothing")
    func others() async throws {
        try await atDesk(after: Self.two) { desk in
            try await desk.display.waits(for: "Bob")
            for (action, button) in [(MouseEvent.Action.press, 2), (.release, 0), (.drag, 0)] {
                let place = Position(column: 1, row: 0)
                desk.tell(.mouse(MouseEvent(action: action, button: button, position: place)))
            }
            #expect(desk.look(\.open) == nil)
        }
    }
}
