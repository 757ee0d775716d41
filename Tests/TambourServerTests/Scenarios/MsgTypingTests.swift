import TambourProtocol
import TambourTesting
import Testing

@Suite("MSG_TYPING (65)")
struct MsgTypingTests {
    @Test("the others hear of it, the own devices do not, and nothing is stored")
    func typing() throws {
        try withPair { server, alice, bob, dialog in
            let tablet = try server.signIn(phoneOf: alice, device: "tablet")
            try alice.send("1", to: dialog, cid: 1)
            _ = try (bob.takePushes(), tablet.takePushes())
            _ = try alice.call(MsgTypingRequest(chatID: dialog, type: "AUDIO"))
            let pushes = try bob.only(.notifTyping, as: NotifTyping.self)
            #expect(pushes.map(\.userID) == [alice.userID])
            #expect(pushes.map(\.chatID) == [dialog])
            #expect(pushes.map(\.type) == ["AUDIO"])
            try tablet.expectSilence()
            try alice.expectSilence()
            #expect(try bob.texts(dialog) == ["1"])
        }
    }

    @Test("in a dialog that has not begun nobody hears it; an unknown chat is not found")
    func nobody() throws {
        try withPair { _, alice, bob, dialog in
            _ = try alice.call(MsgTypingRequest(chatID: dialog))
            try bob.expectSilence()
            for chat in [ChatID(-1), .dialog(alice.userID, UserID(999)), ChatID(.min)] {
                #expect(try alice.code(of: MsgTypingRequest(chatID: chat)) == .chatNotFound)
            }
        }
    }
}
