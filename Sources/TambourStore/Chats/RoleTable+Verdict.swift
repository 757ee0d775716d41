package import TambourProtocol

extension RoleTable {
    /// A user's role in a chat, and the other facts on which the table of roles may depend.
    package struct Place: Sendable {
        package var kind: Kind
        package var role: Role
        package var permissions: Permissions
        package var options: Options

        package init(
            kind: Kind,
            role: Role,
            permissions: Permissions = [],
            options: Options = []
        ) {
            self.kind = kind
            self.role = role
            self.permissions = permissions
            self.options = options
        }

        /// Creates the place of a user in a chat.
        ///
        /// In a dialog, both users have the role of a member, even the user who created the dialog.
        /// - Parameter isBanned: for comments, whether the channel bans the user from commenting.
        package init(
            of user: UserID,
            in kind: ChatKind,
            owner: UserID,
            permissions: Permissions,
            options: Options,
            isBanned: Bool
        ) {
            let role: Role =
                switch kind {
                case .dialog: .member
                case .saved: .owner
                case .group, .channel:
                    user == owner ? .owner : permissions.isEmpty ? .member : .admin
                case .comments:
                    user == owner
                        ? .owner
                        : !permissions.isEmpty ? .admin : isBanned ? .banned : .member
                }
            self.init(
                kind: kind.inTable,
                role: role,
                permissions: permissions,
                options: options
            )
        }
    }

    /// The answer of the table of roles: whether a user in a place may perform an action.
    package enum Verdict: Sendable {
        case done, notAllowed, unknownChat
    }

    /// Returns whether the table of roles allows a user in `place` to perform `action`.
    package static func verdict(on action: Action, in place: Place) -> Verdict {
        switch cell(action, in: place.kind, for: place.role) {
        case .yes: return .done
        case .no: return .notAllowed
        case .absent, .unknown: return .unknownChat
        case .anyOf(let conditions):
            let isAllowed = conditions.contains { condition in
                switch condition {
                case .permission(let permission): place.permissions.contains(permission)
                case .isSet(let option): place.options.contains(option)
                case .isNotSet(let option): !place.options.contains(option)
                }
            }
            return isAllowed ? .done : .notAllowed
        }
    }

    package static func allows(_ action: Action, in place: Place) -> Bool {
        verdict(on: action, in: place) == .done
    }
}

extension ChatKind {
    /// The kind of the chat as the table of roles names it.
    package var inTable: RoleTable.Kind {
        switch self {
        case .dialog: .dialog
        case .saved: .saved
        case .group: .group
        case .channel: .channel
        case .comments: .comments
        }
    }

    package var onWire: ChatType {
        switch self {
        case .dialog, .saved: .dialog
        case .group: .chat
        case .channel, .comments: .channel
        }
    }
}
