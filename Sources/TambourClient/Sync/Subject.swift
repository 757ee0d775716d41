import TambourProtocol

/// What an answer describes, of which others may have had more pushed before it.
enum Subject: Hashable {
    /// The line of a chat.
    case chat(ChatID)
    /// A contact, or the account itself.
    case person(UserID)
    case draft(ChatID)
    /// The account's settings of a chat.
    case settings(ChatID)
}

extension StoreTransaction {
    /// Everything of which something was learned.
    var allLearned: Set<Subject> { learned.union(changes.chats.map { .chat($0) }) }

    fileprivate func hasLearned(_ subject: Subject) -> Bool {
        if case .chat(let chat) = subject, changes.chats.contains(chat) { return true }
        return learned.contains(subject)
    }
}

/// Answers yield to pushes: docs/decisions/0017-answers-yield.md
extension ClientCore {
    /// Whether nothing was learned of a subject since the transaction in which something was asked.
    ///
    /// An answer may be older than a push that came before it: what several did in one transaction is pushed before
    /// any of them is answered, and a question is answered from a snapshot, which others do not wait for.
    /// - Parameter asked: `transactions` at the time of the question.
    func isCurrent(_ subject: Subject, since asked: Int, _ tx: StoreTransaction) -> Bool {
        learnedAt[subject, default: 0] <= asked + 1 && !tx.hasLearned(subject)
    }

    /// Takes over what the answer to the task that has just ended says of a subject, if it is the last word; else
    /// asks for that.
    func learn(_ subject: Subject, _ tx: StoreTransaction, _ body: () throws -> Void) throws {
        guard isCurrent(subject, since: taskAsked.transactions, tx) else {
            return try askAnew(subject, tx)
        }
        try body()
        tx.learned.insert(subject)
    }

    /// Asks for what is held of a subject: who answered last did not know of all that was pushed.
    ///
    /// When no answer comes the next login brings it.
    func askAnew(_ subject: Subject, _ tx: StoreTransaction) throws {
        switch subject {
        case .chat(let chat): try refresh(chat, tx)
        case .person(let user):
            if try user == tx.userID() { askAccount(user) } else { try askRecent(.contacts, tx) }
        case .draft: try askRecent(.drafts, tx)
        case .settings(let chat): askSettings(of: chat)
        }
    }

    private func askAccount(_ user: UserID) {
        let asked = transactions
        call(ContactInfoRequest(contactIDs: [user])) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                guard isCurrent(.person(user), since: asked, tx) else { return }
                for user in reply.contacts { try tx.put(user) }
                tx.changes.account = true
            case .failure(let error): try syncFailed(error, tx)
            }
        }
    }

    func askSettings(of chat: ChatID) {
        let asked = transactions
        // A change of nothing is answered with what there is.
        let nothing = SettingsChange(chats: IDMap([(chat, NameMap([]))]))
        call(ConfigRequest(settings: nothing)) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                guard isCurrent(.settings(chat), since: asked, tx) else { return }
                if let settings = reply.chats { try tx.put(chatSettings: settings) }
            // The chat is not the account's any more; should it be again, its settings are asked for.
            case .failure(.refused(_, _, nil)): settingsInDoubt.insert(chat)
            case .failure(let error): try syncFailed(error, tx)
            }
        }
    }
}
