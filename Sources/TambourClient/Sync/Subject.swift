import TambourProtocol

/// The subject of an answer. A push of a newer state may arrive before the answer.
enum Subject: Hashable {
    /// A chat as the list shows it.
    case chat(ChatID)
    /// A contact, or the account itself.
    case person(UserID)
    case draft(ChatID)
    /// The account's settings for a chat.
    case settings(ChatID)
}

extension StoreTransaction {
    /// All subjects about which something was learned.
    var allLearned: Set<Subject> { learned.union(changes.chats.map { .chat($0) }) }

    fileprivate func hasLearned(_ subject: Subject) -> Bool {
        if case .chat(let chat) = subject, changes.chats.contains(chat) { return true }
        return learned.contains(subject)
    }
}

/// What the core has learned about subjects, and when.
struct Subjects {
    /// The number of transactions committed since the core was made.
    private(set) var transactions = 0
    /// The last transaction in which the core learned something about a subject.
    private var learnedAt: [Subject: Int] = [:]
    /// Chats that the account had left when their settings were requested.
    private var withoutSettings: Set<ChatID> = []

    /// Ends a transaction in which something was learned about `subjects`.
    mutating func committed(_ subjects: Set<Subject>) {
        transactions += 1
        for subject in subjects { learnedAt[subject] = transactions }
    }

    /// Whether nothing was learned about a subject since the transaction in which a request was
    /// made.
    ///
    /// - Parameter asked: `transactions` at the time of the request.
    func isCurrent(_ subject: Subject, since asked: Int, _ tx: StoreTransaction) -> Bool {
        learnedAt[subject, default: 0] <= asked + 1 && !tx.hasLearned(subject)
    }

    /// Whether the settings of a chat must be requested when the account is in it again.
    func lacksSettings(of chat: ChatID) -> Bool { withoutSettings.contains(chat) }

    mutating func setLacksSettings(of chat: ChatID, _ isLacking: Bool) {
        if isLacking { withoutSettings.insert(chat) } else { withoutSettings.remove(chat) }
    }
}

/// Answers yield to pushes: docs/decisions/0017-answers-yield.md
extension ClientCore {
    /// Whether nothing was learned about a subject since the transaction in which a request was
    /// made.
    ///
    /// An answer may be older than a push that came before it. The effects of several requests in
    /// one transaction are pushed before any of them is answered. A query is answered from a
    /// snapshot, for which writers do not wait.
    /// - Parameter asked: `transactions` at the time of the request.
    func isCurrent(_ subject: Subject, since asked: Int, _ tx: StoreTransaction) -> Bool {
        subjects.isCurrent(subject, since: asked, tx)
    }

    /// Applies the answer to the task that has just ended if it is the latest state of the subject,
    /// and requests the latest state otherwise.
    func learn(_ subject: Subject, _ tx: StoreTransaction, _ body: () throws -> Void) throws {
        guard isCurrent(subject, since: tasks.asked.transactions, tx) else {
            return try askAnew(subject, tx)
        }
        try body()
        tx.learned.insert(subject)
    }

    /// Requests the current state of a subject: the last answer lacks some of what was pushed.
    ///
    /// If no answer comes, the next login brings it.
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
        let asked = subjects.transactions
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
        let asked = subjects.transactions
        // An empty change returns the current settings.
        let nothing = SettingsChange(chats: IDMap([(chat, NameMap([]))]))
        call(ConfigRequest(settings: nothing)) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                guard isCurrent(.settings(chat), since: asked, tx) else { return }
                if let settings = reply.chats { try tx.put(chatSettings: settings) }
            // The account is not in the chat. If it joins again, its settings are requested.
            case .failure(.refused(_, _, nil)): subjects.setLacksSettings(of: chat, true)
            case .failure(let error): try syncFailed(error, tx)
            }
        }
    }
}
