import TambourProtocol

/// The people whose details were requested on this connection.
struct Introductions {
    private var asked: Set<UserID> = []

    /// Returns the people to request: mentioned people who are not stored and not yet requested.
    mutating func strangers(
        among mentioned: Set<UserID>,
        _ tx: StoreTransaction
    ) throws -> [UserID] {
        let strangers = try mentioned.subtracting(asked).filter { try !tx.isKnown($0) }
        asked.formUnion(strangers)
        return strangers.sorted()
    }

    mutating func disconnected() { asked = [] }
}

/// People who are not stored yet.
extension ClientCore {
    /// The number of people per request.
    private static let atOnce = 100

    /// Requests the people whom the transaction mentioned and who are not stored.
    func askAboutStrangers(_ tx: StoreTransaction) throws {
        guard isLive else { return }
        let strangers = try introductions.strangers(among: tx.strangers, tx)
        tx.strangers = []
        for start in stride(from: 0, to: strangers.count, by: Self.atOnce) {
            let users = Array(strangers[start..<min(start + Self.atOnce, strangers.count)])
            call(ContactInfoRequest(contactIDs: users)) { [self] answer, tx in
                guard case .success(let reply) = answer else { return }
                for user in reply.contacts { try tx.put(user) }
                if let me = try tx.userID() {
                    let met = reply.contacts.map(\.id)
                    askPresence(of: try met.filter { try tx.chatRow(.dialog(me, $0)) != nil })
                }
                // The names of these people may appear in chats and rows on the screen.
                tx.changes.everything = true
            }
        }
    }
    /// Requests the presence of `users`. The server pushes only later changes, and a login returns
    /// only the presence of the partners in recent dialogs.
    func askPresence(of users: [UserID]) {
        guard isLive, !users.isEmpty else { return }
        let asked = subjects.transactions
        call(ContactPresenceRequest(contactIDs: users)) { [self] answer, tx in
            guard case .success(let reply) = answer else { return }
            for (user, presence) in reply.presence.pairs
            where isCurrent(.presence(user), since: asked, tx) {
                try tx.put(presence, of: user)
            }
        }
    }
}
