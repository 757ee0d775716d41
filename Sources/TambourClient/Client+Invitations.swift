public import TambourProtocol

/// Finding and joining groups and channels, and their options. All calls wait for the server.
extension Client {
    /// A group or channel as the server shows it to people who are not members.
    public struct ChatCard: Hashable, Sendable, Identifiable {
        public let id: ChatID
        public let title: String
        public let about: String
        public let members: Int
        /// The public name, or the part of the invitation link that begins with `join/`; empty if
        /// the server hides it.
        public let link: String

        init(_ chat: Chat) {
            id = chat.id
            title = chat.title.map { "\($0)" } ?? ""
            about = chat.description.map { "\($0)" } ?? ""
            members = Int(clamping: chat.participantsCount ?? 0)
            link = chat.link.map { "\($0)" } ?? ""
        }
    }

    /// The result of `join`.
    public enum Joining: Hashable, Sendable {
        case joined(ChatCard)
        /// The account joins when an administrator accepts the request.
        case requested(ChatCard)
    }

    /// What `searchPublic` finds.
    public struct PublicResults: Hashable, Sendable {
        public let people: [Person]
        public let chats: [ChatCard]
    }

    /// A setting of a group or channel that is on or off, such as `JOIN_REQUEST`.
    public struct ChatOption: Hashable, Sendable, Identifiable {
        public let name: String
        public let isOn: Bool

        public var id: String { name }
    }

    /// Returns the group or channel of a link; nil for an invalid link.
    ///
    /// - Parameter link: a public name, a whole invitation link, or the part of an invitation link
    ///   that begins with `join/`.
    public func lookUp(_ link: String) async throws(ClientError) -> ChatCard? {
        try await askLoggedIn(LinkInfoRequest(link: Text(link))).chat.map(ChatCard.init)
    }

    /// Joins the group or channel of a link, or asks to join.
    public func join(_ link: String) async throws(ClientError) -> Joining {
        let chat = try await askLoggedIn(ChatJoinRequest(link: Text(link))).chat
        // The server shows a chat to non-members without its participants.
        guard let me = try me(), chat.participants[me] != nil else {
            return .requested(ChatCard(chat))
        }
        try await wish { core, tx in try core.learn(chat, tx) }
        return .joined(ChatCard(chat))
    }

    /// Returns the link by which others join a chat; nil if this account may not see it.
    public func invitation(of chat: ChatID) async throws(ClientError) -> String? {
        let reply = try await askLoggedIn(ChatInfoRequest(chatIDs: [chat]))
        return reply.chats.first?.link.map { "\($0)" }
    }

    /// Replaces the invitation of a chat. The previous invitation becomes invalid.
    public func renewInvitation(of chat: ChatID) async throws(ClientError) -> String? {
        let request = ChatUpdateRequest(chatID: chat, revokePrivateLink: true)
        return try await askLoggedIn(request).chat.link.map { "\($0)" }
    }

    /// Finds people by name or whole phone number, and public groups and channels by title or name.
    public func searchPublic(_ query: String) async throws(ClientError) -> PublicResults {
        let reply = try await askLoggedIn(PublicSearchRequest(query: Text(query)))
        return PublicResults(
            people: try await keep(reply.result.compactMap(\.contact)),
            chats: reply.result.compactMap(\.chat).map(ChatCard.init)
        )
    }

    /// Returns the options of a group or channel, including those that are off.
    public func options(of chat: ChatID) async throws(ClientError) -> [ChatOption] {
        let reply = try await askLoggedIn(ChatInfoRequest(chatIDs: [chat]))
        let set = reply.chats.first?.options
        return RoleTable.Options.named.map { option in
            ChatOption(name: option.name, isOn: set?[Text(option.name)] == true)
        }
    }

    /// Changes an option of a group or channel.
    public func setOption(
        _ name: String,
        _ isOn: Bool,
        of chat: ChatID
    ) async throws(ClientError) {
        let options = NameMap([(Text(name), isOn)])
        let reply = try await askLoggedIn(ChatUpdateRequest(chatID: chat, options: options))
        try await wish { core, tx in try core.learn(reply.chat, tx) }
    }
}
