public import TambourProtocol

/// Members of groups and channels, and people whom this account has blocked.
extension Client {
    /// A member of a group or channel.
    public struct Member: Hashable, Sendable, Identifiable {
        public enum Role: Hashable, Sendable {
            case owner
            /// Has rights that ordinary members lack.
            case administrator
            case member
        }

        public let person: Person
        public let role: Role

        public var id: UserID { person.id }
    }

    /// Returns at most `limit` members of a group or channel, with their roles. Waits for the
    /// server.
    ///
    /// - Throws: `ClientError.refused` for a channel that this account does not administer.
    public func roster(
        of chat: ChatID,
        limit: Int = 1_000
    ) async throws(ClientError) -> [Member] {
        var members: [Member] = []
        var marker: Int64?
        repeat {
            let reply = try await askLoggedIn(
                ChatMembersRequest(chatID: chat, type: .member, marker: marker)
            )
            let roles = reply.members.map { found -> (UserID, Member.Role) in
                switch found.permissions ?? 0 {
                case 0: (found.contact.id, .member)
                case Self.rightsOfOwner: (found.contact.id, .owner)
                default: (found.contact.id, .administrator)
                }
            }
            let known = Dictionary(roles) { first, _ in first }
            for person in try await keep(reply.members.map(\.contact), isMemberList: true) {
                members.append(Member(person: person, role: known[person.id] ?? .member))
            }
            marker = reply.marker
        } while marker != nil && members.count < limit
        return Array(members.prefix(limit))
    }

    private static let rightsOfOwner: Int64 = 2047
    /// The rights to change members, administrators, description and pins, and to post, edit and
    /// delete; see `roles.yaml`.
    private static let rightsOfAdministrator: Int64 = 2 | 4 | 8 | 16 | 256 | 512 | 1024

    /// Grants or revokes an administrator's rights.
    public func setAdministrator(
        _ user: UserID,
        in chat: ChatID,
        _ isAdministrator: Bool
    ) async throws(ClientError) {
        let task = UpdateMembersTask(
            chat: chat.rawValue,
            users: [user.rawValue],
            isRemoval: !isAdministrator,
            permissions: isAdministrator ? Self.rightsOfAdministrator : 0
        )
        try await wish { core, tx in try core.queue(task, tx) }
    }

    /// Returns the people this account has blocked. Waits for the server.
    public func blocked() async throws(ClientError) -> [Person] {
        var people: [Person] = []
        var marker: Int64?
        repeat {
            let reply = try await askLoggedIn(ContactListRequest(status: .blocked, from: marker))
            // Blocking does not make a person a contact, so these people are not stored as
            // contacts.
            people += try await keep(reply.contacts)
            marker = reply.marker
        } while marker != nil
        return people
    }
}
