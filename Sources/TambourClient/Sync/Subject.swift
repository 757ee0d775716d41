import TambourProtocol

/// What a reply describes. A push of a newer state may arrive before the reply.
enum Subject: Hashable {
    /// A chat as shown in the list.
    case chat(ChatID)
    /// A contact, or the account itself.
    case person(UserID)
    case draft(ChatID)
    /// The account's settings for a chat.
    case settings(ChatID)
    case presence(UserID)
    /// The scheduled messages of a chat.
    case scheduled(ChatID)
    /// The account's folders.
    case folders
}

extension StoreTransaction {
    /// All subjects that this transaction has updated.
    var allLearned: Set<Subject> { learned.union(changes.chats.map { .chat($0) }) }

    fileprivate func hasLearned(_ subject: Subject) -> Bool {
        if case .chat(let chat) = subject, changes.chats.contains(chat) { return true }
        return learned.contains(subject)
    }
}

/// Remembers, for each subject, the last transaction that updated it.
struct Subjects {
    /// The number of transactions committed since the core was created.
    private(set) var transactions = 0
    /// The last transaction that updated a subject.
    private var learnedAt: [Subject: Int] = [:]
    /// Chats whose settings the server refused to send, because the account was not in the chat.
    private var withoutSettings: Set<ChatID> = []

    /// Ends a transaction that updated `subjects`.
    mutating func committed(_ subjects: Set<Subject>) {
        transactions += 1
        for subject in subjects { learnedAt[subject] = transactions }
    }

    /// Returns whether no transaction has updated a subject since the transaction of a request.
    ///
    /// - Parameter asked: `transactions` at the time of the request.
    func isCurrent(_ subject: Subject, since asked: Int, _ tx: StoreTransaction) -> Bool {
        learnedAt[subject, default: 0] <= asked + 1 && !tx.hasLearned(subject)
    }

    /// Returns whether the settings of a chat must be requested when the account joins the chat
    /// again.
    func lacksSettings(of chat: ChatID) -> Bool { withoutSettings.contains(chat) }

    mutating func setLacksSettings(of chat: ChatID, _ isLacking: Bool) {
        if isLacking { withoutSettings.insert(chat) } else { withoutSettings.remove(chat) }
    }
}

/// A reply does not replace newer data from a push: docs/decisions/0017-answers-yield.md
extension ClientCore {
    /// Returns whether no transaction has updated a subject since the transaction of a request.
    ///
    /// A reply may be older than a push that arrives before it, for two reasons. First, the server
    /// pushes the effects of all requests of one transaction before it sends the first reply.
    /// Second, the server answers queries from a snapshot that does not block writers.
    /// - Parameter asked: `transactions` at the time of the request.
    func isCurrent(_ subject: Subject, since asked: Int, _ tx: StoreTransaction) -> Bool {
        subjects.isCurrent(subject, since: asked, tx)
    }

    /// Applies the reply to the task that has just ended if it is the latest state of the subject.
    /// Otherwise, requests the latest state.
    func learn(_ subject: Subject, _ tx: StoreTransaction, _ body: () throws -> Void) throws {
        guard isCurrent(subject, since: tasks.asked.transactions, tx) else {
            return try askAnew(subject, tx)
        }
        try body()
        tx.learned.insert(subject)
    }

    /// Requests the current state of a subject, because the last reply lacks some pushed changes.
    ///
    /// If no reply arrives, the next login returns the state.
    func askAnew(_ subject: Subject, _ tx: StoreTransaction) throws {
        switch subject {
        case .chat(let chat): try refresh(chat, tx)
        case .person(let user):
            if try user == tx.userID() { askAccount(user) } else { try askRecent(.contacts, tx) }
        case .draft: try askRecent(.drafts, tx)
        case .settings(let chat): askSettings(of: chat)
        case .presence(let user): askPresence(of: [user])
        case .scheduled(let chat):
            try tx.doubtScheduled(in: chat)
            try readScheduled(of: chat, tx)
        case .folders: try askFolders(tx)
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
            // The account is not in the chat. If it joins again, the client requests the settings.
            case .failure(.refused(_, _, nil)): subjects.setLacksSettings(of: chat, true)
            case .failure(let error): try syncFailed(error, tx)
            }
        }
    }
}
