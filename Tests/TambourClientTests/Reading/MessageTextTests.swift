import TambourProtocol
import Testing

@testable import TambourClient

@Suite("Words for what happened in a chat")
struct MessageTextTests {
    private static let names: [Int64: String] = [1: "Alice", 2: "Bob", 3: "Carol"]

    /// Returns the text of an event as the server sends it, with its author and the affected users.
    private func words(_ event: Text, by user: Int64, to users: [Int64]?) -> String? {
        let attach = Attach(
            type: .control,
            event: event,
            userID: UserID(user),
            userIDs: users?.map { UserID($0) }
        )
        let message = Message(
            id: MessageID(1),
            time: 1,
            type: "GROUP",
            sender: UserID(user),
            attaches: Packed([attach])
        )
        return message.eventText { Self.names[$0.rawValue] ?? "?" }
    }

    @Test("say who did it, and to whom")
    func people() {
        #expect(words("remove", by: 1, to: [3]) == "Alice removed Carol")
        #expect(words("add", by: 1, to: [2, 3]) == "Alice added Bob, Carol")
        #expect(words("leave", by: 3, to: nil) == "Carol left")
        #expect(words("joinByLink", by: 2, to: nil) == "Bob joined by a link")
    }
}
