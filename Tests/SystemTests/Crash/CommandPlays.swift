import TambourProtocol
import TambourTesting

/// What is played of each command that one request is enough for. Those that sign in and out are steps
/// of `CommandFlow`.
extension CommandPlay {
    typealias Maker = @Sendable (CommandPlayer, CommandMark) throws -> CommandPlay

    static let all: [Maker] = messages + chats + people + own

    /// How many entries of something that only grows are looked at: the page of a history.
    static let page = 200

    /// The last page of 1, 2, 3 and so on.
    static func growing(to last: Int) -> [Int] {
        last == 0 ? [] : Array(max(1, last - page + 1)...last)
    }

    /// Changes are made in `count` places in turn; what the last one of each place left, 0 if there was none.
    static func inTurn(_ count: Int, _ last: Int, _ value: (Int) -> Int = { $0 }) -> [Int] {
        (0..<count).map { place in
            let number = last - (last - place + count) % count
            return number > 0 ? value(number) : 0
        }
    }
}

extension CommandMark {
    var text: (Int) -> Text { { Text(self($0)) } }

    /// The marks in the newest messages of a chat, oldest first.
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

    /// The cid of a change: unique in the world.
    func cid(_ number: Int) -> Int64 { Int64(play) << 32 | Int64(number) }

    /// Sends the mark of a change as a message.
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
