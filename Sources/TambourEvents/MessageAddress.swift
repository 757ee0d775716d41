package import TambourProtocol

/// Where clients see messages: in a chat, or under a post of a channel.
package struct MessageAddress: Hashable, Sendable {
    /// The chat id that the reader sees; for comments, the id of the channel.
    package let chatID: ChatID
    /// The post on which the messages are comments; nil for other messages.
    package let postID: MessageID?

    package init(chatID: ChatID, postID: MessageID? = nil) {
        self.chatID = chatID
        self.postID = postID
    }

    /// Whether the messages are posts of a channel, which do not reveal their author.
    package var isOfPosts: Bool { chatID.isChannel && postID == nil }
}

extension Push {
    /// The address of the comments that the push is about; nil for other pushes.
    package var comments: MessageAddress? {
        let (chat, post): (ChatID, MessageID?)
        switch self {
        case .notifMessage(let push): (chat, post) = (push.chatID, push.postID)
        case .notifTyping(let push): (chat, post) = (push.chatID, push.postID)
        case .notifMsgDelete(let push): (chat, post) = (push.chatID, push.postID)
        case .notifMsgReactionsChanged(let push): (chat, post) = (push.chatID, push.postID)
        case .notifMsgYouReacted(let push): (chat, post) = (push.chatID, push.postID)
        default: return nil
        }
        return post.map { MessageAddress(chatID: chat, postID: $0) }
    }
}
