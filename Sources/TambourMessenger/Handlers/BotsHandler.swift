import TambourProtocol
import TambourStore

/// Family `bots`. On this server, no user is a bot. Wire: protocol-spec/opcodes/bots.yaml
struct BotsHandler: Sendable {
    /// Answers `CHAT_BOT_COMMANDS` (144): always returns an empty list.
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

    /// Answers `SUSPEND_BOT` (119).
    ///
    /// - Throws: `user.not.found`.
    /// - Note: A query.
    func suspendBot(
        _: SuspendBotRequest,
        from _: Caller,
        in _: ReadTransaction
    ) throws -> SuspendBotReply {
        throw RequestError.userNotFound
    }

    /// Answers `BOT_INFO` (145).
    ///
    /// - Throws: `user.not.found`.
    /// - Note: A query.
    func botInfo(_: BotInfoRequest, from _: Caller, in _: ReadTransaction) throws -> BotInfoReply {
        throw RequestError.userNotFound
    }
}
