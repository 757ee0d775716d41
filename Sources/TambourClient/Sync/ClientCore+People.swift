import TambourProtocol

/// People who are not stored yet.
extension ClientCore {
    /// The number of people per request.
    private static let atOnce = 100

    /// Requests the people whom the transaction mentioned and who are not stored.
    func askAboutStrangers(_ tx: StoreTransaction) throws {
        guard isLive else { return }
        let strangers = try tx.strangers.subtracting(introduced).filter { try !tx.isKnown($0) }
        tx.strangers = []
        guard !strangers.isEmpty else { return }
        introduced.formUnion(strangers)
        let asked = strangers.sorted()
        for start in stride(from: 0, to: asked.count, by: Self.atOnce) {
            let users = Array(asked[start..<min(start + Self.atOnce, asked.count)])
            call(ContactInfoRequest(contactIDs: users)) { answer, tx in
                guard case .success(let reply) = answer else { return }
                for user in reply.contacts { try tx.put(user) }
                // Their names occur in chats and rows that are on the screen.
                tx.changes.everything = true
            }
        }
    }
}
