import TambourProtocol
import TambourTesting
import Testing

/// Tests which attributes a formatting range may have. The server sends the attributes to every
/// member, in every payload that contains the message.
@Suite("Attributes of formatting ranges")
struct ElementAttributesTests {
    private func element(_ type: Text, _ attributes: AnyValue) -> Element {
        Element(type: type, from: 0, length: 5, attributes: attributes)
    }

    /// Returns a map whose `url` is a text of `count` bytes.
    private func address(_ count: Int) -> AnyValue {
        AnyValue(NameMap([(Text("url"), Text(String(repeating: "u", count: count)))]))
    }

    private func requests(_ element: Element, _ chat: ChatID, _ sent: MessageID) -> [(
        field: String, refusal: (WireClient) throws -> RequestError
    )] {
        let new = NewMessage(cid: 2, text: "hello", elements: [element])
        let draft = NewDraft(text: "hello", elements: [element])
        return [
            (
                "/message/elements/0/attributes",
                { try $0.refusal(of: MsgSendRequest(chatID: chat, message: new)) }
            ),
            (
                "/draft/elements/0/attributes",
                { try $0.refusal(of: DraftSaveRequest(chatID: chat, draft: draft)) }
            ),
            (
                "/elements/0/attributes",
                {
                    try $0.refusal(
                        of: MsgEditRequest(
                            chatID: chat,
                            messageID: sent,
                            text: "hello",
                            elements: [element]
                        )
                    )
                }
            ),
        ]
    }

    @Test("may be a few hundred bytes; a link may be as long as an address")
    func size() throws {
        try withPair { _, alice, bob, dialog in
            let sent = try alice.send("hello", to: dialog, cid: 1).message.id
            // The first message also announces the dialog, so discard its pushes.
            _ = try bob.takePushes()
            let longest = element("LINK", address(Limits.standard.maxURLBytes))
            let message = NewMessage(cid: 3, text: "hello", elements: [longest])
            try alice.call(MsgSendRequest(chatID: dialog, message: message))
            let received = try #require(
                try bob.only(.notifMessage, as: NotifMessage.self).last?.message.elements?.stored
            )
            #expect(received == [longest])

            for (type, bytes, limit) in [
                ("STRONG", 600, Limits.standard.maxElementAttributesBytes),
                ("LINK", 2_400, Limits.standard.maxLinkAttributesBytes),
            ] {
                let large = element(Text(type), address(bytes))
                for (field, refusal) in requests(large, dialog, sent) {
                    let error = try refusal(alice)
                    #expect(error.code == .protoPayload)
                    #expect(error.message.hasPrefix("\(field): "), "\(error.message)")
                    #expect(error.message.hasSuffix("bytes, limit \(limit)"), "\(error.message)")
                }
            }
        }
    }

    @Test(
        "are refused when some client could not read them",
        arguments: [
            "9191919191919191919191919191919191919191919191919191919190", "81 9101 01",
            "d7ffffffffffffffffff",
            "c70301c1c1c1",
        ]
    )
    func undecodable(hex: String) throws {
        let bytes = hex.filter { $0 != " " }
        let value = stride(from: 0, to: bytes.count, by: 2).compactMap { offset in
            UInt8(bytes.dropFirst(offset).prefix(2), radix: 16)
        }
        try withPair { _, alice, bob, dialog in
            let sent = try alice.send("hello", to: dialog, cid: 1).message.id
            let hostile = element("STRONG", AnyValue(unchecked: Bytes(value)))
            for (field, refusal) in requests(hostile, dialog, sent) {
                let error = try refusal(alice)
                #expect(error.code == .protoPayload)
                #expect(error.message.hasPrefix("\(field): "), "\(error.message)")
            }
            #expect(try bob.texts(dialog) == ["hello"])
        }
    }
}
