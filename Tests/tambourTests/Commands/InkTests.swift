import TambourProtocol
import Testing

@testable import TambourClient
@testable import tambour

@Suite("Colours of the command line")
struct InkTests {
    private static let terminal = ["TERM": "xterm-256color"]

    @Test(
        "are for terminals alone, and NO_COLOR and TERM=dumb refuse them",
        arguments: [
            (true, terminal, true), (false, terminal, false),
            (true, terminal.merging(["NO_COLOR": "1"]) { $1 }, false),
            (true, terminal.merging(["NO_COLOR": ""]) { $1 }, true),
            (true, ["TERM": "dumb"], false), (true, [:], false),
        ] as [(Bool, [String: String], Bool)]
    )
    func refusals(isTerminal: Bool, environment: [String: String], isColored: Bool) {
        let ink = Ink(isTerminal: isTerminal, environment)
        #expect(ink.isColored == isColored)
        #expect(ink(.failure, "no") == (isColored ? "\u{1B}[31mno\u{1B}[m" : "no"))
        #expect(ink(.failure, "").isEmpty)
    }

    @Test("never come from text of other people")
    func harmless() {
        let person = Person(
            id: UserID(7),
            name: "\u{1B}[31mBob",
            isContact: true,
            isOnline: false,
            seenMs: nil,
            phone: "7999",
            about: nil,
            link: nil
        )
        #expect(person.line(.none) == "7\t\u{FFFD}[31mBob\t+7999")
        let ink = Ink(isTerminal: true, Self.terminal)
        #expect(person.line(ink) == "\u{1B}[2m7\u{1B}[m\t\u{FFFD}[31mBob\t+7999")
        #expect(person.line(.none, role: .owner) == "7\t\u{FFFD}[31mBob\t+7999\towner")
    }
}
