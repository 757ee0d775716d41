import TambourProtocol
import TambourTesting

/// The plays of all commands that need only one request. Commands that sign in or out are steps of
/// `CommandFlow`.
extension CommandPlay {
    typealias Maker = @Sendable (CommandPlayer, CommandMark) throws -> CommandPlay

    static let all: [Maker] = messages + chats + people + own

    /// The number of newest entries that checks of a growing list compare: one page of history.
    static let page = 200

    /// Returns the last page of the numbers 1 to `last`.
    static func growing(to last: Int) -> [Int] {
        last == 0 ? [] : Array(max(1, last - page + 1)...last)
    }

    /// Returns the last change of each of `count` places; 0 for a place without changes. The
    /// changes affect the places in turn.
    static func inTurn(_ count: Int, _ last: Int, _ value: (Int) -> Int = { $0 }) -> [Int] {
        (0..<count).map { place in
            let number = last - (last - place + count) % count
            return number > 0 ? value(number) : 0
        }
    }
}

extension CommandMark {
    var text: (Int) -> Text { { Text(self($0)) } }

    /// Returns the marks in the newest messages of a chat, oldest first.
    func numbers(
        in chat: ChatID,
        _ client: WireClient,
        _ type: ItemType? = nil
    ) throws -> [Int] {
        let page = Int64(CommandPlay.page)
        return try numbers(
            in: client.payload(
                of: ChatHistoryRequest(chatID: chat, backward: page, itemType: type)
            )
        )
    }

    /// Returns the cid of a change, which is unique in the world.
    func cid(_ number: Int) -> Int64 { Int64(play) << 32 | Int64(number) }

    /// Returns a request that sends the mark of a change as a message.
    func message(_ number: Int, to chat: ChatID) -> ChangeRequest {
        let text = self(number) + String(repeating: "x", count: number % 97)
        return ChangeRequest(
            MsgSendRequest(
                chatID: chat,
                message: NewMessage(cid: cid(number), text: Text(text))
            )
        )
    }
}
