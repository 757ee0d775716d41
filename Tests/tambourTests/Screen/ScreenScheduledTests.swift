import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Schedules, changes, sends and cancels messages with the keyboard.
@Suite("Scheduled messages at the screen", .serialized)
struct ScreenScheduledTests {
    private static var hello: Before { Before { try $0.bob.send("hello", to: $0.chat, cid: 1) } }

    private func wait(
        _ desk: Desk,
        _ what: String,
        until holds: ([ScheduledMessage]) -> Bool
    ) async throws {
        try await desk.display.wait(for: what) { _ in desk.look { holds($0.scheduled) } }
    }

    @Test("a message is scheduled, changed, put off, sent now and cancelled")
    func scheduled() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("/later 2h **Dinner**?\n")
            try await wait(desk, "the message") {
                $0.map(\.text) == ["Dinner?"] && $0.first?.state == .scheduled
            }
            try await desk.display.waits(for: "1 scheduled")
            #expect(desk.look { $0.rows.map(\.text) } == ["hello"])

            desk.type("/later\n")
            try await desk.display.waits(for: "Scheduled in Bob")
            try await desk.display.waits(for: "▌Dinner?")
            desk.type("e")
            #expect(desk.look(\.input).text == "**Dinner**?")
            desk.type(" Yes\n")
            try await wait(desk, "the change") { $0.map(\.text) == ["Dinner? Yes"] }
            #expect(desk.look(\.input).isEmpty)

            let before = desk.look { $0.scheduled.first?.timeMs }
            desk.type("/later\n")
            try await desk.display.waits(for: "▌Dinner? Yes")
            desk.type("t")
            desk.press(.control("u"))
            desk.type("soon\n")
            #expect(desk.look(\.notice)?.text.contains("2h") == true)
            desk.press(.control("u"))
            desk.type("3h\n")
            try await wait(desk, "the new time") { $0.first?.timeMs != before }
            desk.type("n")
            try await desk.display.wait(for: "it is sent") { _ in
                desk.look { $0.rows.last?.text == "Dinner? Yes" && $0.scheduled.isEmpty }
            }
            try await desk.display.waits(for: "nothing is scheduled")
            desk.press(KeyPress(.escape))

            desk.type("/later 2h Never mind\n")
            try await wait(desk, "the message") { $0.first?.state == .scheduled }
            desk.type("/later\n")
            try await desk.display.waits(for: "▌Never mind")
            desk.type("x")
            try await desk.display.waits(for: "(y/n)")
            desk.type("y")
            try await wait(desk, "none") { $0.isEmpty }
            let list = ChatHistoryRequest(chatID: desk.chat, itemType: .delayed)
            try await desk.display.wait(for: "none at the server") { _ in
                (try? desk.alice.call(list).messages?.isEmpty) == true
            }
        }
    }

    @Test("mistakes keep the line, and a message waits offline")
    func offline() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            for (line, word) in [
                ("/later Dinner", "18:30"), ("/later 2h", "usage"),
                ("/later tomorrow Dinner", "time of day"),
                ("/later 2020-01-01 9:00 Dinner", "has passed"),
            ] {
                desk.type("\(line)\n")
                #expect(desk.look(\.notice)?.isError == true)
                #expect(desk.look(\.notice)?.text.contains(word) == true)
                #expect(desk.look(\.input).text == line)
                desk.press(.control("u"))
            }
            try await desk.loseServer()
            desk.type("/later 2h Dinner\n")
            try await wait(desk, "the message") { $0.first?.state == .waiting }
            try await desk.display.waits(for: "if this device is online before")
            desk.press(.alt("q"))
            try await desk.display.waits(for: "message for later “Dinner”")
        }
    }

    @Test("a message that could not be sent is told and marked")
    func failed() async throws {
        try await atDesk(after: Self.hello) { desk in
            try await desk.openBob()
            desk.type("/later 2h Dinner\n")
            try await wait(desk, "the message") { $0.first?.state == .scheduled }
            let block = ContactUpdateRequest(contactID: desk.alice.userID, action: .block)
            try desk.bob.call(block)
            desk.type("/later\n")
            try await desk.display.waits(for: "▌Dinner")
            desk.type("n")
            try await desk.display.waits(for: "could not be sent at its time")
            desk.press(KeyPress(.escape))
            try await desk.display.waits(for: "1 not sent")
        }
    }
}
