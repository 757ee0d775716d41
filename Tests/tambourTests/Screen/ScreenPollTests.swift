import TambourClient
import TambourProtocol
import TambourTesting
import Testing

@testable import TerminalKit
@testable import tambour

/// Sends polls, votes in them and follows them with the keyboard.
@Suite("Polls at the screen", .serialized)
struct ScreenPollTests {
    private func wait(_ desk: Desk, _ what: String, until holds: (Poll) -> Bool) async throws {
        try await desk.display.wait(for: what) { _ in
            desk.look { $0.rows.last?.poll.map(holds) == true }
        }
    }

    @Test("a poll is sent, voted in, changed and taken back; votes of others arrive")
    func poll() async throws {
        try await atDesk(after: Before { try $0.bob.send("hello", to: $0.chat, cid: 1) }) { desk in
            try await desk.openBob()
            desk.type("/poll Where? | Here | There\n")
            try await wait(desk, "the poll") { $0.question == "Where?" && $0.answers.count == 2 }
            try await desk.display.waits(for: "○ There  0")
            desk.press(KeyPress(.escape), KeyPress(.character("v")))
            try await desk.display.waits(for: "Enter votes")
            desk.press(KeyPress(.down), KeyPress(.enter))
            try await wait(desk, "the vote") { $0.answers[1].isChosen && $0.voters == 1 }
            try await desk.display.waits(for: "● There")
            // Each voter may choose one answer in this poll. So a new vote replaces the earlier
            // vote.
            desk.press(KeyPress(.up), KeyPress(.enter))
            try await wait(desk, "the change") {
                $0.answers[0].isChosen && !$0.answers[1].isChosen
            }
            let (poll, message) = try #require(
                desk.look { state in
                    state.rows.last.flatMap { row in
                        row.poll.flatMap { poll in row.message.map { (poll.id, $0) } }
                    }
                }
            )
            try desk.bob.call(
                SendVoteRequest(
                    chatID: desk.chat,
                    messageID: message,
                    pollID: poll,
                    answersIDs: [1]
                )
            )
            try await wait(desk, "Bob's vote") { $0.voters == 2 && $0.answers[0].votes == 2 }
            // The push of a vote has the same status as the push of an edit. But the screen must
            // not show the message as edited.
            #expect(desk.look { $0.rows.allSatisfy { !$0.isEdited } })
            desk.press(KeyPress(.enter))
            try await wait(desk, "the vote taken back") {
                $0.voters == 1 && !$0.answers[0].isChosen
            }
        }
    }

    @Test("a poll waits offline, and an incomplete one is refused")
    func offline() async throws {
        try await atDesk(after: Before { try $0.bob.send("hello", to: $0.chat, cid: 1) }) { desk in
            try await desk.openBob()
            desk.type("/poll Where? | Here\n")
            #expect(desk.look(\.notice)?.isError == true)
            desk.press(.control("u"))
            try await desk.loseServer()
            desk.change { $0.input.setText("/poll Where? | Here | There") }
            desk.press(KeyPress(.enter))
            try await desk.display.waits(for: "• There")
            desk.press(KeyPress(.escape), KeyPress(.character("v")))
            #expect(desk.look(\.notice)?.text == "it is not sent yet")
        }
    }
}
