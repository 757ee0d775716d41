package import TambourProtocol

/// The target of a draft or a scheduled message. The other user identifies a dialog, so the dialog
/// need not exist yet.
package enum ChatPlace: Hashable, Sendable {
    case group(ChatKey)
    /// The other user of a dialog; the user's own id for saved messages.
    case user(UserID)

    /// Groups have negative keys and users positive ids, so one column holds both.
    var peer: Int64 {
        switch self {
        case .group(let key): key.rawValue
        case .user(let id): id.rawValue
        }
    }

    init(peer: Int64) {
        self = peer < 0 ? .group(ChatKey(peer)) : .user(UserID(peer))
    }

    /// Creates the place of `chat`, as seen by `user`; the chat need not exist.
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
