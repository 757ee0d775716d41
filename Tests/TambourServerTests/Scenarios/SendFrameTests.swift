import TambourFraming
import TambourProtocol
import TambourTesting
import Testing

@Suite("What a send costs on the wire")
struct SendFrameTests {
    @Test("a text of 100 bytes in a dialog: request, reply and push")
    func frames() throws {
        try withPair { _, alice, bob, dialog in
            let cid: Int64 = 1_790_000_000_000
            try alice.send("warm", to: dialog, cid: cid)
            _ = try bob.news()
            let idle = bob.receivedBytes
            _ = try bob.news()
            let fence = bob.receivedBytes - idle

            let request = MsgSendRequest(
                chatID: dialog,
                message: NewMessage(cid: cid + 1, text: Text(String(repeating: "x", count: 100)))
            )
            #expect(PacketHeader.size + request.encoded().count <= 176)
            var before = alice.receivedBytes
            _ = try alice.call(request)
            #expect(alice.receivedBytes - before <= 266)
            before = bob.receivedBytes
            #expect(try bob.news().count == 1)
            // The limit includes 31 bytes for `ttl`, `mark` and `unread`. Only classic clients get
            // these fields.
            #expect(bob.receivedBytes - before - fence <= 270)
        }
    }
}
