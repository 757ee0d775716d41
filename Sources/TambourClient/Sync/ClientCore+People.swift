import GRDB
import TambourProtocol

/// People of whom nothing is known yet.
extension ClientCore {
    /// So many are asked about at once.
    private static let atOnce = 100

    /// Asks who the people are that the transaction spoke of.
    func askAboutStrangers(_ tx: StoreTransaction) throws {
        guard isLive else { return }
        let strangers = try tx.strangers.subtracting(introduced).filter { user in
            try tx.row("SELECT 1 FROM person WHERE id = ?", [user.rawValue]) == nil
        }
        tx.strangers = []
        guard !strangers.isEmpty else { return }
        introduced.formUnion(strangers)
        let asked = strangers.sorted()
        for start in stride(from: 0, to: asked.count, by: Self.atOnce) {
            let users = Array(asked[start..<min(start + Self.atOnce, asked.count)])
            call(ContactInfoRequest(contactIDs: users)) { answer, tx in
                guard case .success(let reply) = answer else { return }
                for user in reply.contacts { try tx.put(user) }
                // Their names are in lines and rows that are on the screen.
                tx.changes.everything = true
            }
        }
    }
}
