import TambourProtocol
import TambourTesting
import Testing

@Suite("ids")
struct IdsTests {
    @Test("a message id is its time and a counter")
    func messageID() {
        let id = MessageID(timeMs: 1_781_708_681_185, counter: 7793)
        #expect(id.rawValue == 1_781_708_681_185 * 65536 + 7793)
        #expect(id.timeMs == 1_781_708_681_185)
        // An id and its time as a real server sent them.
        #expect(MessageID(116_766_060_130_147_953).timeMs == 1_781_708_681_185)
        #expect(MessageID(timeMs: 5, counter: .max) < MessageID(timeMs: 6, counter: 0))
    }

    @Test("a dialog's id is the same for both, and names another one to whoever else asks")
    func dialogs() {
        let (a, b) = (UserID(1), UserID(2))
        #expect(ChatID.dialog(a, b) == ChatID(3) && ChatID.dialog(b, a) == ChatID(3))
        #expect(ChatID(3).partner(of: a) == b && ChatID(3).partner(of: b) == a)
        #expect(ChatID(3).partner(of: UserID(4)) == UserID(7))
        #expect(ChatID.dialog(a, a) == ChatID(0) && ChatID(0).partner(of: a) == a)
        #expect(ChatID(-3).isGroup && ChatID(-3).partner(of: a) == nil && !ChatID(0).isGroup)
    }

    @Test("ids compare, hash and travel as their numbers")
    func numbers() throws {
        #expect(ChatID(-5) < ChatID(3) && Set([UserID(1), UserID(1)]).count == 1)
        #expect(ChatID(-5).description == "-5")
        #expect(encode(ChatID(-5)) == [0xFB])
        #expect(try decode(ChatID.self, hex("a2 2d35")) == ChatID(-5))
    }
}
