import GRDB
public import TambourProtocol

/// What only the server knows. These wait for it.
extension Client {
    /// The person with a phone, if they let themselves be found by it.
    ///
    /// - Throws: `ClientError.refused` when there is none.
    public func find(phone: String) async throws(ClientError) -> Person {
        let reply = try await askLoggedIn(ContactInfoByPhoneRequest(phone: phone))
        return try await keep(reply.contact)
    }

    /// The members of a group or channel, as many as the server tells at once.
    public func members(of chat: ChatID) async throws(ClientError) -> [Person] {
        let reply = try await askLoggedIn(ChatMembersRequest(chatID: chat, type: .member))
        var people: [Person] = []
        for member in reply.members { people.append(try await keep(member.contact)) }
        return people
    }

    private func keep(_ user: User) async throws(ClientError) -> Person {
        let found = try await wish { _, tx in
            try tx.put(user)
            return try Reader(tx.db).person(user.id)
        }
        guard let found else { throw .invalid(reason: "the person is gone") }
        return found
    }
}
