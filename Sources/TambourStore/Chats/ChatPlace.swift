package import TambourProtocol

/// The chat of a draft or a scheduled message. The place of a dialog is the other user, so the
/// dialog need not exist yet.
package enum ChatPlace: Hashable, Sendable {
    case group(ChatKey)
    /// The other user of a dialog. For saved messages, the user's own id.
    case user(UserID)

    /// The value of the column for the place. Keys of groups are negative and ids of users are
    /// positive, so one column can hold both.
    var peer: Int64 {
        switch self {
        case .group(let key): key.rawValue
        case .user(let id): id.rawValue
        }
    }

    init(peer: Int64) {
        self = peer < 0 ? .group(ChatKey(peer)) : .user(UserID(peer))
    }

    /// Creates the place of `chat` for `user`. The chat need not exist.
    package init(_ chat: ChatID, for user: UserID) {
        if let partner = chat.partner(of: user) {
            self = .user(partner)
        } else {
            self = .group(ChatKey(chat.rawValue))
        }
    }

    /// Returns the chat id that `user` sees on the wire.
    package func wireID(for user: UserID) -> ChatID {
        switch self {
        case .group(let key): ChatID(key.rawValue)
        case .user(let partner): .dialog(user, partner)
        }
    }
}
