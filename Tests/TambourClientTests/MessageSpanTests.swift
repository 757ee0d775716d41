import TambourProtocol
import Testing

@testable import TambourClient

@Suite("Formatted ranges")
struct MessageSpanTests {
    private static let styles: [MessageSpan.Style] = [
        .strong, .emphasized, .underlined, .struckThrough, .monospaced, .quote, .heading,
        .link("https://example.org/?a=1"), .mention(UserID(7)),
    ]

    @Test("survive the wire", arguments: styles)
    func wire(style: MessageSpan.Style) {
        let span = MessageSpan(style, 3..<9)
        #expect(MessageSpan.all(of: [span.element], length: 9) == [span])
        #expect(MessageSpan.all(of: [span.element], length: 8).isEmpty)
    }

    @Test("are cut with the text, and mentions only kept whole", arguments: styles)
    func cut(style: MessageSpan.Style) {
        let span = MessageSpan(style, 3..<9)
        #expect(span.within(3..<9) == MessageSpan(style, 0..<6))
        #expect(span.within(1..<20) == MessageSpan(style, 2..<8))
        #expect(span.within(9..<12) == nil)
        #expect(
            span.within(0..<5) == (style == .mention(UserID(7)) ? nil : MessageSpan(style, 3..<5))
        )
    }

    @Test("of a long text go to the parts that contain them")
    func parts() {
        let parts = Client.parts(
            of: "one two three",
            formatted: [MessageSpan(.strong, 0..<13)],
            limit: 8
        )
        #expect(parts.map(\.text) == ["one two", "three"])
        #expect(
            parts.map(\.spans) == [
                [MessageSpan(.strong, 0..<7)], [MessageSpan(.strong, 0..<5)],
            ]
        )
    }
}
