import TambourProtocol
import TambourStore

/// Family `bots`: bots do not exist yet. Wire: protocol-spec/opcodes/bots.yaml
struct BotsHandler: Sendable {
    /// Answers `CHAT_BOT_COMMANDS` (144): always an empty list.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func chatBotCommands(
        _ request: ChatBotCommandsRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatBotCommandsReply {
        _ = try snapshot.knownView(request.chatID, of: caller.userID)
        return ChatBotCommandsReply()
    }
}
