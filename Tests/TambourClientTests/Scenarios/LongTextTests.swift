import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

/// Texts too long for one message: sent in parts, but kept whole as drafts.
@Suite("Long texts of a client")
struct LongTextTests {
    private static func long(_ word: String) -> String {
        (1...1_500).map { "\(word)\($0)" }.joined(separator: " ")
    }

    @Test("a long text arrives in order, its first part as the answer, and the draft is gone")
    func sending() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            let asked = try bob.send("how long?", to: chat, cid: 1).message.id
            let client = try await world.onlineClient(of: alice)
            let text = Self.long("word")
            let draft = Client.Draft(text: text, replyTo: asked)
            try await client.saveDraft(text, in: chat, replyingTo: asked)
            let sent = try await client.sendInParts(
                text,
                to: chat,
                replyingTo: asked,
                insteadOf: draft
            )
            #expect(sent.count == Client.parts(of: text).count && sent.count > 2)
            #expect(try client.draft(in: chat) == .empty)
            try await client.waitUntilIdle()
            let heard = try sent.map { _ in try bob.next(.notifMessage, as: NotifMessage.self) }
            let texts = heard.map { "\($0.message.text)" }
            #expect(texts.joined(separator: " ") == text)
            #expect(heard.map { $0.message.link != nil } == sent.indices.map { $0 == 0 })
            await #expect(throws: ClientError.self) { try await client.sendInParts("", to: chat) }
        }
    }

    @Test("a draft longer than a message stays whole, here alone, until it is sent or thrown away")
    func draft() async throws {
        try await withWorld { world in
            let (alice, bob, chat) = try world.aliceAndBob()
            try bob.send("hi", to: chat, cid: 1)
            let here = try await world.onlineClient(of: alice, device: "here")
            let there = try await world.onlineClient(of: alice, device: "there")
            try await here.saveDraft("short", in: chat)
            try await here.waitUntilIdle()
            try await there.until("the draft") { try $0.draft(in: chat).text == "short" }

            let text = Self.long("kept")
            try await here.saveDraft(text, in: chat)
            #expect(try here.queueLength() == 0)
            try await here.waitUntilIdle()
            try await there.waitUntilIdle()
            #expect(try there.draft(in: chat).text == "short")
            // A draft from another device does not replace the long local draft.
            try await there.saveDraft("from there", in: chat)
            try await there.waitUntilIdle()
            try await here.waitUntilIdle()
            #expect(try here.draft(in: chat).text == text)
            await here.stop()

            let again = try world.open("here")
            #expect(try again.draft(in: chat).text == text)
            try await again.startAndSync()
            try await again.waitUntilIdle()
            #expect(try again.draft(in: chat).text == text)
            try await again.saveDraft("", in: chat)
            try await again.waitUntilIdle()
            try await again.until("the other one") { try $0.draft(in: chat).text == "from there" }
        }
    }
}
