import TambourEvents
import TambourProtocol
import TambourStore
import Testing

@testable import TambourMessenger

@Suite("Work of telling others")
struct FanOutTests {
    private func message(_ bytes: Int, to count: Int64) -> Event {
        let message = Message(
            id: MessageID(1),
            time: 1,
            type: "USER",
            text: Text(String(repeating: "a", count: bytes)),
            attaches: .emptyList
        )
        let push = NotifMessage(chatID: ChatID(-1), message: message)
        return .push(.notifMessage(push), to: (0..<count).map { UserID($0 + 1) }, except: nil)
    }

    @Test(
        "makes an account wait for lanes when many hear of its command, or its own devices of much"
    )
    func heavy() throws {
        let settings = SettingsNews(version: 1, isHidden: false, user: .null, chats: nil)
        let heavy: [Event] = [
            message(20, to: 400), message(1_000, to: 50), message(5_000, to: 1),
            .settingsChanged(settings, of: UserID(1), except: nil),
        ]
        for event in heavy { #expect(FanOut.bytes(of: [event]) >= FanOut.most, "\(event)") }
        let light: [Event] = [message(100, to: 32), message(1_000, to: 2), .delayed(until: 1)]
        for event in light { #expect(FanOut.bytes(of: [event]) < FanOut.most, "\(event)") }
        #expect(FanOut.bytes(of: []) == 0)
    }
}
