import TambourFraming
import TambourProtocol
import TambourStore
import TambourTesting
import Testing

/// Plays every cell of the role table over a socket, and compares the answer with the table.
@Suite("The table of roles")
struct RoleTableTests {
    /// One attempt: a member with a role tries an action in a kind of chat with some options.
    private struct Cell: CustomStringConvertible {
        let action: RoleTable.Action
        let kind: RoleTable.Kind
        let role: RoleTable.Role
        let permissions: RoleTable.Permissions
        let options: RoleTable.Options

        var description: String {
            "\(action) by \(role) with \(permissions.rawValue) in \(kind) with \(options.rawValue)"
        }

        /// The refusal that the table prescribes; nil when the action is allowed.
        var refusal: RequestError.Code? {
            switch RoleTable.cell(action, in: kind, for: role) {
            case .yes: return nil
            case .no: return .notAllowed
            case .unknown, .absent: return .chatNotFound
            case .anyOf(let conditions):
                for condition in conditions {
                    switch condition {
                    case .permission(let bit): if permissions.contains(bit) { return nil }
                    case .isSet(let bit): if options.contains(bit) { return nil }
                    case .isNotSet(let bit): if !options.contains(bit) { return nil }
                    }
                }
                return .notAllowed
            }
        }
    }

    private static let ofComments: Set<RoleTable.Action> = [
        .read, .send, .deleteOthers, .editOthers, .react,
    ]

    private static func cells(of action: RoleTable.Action) -> [Cell] {
        var cells: [Cell] = []
        for kind in RoleTable.Kind.allCases {
            // The other actions do not exist for comments.
            if kind == .comments, !ofComments.contains(action) { continue }
            for role in RoleTable.Role.allCases {
                guard RoleTable.cell(action, in: kind, for: role) != .absent else { continue }
                let bits = RoleTable.Permissions.named.map(\.value)
                let permissions = role == .admin ? bits : [[]]
                let hasOptions = kind == .group || kind == .channel || kind == .comments
                let options: [RoleTable.Options] =
                    hasOptions ? [[]] + RoleTable.Options.named.map(\.value) : [[]]
                for permissions in permissions {
                    for options in options {
                        cells.append(
                            Cell(
                                action: action,
                                kind: kind,
                                role: role,
                                permissions: permissions,
                                options: options
                            )
                        )
                    }
                }
            }
        }
        return cells
    }

    @Test("every cell is enforced", arguments: RoleTable.Action.allCases)
    func cells(action: RoleTable.Action) throws {
        try withServer { server in
            let owner = try server.signUp("Owner")
            let actor = try server.signUp("Actor")
            let other = try server.signUp("Other")
            let admin = try server.signUp("Admin")
            let guest = try server.signUp("Guest")
            var cid: Int64 = 0
            for cell in Self.cells(of: action) {
                cid += 1
                let client = cell.role == .owner ? owner : actor
                var chat: ChatID
                switch cell.kind {
                case .saved: chat = ChatID(0)
                case .dialog: chat = owner.dialog(with: cell.role == .member ? actor : other)
                case .group, .channel, .comments:
                    let members = cell.role == .outsider ? [other, admin] : [other, admin, actor]
                    let type: Text = cell.kind == .group ? "CHAT" : "CHANNEL"
                    chat = try owner.createGroup("Cell", with: members, type: type, cid: cid)
                    try owner.call(ChatUpdateRequest(chatID: chat, revokePrivateLink: true))
                    try appoint(admin, [.pin, .post], in: chat, by: owner)
                    if cell.role == .admin {
                        try appoint(actor, cell.permissions, in: chat, by: owner)
                    }
                    var options = cell.options
                    // Comments must be enabled before the test can write some under the post.
                    if cell.kind == .comments { options.insert(.comments) }
                    try owner.call(ChatUpdateRequest(chatID: chat, options: options.onWire))
                }
                cid += 1
                var post: MessageID?
                if cell.kind == .comments {
                    post = try owner.send("post", to: chat, cid: cid).message.id
                    cid += 1
                }
                // For `editOthers`, an acting owner needs a message of another author; saved
                // messages have none.
                let isFound = cell.action == .editOthers && client === owner
                let author = isFound && cell.kind != .saved ? admin : owner
                let said = try author.call(
                    MsgSendRequest(
                        chatID: chat,
                        postID: post,
                        message: NewMessage(cid: cid, text: "said")
                    )
                ).message.id
                cid += 1
                if post != nil {
                    let options = NameMap([
                        (Text("COMMENTS"), cell.options.contains(.comments))
                    ])
                    try owner.call(ChatUpdateRequest(chatID: chat, options: options))
                }
                if cell.role == .banned { try owner.ban(actor, from: chat) }
                let answer = try play(
                    cell,
                    client,
                    (chat, post),
                    said,
                    (other.userID, admin.userID, guest.userID),
                    cid
                )
                #expect(answer == cell.refusal, "\(cell)")
                _ = try (owner.takePushes(), actor.takePushes(), other.takePushes())
                _ = try (admin.takePushes(), guest.takePushes())
            }
        }
    }

    private func appoint(
        _ user: WireClient,
        _ permissions: RoleTable.Permissions,
        in chat: ChatID,
        by owner: WireClient
    ) throws {
        try owner.call(
            ChatMembersUpdateRequest(
                chatID: chat,
                userIDs: [user.userID],
                operation: .add,
                type: .admin,
                permissions: permissions.rawValue
            )
        )
    }

    /// Tries the action and returns the refusal; nil when it succeeds.
    private func play(
        _ cell: Cell,
        _ client: WireClient,
        _ place: (chat: ChatID, post: MessageID?),
        _ said: MessageID,
        _ people: (member: UserID, admin: UserID, guest: UserID),
        _ cid: Int64
    ) throws -> RequestError.Code? {
        let (chat, post) = place
        func ask<Request: WireRequest>(_ request: Request) throws -> RequestError.Code? {
            let packet = try client.reply(
                to: client.send(Request.opcode, payload: request.encoded())
            )
            guard packet.header.command != PacketCommand.ok.rawValue else { return nil }
            let error = try ErrorReply.decode(packet.payload, limits: .standard).error
            return RequestError.Code(rawValue: "\(error)")
        }
        func members(
            _ user: UserID,
            _ operation: MemberOperation,
            _ type: MemberType? = nil
        ) -> ChatMembersUpdateRequest {
            ChatMembersUpdateRequest(
                chatID: chat,
                userIDs: [user],
                operation: operation,
                type: type,
                // An administrator can only grant permissions that it has.
                permissions: cell.permissions.isEmpty ? 2 : cell.permissions.rawValue
            )
        }
        switch cell.action {
        case .read:
            return try ask(ChatHistoryRequest(chatID: chat, backward: 1, postID: post))
        case .seeMembers:
            return try ask(ChatMembersRequest(chatID: chat))
        case .decideRequests:
            let letIn = try ask(members(people.guest, .add, .joinRequest))
            #expect(try ask(members(people.guest, .remove, .joinRequest)) == letIn, "\(cell)")
            let look = ChatMembersRequest(chatID: chat, type: .joinRequest)
            #expect(try ask(look) == letIn, "\(cell)")
            return letIn
        case .seeLink:
            // The server never refuses this action to a member; it omits the link instead.
            guard let seen = try client.chat(chat) else { return .chatNotFound }
            return seen.link == nil ? .notAllowed : nil
        case .changeAccess:
            let name = Text("cell_\(cid)")
            return try ask(ChatUpdateRequest(chatID: chat, access: .public, link: name))
        case .editOthers:
            return try ask(
                MsgEditRequest(chatID: chat, messageID: said, text: "edited", postID: post)
            )
        case .send:
            return try ask(
                MsgSendRequest(
                    chatID: chat,
                    postID: post,
                    message: NewMessage(cid: cid, text: "me")
                )
            )
        case .deleteOthers:
            let packet = try client.reply(
                to: client.send(MsgDeleteRequest(chatID: chat, messageIDs: [said], postID: post))
            )
            guard packet.header.command == PacketCommand.ok.rawValue else { return .chatNotFound }
            let reply = try MsgDeleteReply.decode(packet.payload, limits: .standard)
            return reply.failedMessageIDs == nil ? nil : .notAllowed
        case .addMember: return try ask(members(people.guest, .add))
        case .removeMember: return try ask(members(people.member, .remove))
        case .appoint:
            let given = try ask(members(people.member, .add, .admin))
            if cell.role != .outsider, cell.kind == .group || cell.kind == .channel {
                #expect(try ask(members(people.admin, .remove)) == given, "\(cell)")
            }
            return given
        case .changeLink: return try ask(ChatUpdateRequest(chatID: chat, revokePrivateLink: true))
        case .clear: return try ask(ChatClearRequest(chatID: chat))
        case .clearForAll: return try ask(ChatClearRequest(chatID: chat, forAll: true))
        case .deleteChat: return try ask(ChatDeleteRequest(chatID: chat, forAll: true))
        case .leave: return try ask(ChatLeaveRequest(chatID: chat))
        case .changeTitle: return try ask(ChatUpdateRequest(chatID: chat, theme: "New"))
        case .changeDescription: return try ask(ChatUpdateRequest(chatID: chat, description: "New"))
        case .changeOptions:
            let options = RoleTable.Options.allCanPinMessage.onWire
            return try ask(ChatUpdateRequest(chatID: chat, options: options))
        case .pin: return try ask(ChatUpdateRequest(chatID: chat, pinMessageID: said))
        case .changeOwner:
            return try ask(ChatUpdateRequest(chatID: chat, changeOwnerID: people.member))
        case .react:
            let reaction = NewReaction(id: "👍")
            return try ask(
                MsgReactionRequest(
                    chatID: chat,
                    messageID: said,
                    reaction: reaction,
                    postID: post
                )
            )
        case .seeReactions:
            return try ask(MsgGetDetailedReactionsRequest(chatID: chat, messageID: said))
        case .changeReactions:
            return try ask(ChatReactionsSettingsSetRequest(chatID: chat, isActive: false))
        case .banCommenters:
            let banned = try ask(members(people.guest, .add, .commentsBlacklist))
            let letIn = members(people.guest, .remove, .commentsBlacklist)
            #expect(try ask(letIn) == banned, "\(cell)")
            let look = ChatMembersRequest(chatID: chat, type: .commentsBlacklist)
            #expect(try ask(look) == banned, "\(cell)")
            return banned
        }
    }
}
