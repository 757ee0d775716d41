import TambourProtocol
import TambourStore

/// Who may do what in a chat: the table of `protocol-spec/roles.yaml`, and nothing beside it.
enum ChatRules {
    /// What somebody is in a chat, and what the table may ask about that.
    struct Place {
        var kind: RoleTable.Kind
        var role: RoleTable.Role
        var permissions: RoleTable.Permissions = []
        var options: RoleTable.Options = []
    }

    /// Nil when it is done, otherwise what it is refused with.
    static func refusal(of action: RoleTable.Action, in place: Place) -> RequestError? {
        switch RoleTable.cell(action, in: place.kind, for: place.role) {
        case .yes: return nil
        case .no: return .notAllowed
        case .absent, .unknown: return .chatNotFound
        case .anyOf(let conditions):
            let isAllowed = conditions.contains { condition in
                switch condition {
                case .permission(let permission): place.permissions.contains(permission)
                case .isSet(let option): place.options.contains(option)
                case .isNotSet(let option): !place.options.contains(option)
                }
            }
            return isAllowed ? nil : .notAllowed
        }
    }

    /// - Throws: `not.allowed`, or `chat.not.found` for those who may not know of the chat.
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

    /// In a dialog nobody hears anything new once one of the two has blocked the other.
    ///
    /// - Throws: `chat.not.found` for whom the other has blocked, `not.allowed` for who has blocked.
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

    static func place(
        of user: UserID,
        in chat: ChatState,
        _ tx: WriteTransaction
    ) throws -> Place {
        guard let member = try tx.member(user, of: chat) else {
            return Place(kind: chat.kind.inTable, role: .outsider)
        }
        return Place(
            kind: chat.kind.inTable,
            role: role(of: user, owner: chat.owner, permissions: member.permissions, chat.kind),
            permissions: member.permissions,
            options: chat.details.options
        )
    }

    /// - Throws: `chat.not.found`, `not.allowed`.
    static func require(_ action: RoleTable.Action, of view: ChatView) throws {
        let place = Place(
            kind: view.kind.inTable,
            role: role(
                of: view.viewer,
                owner: view.owner,
                permissions: view.permissions,
                view.kind
            ),
            permissions: view.permissions,
            options: view.options
        )
        if let refusal = refusal(of: action, in: place) { throw refusal }
    }

    /// Who began a dialog has no more to say in it than the other.
    private static func role(
        of user: UserID,
        owner: UserID,
        permissions: RoleTable.Permissions,
        _ kind: ChatKind
    ) -> RoleTable.Role {
        switch kind {
        case .dialog: .member
        case .saved: .owner
        case .group: user == owner ? .owner : permissions.isEmpty ? .member : .admin
        }
    }
}

extension ChatKind {
    fileprivate var inTable: RoleTable.Kind {
        switch self {
        case .dialog: .dialog
        case .saved: .saved
        case .group: .group
        }
    }
}
