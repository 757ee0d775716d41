import TambourProtocol
import TambourStore

extension LoginSync {
    /// Drafts that changed after a mark, as LOGIN brings them, oldest first where they would fill more than
    /// `budget`.
    ///
    /// - Parameter since: nil for all drafts there are.
    /// - Returns: nil for none; `complete` is the clock up to which nothing is missing.
    func drafts(
        of caller: Caller,
        since: Int64?,
        budget: Int,
        in snapshot: ReadTransaction
    ) throws -> (drafts: Drafts?, bytes: Int, complete: Int64) {
        let changed = try snapshot.changedDrafts(of: caller.userID, since: since ?? 0)
            .filter { since != nil || $0.isSaved }
        guard !changed.isEmpty else { return (nil, 0, .max) }
        let part = oldest(changed.map { ($0, $0.ct) }, budget: budget) { $0.wireSizeEstimate }
        var saved: [(ChatID, Draft)] = []
        var discarded: [(ChatID, Int64)] = []
        var savedOfUsers: [(UserID, Draft)] = []
        var discardedOfUsers: [(UserID, Int64)] = []
        for record in part.items {
            let chatID: ChatID
            switch record.place {
            case .group(let key):
                chatID = ChatID(key.rawValue)
            case .user(let partner):
                guard partner == caller.userID || record.dialogCreated > 0 else {
                    if record.isSaved {
                        savedOfUsers.append((partner, record.draft))
                    } else {
                        discardedOfUsers.append((partner, record.ct))
                    }
                    continue
                }
                chatID = .dialog(caller.userID, partner)
                // Whoever was away since before the dialog began holds it under the user.
                if partner != caller.userID, let since, record.dialogCreated > since {
                    discardedOfUsers.append((partner, record.ct))
                }
            }
            if record.isSaved {
                saved.append((chatID, record.draft))
            } else {
                discarded.append((chatID, record.ct))
            }
        }
        let drafts = Drafts(
            chats: ChatDrafts(saved: IDMap(saved), discarded: IDMap(discarded)),
            users: UserDrafts(saved: IDMap(savedOfUsers), discarded: IDMap(discardedOfUsers))
        )
        return (drafts, part.items.reduce(0) { $0 + $1.wireSizeEstimate }, part.complete)
    }
}
