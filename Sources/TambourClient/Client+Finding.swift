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
    /// They are not kept here: who opens one looks at its chat around it.
    /// - Parameters:
    ///   - chat: nil for all chats.
    ///   - marker: what the page before ended with; nil for the first page.
    /// - Returns: a page, and where the next one begins; nil at the end.
    public func searchServer(
        _ query: String,
        in chat: ChatID? = nil,
        after marker: MessageID? = nil
    ) async throws(ClientError) -> (found: [Found], marker: MessageID?) {
        let result: [FoundMessage]
        let next: MessageID?
        if let chat {
            let reply = try await askLoggedIn(
                MsgSearchRequest(chatID: chat, query: Text(query), marker: marker)
            )
            (result, next) = (reply.result, reply.marker)
        } else {
            let reply = try await askLoggedIn(
                ChatSearchRequest(query: Text(query), marker: marker)
            )
            (result, next) = (reply.result, reply.marker)
        }
        let found = try store.read { db in
            let reader = try Reader(db)
            return try result.map { try reader.found($0) }
        }
        return (found, next)
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
