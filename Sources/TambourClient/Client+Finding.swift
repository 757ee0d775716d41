import GRDB
public import TambourProtocol

/// What only the server knows. These wait for it.
extension Client {
    /// The person with a phone, if they let themselves be found by it.
    ///
    /// - Throws: `ClientError.refused` when there is none.
    public func find(phone: String) async throws(ClientError) -> Person {
        let reply = try await askLoggedIn(ContactInfoByPhoneRequest(phone: phone))
        guard let person = try await keep([reply.contact]).first else {
            throw .invalid(reason: "the person is gone")
        }
        return person
    }

    /// The members of a group or channel, as many as the server tells at once.
    public func members(of chat: ChatID) async throws(ClientError) -> [Person] {
        let reply = try await askLoggedIn(ChatMembersRequest(chatID: chat, type: .member))
        return try await keep(reply.members.map(\.contact))
    }

    /// Messages that the server holds with words that begin with those of `query`, the newest first.
    ///
    /// They are not kept here: who opens one looks at its chat around it. A server that has many messages to
    /// look through answers with empty pages; the next ones are asked for, `pagesOfNothing` at most.
    /// - Parameters:
    ///   - chat: nil for all chats.
    ///   - marker: what the page before ended with; nil for the first page.
    /// - Returns: a page, and where the next one begins; nil at the end.
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
        let found = try store.read { db in
            let reader = try Reader(db)
            return try messages.map { try reader.found($0) }
        }
        return (found, next)
    }

    /// How many empty pages of a search are read before an empty one is returned.
    private static let pagesOfNothing = 20

    private func searchPage(
        _ query: String,
        in chat: ChatID?,
        after marker: MessageID?
    ) async throws(ClientError) -> ([FoundMessage], MessageID?) {
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

    /// Keeps what the server says of people, all in one transaction.
    func keep(_ users: [User]) async throws(ClientError) -> [Person] {
        try await wish { _, tx in
            for user in users { try tx.put(user) }
            let reader = try Reader(tx.db)
            return try users.compactMap { try reader.person($0.id) }
        }
    }
}

extension Reader {
    fileprivate func found(_ found: FoundMessage) throws -> Client.Found {
        let title = try chat(found.chatID)?.title ?? ""
        let context = Context(chat: found.chatID, title: title, readMark: 0)
        var overlays = try Overlays(of: found.chatID, db)
        return Client.Found(
            chat: found.chatID,
            chatTitle: title,
            row: row(found.message, context, &overlays)
        )
    }
}
