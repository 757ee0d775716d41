import TambourProtocol
import TambourStore

extension LoginSync {
    /// Returns drafts in the form that clients receive; nil if there are no drafts.
    ///
    /// - Parameter since: the recipient's cursor; nil for a recipient without a cursor.
    func drafts(_ records: [DraftRecord], of caller: Caller, since: Int64?) -> Drafts? {
        guard !records.isEmpty else { return nil }
        var saved: [(ChatID, Draft)] = []
        var discarded: [(ChatID, Int64)] = []
        var savedOfUsers: [(UserID, Draft)] = []
        var discardedOfUsers: [(UserID, Int64)] = []
        for record in records {
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
                // If the client's cursor is older than the dialog, the client has stored the draft
                // under the partner's id. Discard that draft.
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
        return Drafts(
            chats: ChatDrafts(saved: IDMap(saved), discarded: IDMap(discarded)),
            users: UserDrafts(saved: IDMap(savedOfUsers), discarded: IDMap(discardedOfUsers))
        )
    }
}
