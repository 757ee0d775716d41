package import TambourProtocol

/// What a draft or a scheduled message is for. A dialog is known by its other side, whether it has begun
/// or not.
package enum ChatPlace: Hashable, Sendable {
    case group(ChatKey)
    /// Oneself for saved messages.
    case user(UserID)

    /// Groups have negative keys, users positive ids: one column holds both.
    var peer: Int64 {
        switch self {
        case .group(let key): key.rawValue
        case .user(let id): id.rawValue
        }
    }

    init(peer: Int64) {
        self = peer < 0 ? .group(ChatKey(peer)) : .user(UserID(peer))
    }

    /// The place that `chat` is to `user`, whether it is there or not.
    package init(_ chat: ChatID, for user: UserID) {
        if let partner = chat.partner(of: user) {
            self = .user(partner)
        } else {
            self = .group(ChatKey(chat.rawValue))
        }
    }

    /// The id that travels to `user`.
    package func wireID(for user: UserID) -> ChatID {
        switch self {
        case .group(let key): ChatID(key.rawValue)
        case .user(let partner): .dialog(user, partner)
        }
    }
}
