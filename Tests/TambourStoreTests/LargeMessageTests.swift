import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import Testing

@Suite("Messages of an older store that are larger than messages may be")
struct LargeMessageTests {
    private static let limit = 2_000

    /// The part that makes a message too large.
    enum Part: CaseIterable {
        case attributes, elements, attaches, forward, text
    }

    private static let long = Text(String(repeating: "x", count: 300))

    private static func elements(_ count: Int, attributes: Bool) -> Packed<[Element]> {
        let value = AnyValue(NameMap([(Text("url"), AnyValue(long))]))
        return Packed(
            (0..<count).map {
                Element(
                    type: "STRONG",
                    from: Int64($0),
                    length: 1,
                    attributes: attributes ? value : nil
                )
            }
        )
    }

    private func content(_ part: Part, cid: Int64) -> MessageContent {
        var content = MessageContent(cid: cid, text: "hello")
        switch part {
        case .attributes: content.elements = Self.elements(12, attributes: true)
        case .elements: content.elements = Self.elements(200, attributes: false)
        case .attaches:
            content.attaches = Packed(
                (0..<10).map { _ in
                    var share = Attach(type: .share)
                    share.url = Self.long
                    return share
                }
            )
        case .forward:
            var carried = Message(id: MessageID(1), time: 0, type: "USER", text: "carried")
            carried.elements = Self.elements(12, attributes: true)
            content.forward = Packed(
                MessageLink(type: .forward, chatID: ChatID(0), message: carried)
            )
        case .text: content.text = Text(String(repeating: "y", count: 2_500))
        }
        return content
    }

    @Test(
        "are served without what does not fit, wherever they stand, and are not rewritten",
        arguments: SQLEngine.available,
        Part.allCases
    )
    func served(engine: SQLEngine, part: Part) throws {
        let limits = ["maxMessageContentBytes": Self.limit, "maxMessageBytes": 2 * Self.limit]
        let store = try TestStore(engine, limits: limits)
        let users = try store.users(2)
        let (key, first) = try store.batch { tx in
            let chat = try tx.createPairChat(users[0], users[1], by: users[0])
            let large = content(part, cid: store.nextCID())
            let first = try tx.append(large, to: chat, from: users[0], on: store.device).record
            var answer = MessageContent(cid: store.nextCID(), text: "answer")
            answer.replyTo = first.id
            _ = try tx.append(answer, to: chat, from: users[1], on: store.device)
            return (chat.key, first)
        }
        let messages = try store.read { snapshot in
            try snapshot.history(
                of: key,
                at: MessageAddress(chatID: ChatID(1)),
                for: users[1],
                above: MessageID(0),
                from: .max,
                backward: 10,
                forward: 0
            ).messages
        }
        let answered = try #require(messages.last?.link?.stored?.message)
        for message in [messages[0], answered] {
            #expect(message.text == first.text)
            let formatting = message.elements?.stored
            #expect(formatting?.allSatisfy { $0.attributes == nil } ?? true)
            if part == .attributes { #expect(formatting?.count == 12) }
            // The store does not cut a text, even if the text alone is too long.
            if part != .text { #expect(message.wireSizeEstimate <= Self.limit + 200) }
        }
        if part == .attaches {
            let kept = try #require(messages[0].attaches.stored)
            #expect((1..<10).contains(kept.count))
        }
        if part == .forward {
            let carried = try #require(messages[0].link?.stored?.message)
            #expect(carried.text == "carried")
            #expect(carried.elements?.stored?.count == 12)
        }
        // The stored record still contains everything that the sender sent.
        let stored = try #require(try store.read { try $0.record(first.id, in: key) })
        #expect(stored.elements == first.elements)
        #expect(stored.attaches == first.attaches)
        #expect(stored.forward == first.forward)
        #expect(try store.problems() == [])
        let remarks = try StoreCheck.remarks(on: store.reader)
        #expect(remarks.count == 1)
        #expect(remarks.first?.contains("message \(first.id.rawValue) has ") == true)
    }
}
