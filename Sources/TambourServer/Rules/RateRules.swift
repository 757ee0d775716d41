import TambourProtocol

/// What a request costs of whose bucket: the table of `protocol-spec/prose/session.md`.
enum RateRules {
    typealias Charge = (kind: RateClass, cost: Int)

    /// - Returns: at most two charges; the second is made only if there was enough for the first.
    static func charges(for request: CommandRequest) -> (first: Charge, second: Charge?)? {
        switch request {
        case .msgSend(let request):
            guard request.chatID == nil, request.userID == nil else { return ((.send, 1), nil) }
            let invited = request.message.attaches.first?.userIDs?.count ?? 0
            return ((.create, 1), invited > 0 ? (.invite, invited) : nil)
        case .msgEdit, .msgDeleteRange, .sendVote: return ((.send, 1), nil)
        case .chatJoin: return ((.join, 1), nil)
        case .contactCreate: return ((.search, 1), nil)
        case .sync(let request): return ((.phoneBook, request.contactList.count), nil)
        case .chatMembersUpdate(let request):
            let isInvitation = request.operation == .add && (request.type ?? .member) == .member
            return isInvitation ? ((.invite, max(1, request.userIDs.count)), nil) : nil
        case .authRequest, .auth, .authConfirm, .authLoginCheckPassword, .authLoginRestorePassword,
            .getQr, .loginByQr:
            return ((.auth, 1), nil)
        default: return nil
        }
    }

    /// Each may start a process.
    static let linkPreview: Charge = (.search, 1)

    static func charge(for request: QueryRequest) -> Charge? {
        switch request {
        case .contactInfoByPhone, .chatCheckLink, .linkInfo, .publicSearch, .chatSearch, .msgSearch,
            .chatSuggest:
            (.search, 1)
        default: nil
        }
    }
}
