import TambourProtocol
import TambourStore

/// The sessions of a lane that have opened the comments on posts.
///
/// Owned by the lane's gateway.
struct CommentReaders {
    private var sessions: [MessageAddress: [Session]] = [:]
    private var opened: [ObjectIdentifier: [MessageAddress]] = [:]
    private let limit: Int

    init(limits: Limits) {
        limit = limits.maxOpenThreads
    }

    /// The session hears of the comments from now on; beyond `maxOpenThreads` posts no longer of those that it
    /// opened first.
    mutating func open(_ address: MessageAddress, by session: Session) {
        close(address, by: session)
        sessions[address, default: []].append(session)
        opened[ObjectIdentifier(session), default: []].append(address)
        if let own = opened[ObjectIdentifier(session)], own.count > limit {
            close(own[0], by: session)
        }
    }

    mutating func close(_ address: MessageAddress, by session: Session) {
        sessions[address]?.removeAll { $0 === session }
        if sessions[address]?.isEmpty == true { sessions[address] = nil }
        opened[ObjectIdentifier(session)]?.removeAll { $0 == address }
        if opened[ObjectIdentifier(session)]?.isEmpty == true {
            opened[ObjectIdentifier(session)] = nil
        }
    }

    mutating func closeAll(by session: Session) {
        for address in opened[ObjectIdentifier(session)] ?? [] { close(address, by: session) }
    }

    subscript(address: MessageAddress) -> [Session] { sessions[address] ?? [] }
}

extension Push {
    /// The comments that it is about; nil for a push about anything else.
    var comments: MessageAddress? {
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
