package import TambourProtocol

extension WireClient {
    /// Creates a channel that allows comments on its posts.
    package func channel(
        _ title: String,
        with others: [WireClient],
        cid: Int64
    ) throws -> ChatID {
        let channel = try createGroup(title, with: others, type: "CHANNEL", cid: cid)
        try call(ChatUpdateRequest(chatID: channel, options: NameMap([("COMMENTS", true)])))
        return channel
    }

    /// Writes a comment on a post.
    @discardableResult
    package func comment(
        _ text: Text,
        on post: MessageID,
        in channel: ChatID,
        cid: Int64
    ) throws -> Message {
        let message = NewMessage(cid: cid, text: text)
        return try call(MsgSendRequest(chatID: channel, postID: post, message: message)).message
    }

    /// Returns the newest comments on a post, in the order from old to new.
    package func comments(on post: MessageID, in channel: ChatID) throws -> [Message] {
        let page = ChatHistoryRequest(chatID: channel, from: -1, backward: 100, postID: post)
        return try call(page).messages ?? []
    }

    /// Bans a user from commenting in a channel.
    package func ban(_ user: WireClient, from channel: ChatID) throws {
        try call(
            ChatMembersUpdateRequest(
                chatID: channel,
                userIDs: [user.userID],
                operation: .add,
                type: .commentsBlacklist
            )
        )
    }
}
