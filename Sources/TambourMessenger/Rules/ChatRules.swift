import TambourProtocol
import TambourStore

/// Decides which actions a role may do in a chat. The decisions are exactly those of the table in
/// `protocol-spec/roles.yaml`.
enum ChatRules {
    /// Returns nil if the action is allowed, and the error for the refusal otherwise.
    static func refusal(
        of action: RoleTable.Action,
        in place: RoleTable.Place
    ) -> RequestError? {
        switch RoleTable.verdict(on: action, in: place) {
        case .done: nil
        case .notAllowed: .notAllowed
        case .unknownChat: .chatNotFound
        }
    }

    /// - Throws: `not.allowed`, or `chat.not.found` for users who must not learn that the chat
    ///   exists.
    static func require(
        _ action: RoleTable.Action,
        of user: UserID,
        in chat: ChatState,
        _ tx: WriteTransaction
    ) throws {
        if let refusal = refusal(of: action, in: try place(of: user, in: chat, tx)) {
            throw refusal
        }
    }

    /// Refuses new content in a dialog if one partner has blocked the other.
    ///
    /// - Throws: `chat.not.found` for the blocked partner, `not.allowed` for the blocking partner.
    static func requireOpen(_ chat: ChatState, for user: UserID) throws {
        if chat.isShut(for: user) { throw RequestError.chatNotFound }
        if chat.hasBlocked(by: user) { throw RequestError.notAllowed }
    }

    static func may(
        _ action: RoleTable.Action,
        _ user: UserID,
        in chat: ChatState,
        _ tx: WriteTransaction
    ) throws -> Bool {
        refusal(of: action, in: try place(of: user, in: chat, tx)) == nil
    }

    private static func place(
        of user: UserID,
        in chat: ChatState,
        _ tx: WriteTransaction
    ) throws -> RoleTable.Place {
        guard let member = try tx.member(user, of: chat) else {
            return RoleTable.Place(kind: chat.kind.inTable, role: .outsider)
        }
        return RoleTable.Place(
            of: user,
            in: chat.kind,
            owner: chat.owner,
            permissions: member.permissions,
            options: chat.details.options,
            isBanned: try chat.post.map { try tx.reader.isBanned(user, from: $0.channel.key) }
                ?? false
        )
    }

    /// - Throws: `chat.not.found`, `not.allowed`.
    static func require(_ action: RoleTable.Action, of view: ChatView) throws {
        if let refusal = refusal(of: action, in: place(of: view, isBanned: false)) { throw refusal }
    }

    /// Returns whether the viewer of a post's comments may do the action in the comments.
    static func may(
        _ action: RoleTable.Action,
        in comments: ChatView,
        _ snapshot: ReadTransaction
    ) throws -> Bool {
        let isBanned = try comments.post.map {
            try snapshot.isBanned(comments.viewer, from: $0.channel)
        }
        return refusal(of: action, in: place(of: comments, isBanned: isBanned ?? false)) == nil
    }

    private static func place(of view: ChatView, isBanned: Bool) -> RoleTable.Place {
        RoleTable.Place(
            of: view.viewer,
            in: view.kind,
            owner: view.owner,
            permissions: view.permissions,
            options: view.options,
            isBanned: isBanned
        )
    }
}
