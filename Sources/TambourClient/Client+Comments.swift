public import TambourProtocol

/// Comments on posts of channels.
extension Client {
    /// The comments on a post, as a chat of this device.
    ///
    /// Its `id` works like the id of a chat in `history`, `look`, `lookAway`, `thread`, `search`,
    /// `send`, `edit`, `delete`, `react`, `typing` and the calls for drafts. The list of chats does
    /// not contain the comments, and they have no read mark. The server pushes comments only while
    /// `look` reports them as on the screen. At other times, a gap follows the last stored comment.
    public struct Comments: Hashable, Sendable, Identifiable {
        public let id: ChatID
        public let post: MessageID
        public let channel: ChatID
        /// The post as one line; empty if it is not on this device.
        public let postText: String
        /// Whether the administrators of the channel allow comments. Existing comments stay
        /// readable.
        public let areAllowed: Bool
    }

    /// Returns the comments on a post of a channel. Does not wait for the server.
    ///
    /// - Throws: `ClientError.invalid` when the message is not in a channel, or is an event.
    public func comments(
        on post: MessageID,
        of channel: ChatID
    ) async throws(ClientError) -> Comments {
        try await wish { _, tx in
            guard try tx.describedChat(channel)?.type == .channel else {
                throw ClientError.invalid(reason: "only posts of channels have comments")
            }
            let message = try tx.message(post, in: channel)
            guard message?.shownAttaches.contains(where: { $0.type == .control }) != true else {
                throw ClientError.invalid(reason: "this is not a post, so it has no comments")
            }
            try tx.addCommentThread(on: post, of: channel)
            guard let comments = try Reader(tx).comments(.comments(on: post)) else {
                throw ClientError.invalid(reason: "this post is gone")
            }
            return comments
        }
    }

    /// Returns the comments with this id; nil if the id belongs to no comments, or if the post was
    /// deleted.
    public func comments(_ id: ChatID) throws(ClientError) -> Comments? {
        try store.read { try Reader($0).comments(id) }
    }
}

extension Reader {
    func comments(_ id: ChatID) throws -> Client.Comments? {
        guard let thread = try store.commentThread(id) else { return nil }
        let post = try store.message(thread.post, in: thread.channel)
        return Client.Comments(
            id: id,
            post: thread.post,
            channel: thread.channel,
            postText: post?.line(name: name) ?? "",
            areAllowed: try store.allowsComments(thread.channel)
        )
    }
}
