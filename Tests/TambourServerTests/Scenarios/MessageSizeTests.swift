import TambourMessenger
import TambourProtocol
import TambourServer
import TambourStore
import TambourTesting
import Testing

/// The server can send every message that it stores, in every payload that contains the message.
@Suite("The size of messages")
struct MessageSizeTests {
    /// Returns elements that take `bytes` bytes in the store, together with the text `"x"`.
    private func elements(bytes: Int) -> [Element] {
        func element(_ type: Int) -> Element {
            Element(type: Text(String(repeating: "T", count: type)), from: 0, length: 1)
        }
        func size(_ elements: [Element]) -> Int { 1 + Packed(elements).bytes.count }
        var elements: [Element] = []
        while size(elements + [element(512)]) <= bytes { elements.append(element(512)) }
        let rest = (0...512).last { size(elements + [element($0)]) <= bytes }
        return elements + (rest.map { [element($0)] } ?? [])
    }

    private func message(bytes: Int, cid: Int64, link: NewLink? = nil) -> NewMessage {
        NewMessage(cid: cid, text: "x", elements: elements(bytes: bytes), link: link)
    }

    private static let most = Limits.standard.maxMessageContentBytes

    @Test("over the limit is refused before anything is stored, by every way in")
    func refused() throws {
        try withPair { server, alice, bob, dialog in
            let large = message(bytes: Self.most + 600, cid: 1)
            let refusal = try alice.refusal(of: MsgSendRequest(chatID: dialog, message: large))
            #expect(refusal.code == .protoPayload)
            #expect(refusal.message.contains("limit \(Self.most)"))
            var later = large
            let hour = Environment.live.wallMs() + 3_600_000
            later.delayedAttributes = DelayedAttributes(timeToFire: hour)
            #expect(
                try alice.code(of: MsgSendRequest(chatID: dialog, message: later)) == .protoPayload
            )
            let sent = try alice.send("x", to: dialog, cid: 2)
            let edit = MsgEditRequest(
                chatID: dialog,
                messageID: sent.message.id,
                text: "x",
                elements: large.elements
            )
            #expect(try alice.code(of: edit) == .protoPayload)
            let draft = DraftSaveRequest(
                chatID: dialog,
                draft: NewDraft(text: "x", elements: large.elements)
            )
            #expect(try alice.code(of: draft) == .protoPayload)
            #expect(try bob.history(dialog).messages?.map(\.cid) == [2])
        }
    }

    @Test("at the limit a message, its answer and its forward reach everybody everywhere")
    func largest() throws {
        try withPair { server, alice, bob, dialog in
            let group = try alice.createGroup("Group", with: [bob], cid: 1)
            let most = Self.most
            let first = try alice.call(
                MsgSendRequest(chatID: group, message: message(bytes: most, cid: 2))
            ).message
            for (cid, type) in [(Int64(3), LinkType.reply), (4, .forward)] {
                let link = NewLink(type: type, messageID: first.id, chatID: group)
                let reply = try alice.call(
                    MsgSendRequest(
                        chatID: group,
                        message: message(bytes: most, cid: cid, link: link)
                    )
                )
                #expect(reply.message.link != nil)
                #expect(Packed(reply.message).bytes.count <= Limits.standard.maxMessageBytes)
                let pin = ChatUpdateRequest(
                    chatID: group,
                    pinMessageID: reply.message.id,
                    notifyPin: false
                )
                _ = try alice.call(pin)
            }
            for cid in Int64(1)...4 {
                let push = try bob.next(.notifMessage, as: NotifMessage.self)
                #expect(push.message.cid == cid)
            }
            for capabilities in [nil, ["lz4-large", "sync-more"]] {
                let tablet = try server.signIn(
                    phoneOf: bob,
                    device: "tablet \(capabilities?.count ?? 0)",
                    capabilities: capabilities
                )
                let chats = try server.login(tablet).chats
                #expect(chats.first { $0.id == group }?.lastMessage?.cid == 4)
                #expect(
                    try tablet.history(group).messages?.compactMap(\.cid).suffix(3) == [2, 3, 4]
                )
                let info = try tablet.call(ChatInfoRequest(chatIDs: [group])).chats.first
                #expect(info?.pinnedMessage?.cid == 4)
            }
            #expect(server.server.metrics.repliesOverLimit.count == 0)
            #expect(server.server.metrics.pushesOverLimit.count == 0)
            #expect(server.server.metrics.slowReadersClosed.count == 0)
        }
    }

    @Test("a forward that leaves no room beside it is refused")
    func forwardOfAnOlderStore() throws {
        try withPair { server, alice, bob, dialog in
            let sent = try alice.send("x", to: dialog, cid: 1).message
            let huge = Packed(elements(bytes: 100_000))
            let sender = alice.userID
            try server.run { tx in
                let chat = try #require(try tx.chat(dialog, visibleTo: sender))
                let old = try #require(try tx.record(sent.id, in: chat))
                var record = old
                record.elements = huge
                _ = try tx.edit(old, to: record, in: chat)
            }
            let link = NewLink(type: .forward, messageID: sent.id, chatID: dialog)
            let forward = MsgSendRequest(chatID: dialog, message: NewMessage(cid: 2, link: link))
            #expect(try bob.code(of: forward) == .errorMessageInvalid)
        }
    }
}
