public import TambourProtocol

/// Queries that only the server can answer. Every call waits for the server.
extension Client {
    /// Finds the person with a phone number, if the person allows this search.
    ///
    /// - Throws: `ClientError.refused` when no person can be found.
    public func find(phone: String) async throws(ClientError) -> Person {
        let reply = try await askLoggedIn(ContactInfoByPhoneRequest(phone: phone))
        guard let person = try await keep([reply.contact]).first else {
            throw .invalid(reason: "the person is gone")
        }
        return person
    }

    /// Returns the members of a group or channel: the first page that the server sends.
    public func members(of chat: ChatID) async throws(ClientError) -> [Person] {
        let reply = try await askLoggedIn(ChatMembersRequest(chatID: chat, type: .member))
        return try await keep(reply.members.map(\.contact), isMemberList: true)
    }

    /// Searches the server's messages for words that begin with the words of `query`, newest first.
    ///
    /// The results are not stored on this device. To open a result, call `look` with its chat, and
    /// with its message as the position. A server with many messages to search may return empty
    /// pages. After an empty page, the client requests the next page, up to `pagesOfNothing` pages
    /// in total.
    /// - Parameters:
    ///   - chat: nil for all chats.
    ///   - marker: the marker at the end of the previous page; nil for the first page.
    /// - Returns: a page and the marker of the next page; a nil marker at the end.
    public func searchServer(
        _ query: String,
        in chat: ChatID? = nil,
        after marker: MessageID? = nil
    ) async throws(ClientError) -> (found: [Found], marker: MessageID?) {
        var (result, next) = try await searchPage(query, in: chat, after: marker)
        var pages = 1
        while result.isEmpty, let marker = next, pages < Self.pagesOfNothing {
            (result, next) = try await searchPage(query, in: chat, after: marker)
            pages += 1
        }
        let messages = result
        let found = try store.read { store in
            let reader = try Reader(store)
            return try messages.compactMap { try reader.found($0) }
        }
        return (found, next)
    }

    /// The number of empty pages after which a search returns an empty result.
    private static let pagesOfNothing = 20

    private func searchPage(
        _ query: String,
        in chat: ChatID?,
        after marker: MessageID?
    ) async throws(ClientError) -> ([FoundMessage], MessageID?) {
        if let chat {
            try store.read { try $0.requireNoComments(chat, "the server cannot search comments") }
        }
        guard let chat else {
            let reply = try await askLoggedIn(
                ChatSearchRequest(query: Text(query), marker: marker)
            )
            return (reply.result, reply.marker)
        }
        let reply = try await askLoggedIn(
            MsgSearchRequest(chatID: chat, query: Text(query), marker: marker)
        )
        return (reply.result, reply.marker)
    }

    /// Stores people as the server describes them, in one transaction.
    ///
    /// - Parameter isMemberList: whether `users` come from a list of members, which lacks the names
    ///   that this account gave its contacts.
    func keep(_ users: [User], isMemberList: Bool = false) async throws(ClientError) -> [Person] {
        try await wish { _, tx in
            for user in users {
                try isMemberList ? tx.put(member: user) : tx.put(user)
            }
            return try users.compactMap { try tx.person($0.id) }
        }
    }
}

extension Reader {
    /// Converts a message that the server found; nil if the deletion of the message is queued on
    /// this device.
    fileprivate func found(_ found: FoundMessage) throws -> Client.Found? {
        let title = try chat(found.chatID)?.title ?? ""
        let context = Context(chat: found.chatID, title: title, readMark: 0)
        var overlays = try store.overlays(of: found.chatID)
        if overlays.isDeleted(found.message.id) { return nil }
        return Client.Found(
            chat: found.chatID,
            chatTitle: title,
            row: row(found.message, context, &overlays)
        )
    }
}
