import TambourProtocol

/// The lists of scheduled messages. The client fetches a list when its chat is on a screen, or when
/// the server could not send one of its messages.
extension ClientCore {
    /// How far in the future an unwanted message is rescheduled. The server must not send the
    /// message before it is cancelled.
    private static let putOffMs: Int64 = 300 * 86_400_000

    /// Shows a queued change of the scheduled messages of a chat.
    func showScheduling(
        _ task: TaskID,
        in chat: ChatID,
        cid: Int64? = nil,
        _ tx: StoreTransaction
    ) throws {
        let now = environment.wallMs()
        // The change itself is read from the task.
        try tx.addOverlay(.scheduled, of: task, chat: chat, cid: cid, atHereMs: now, [String]())
    }

    /// Stores a scheduled message from the reply to the task that has just ended.
    func learnScheduled(_ message: Message, in chat: ChatID, _ tx: StoreTransaction) throws {
        try learn(.scheduled(chat), tx) { try tx.putScheduled(message, in: chat) }
    }

    /// Applies a push about the scheduled messages of a chat.
    func scheduled(_ push: NotifMsgDelayed, _ tx: StoreTransaction) throws {
        // A listed chat has scheduled messages only if its description says so. A dialog that has
        // not begun has no description, so its list may lack changes.
        let wasStale =
            try tx.scheduledList(of: push.chatID)?.isStale ?? !tx.isListed(push.chatID)
        if let message = push.message { try tx.putScheduled(message, in: push.chatID) }
        if let gone = push.messageIDs { try tx.removeScheduled(gone, in: push.chatID) }
        try noteScheduled(
            in: push.chatID,
            changedMs: push.lastDelayedUpdateTime,
            failedMs: push.lastFireDelayedErrorTime ?? 0,
            tx
        )
        if !wasStale {
            try tx.settleScheduled(in: push.chatID, upToMs: push.lastDelayedUpdateTime)
        }
        tx.learned.insert(.scheduled(push.chatID))
    }

    /// Stores what a description of a chat says about its scheduled messages. Tells the user if the
    /// server reports a new failure to send a message.
    ///
    /// - Returns: whether the server reports a new failure.
    @discardableResult
    func noteScheduled(
        in chat: ChatID,
        changedMs: Int64,
        failedMs: Int64,
        _ tx: StoreTransaction
    ) throws -> Bool {
        guard try tx.noteScheduled(in: chat, changedMs: changedMs, failedMs: failedMs) else {
            return false
        }
        publish(.scheduledFailed(chat))
        return true
    }

    /// Requests the scheduled messages of a chat, if the stored list may lack changes.
    func readScheduled(of chat: ChatID, _ tx: StoreTransaction) throws {
        guard !wire.requests.isOpen(.scheduled(chat)) else { return }
        var known = try tx.scheduledList(of: chat)
        if known == nil, !chat.isGroup, try !tx.isListed(chat) {
            // No login describes a dialog that has not begun.
            try tx.doubtScheduled(in: chat)
            known = try tx.scheduledList(of: chat)
        }
        guard let known, known.isStale else { return }
        let asked = subjects.transactions
        let request = ChatHistoryRequest(chatID: chat, itemType: .delayed)
        call(request, as: .scheduled(chat)) { [self] answer, tx in
            switch answer {
            case .success(let reply):
                if isCurrent(.scheduled(chat), since: asked, tx) {
                    try tx.putScheduled(all: reply.messages ?? [], in: chat)
                    try tx.settleScheduled(in: chat, upToMs: known.changedMs)
                }
                try readScheduled(of: chat, tx)
            // The account is not in the chat.
            case .failure(.refused(_, _, nil)):
                try tx.settleScheduled(in: chat, upToMs: known.changedMs)
            case .failure(let error): try syncFailed(error, tx)
            }
        }
    }

    /// Cancels a queued message that may have reached the server although no reply arrived.
    ///
    /// The client does not know the id of such a message. To learn the id, it schedules the message
    /// once more, far in the future. Then it cancels the message.
    /// - Returns: false for other tasks, which can be cancelled at once.
    func withdraw(_ record: TaskRecord, _ tx: StoreTransaction) throws -> Bool {
        guard record.runs > 0, !record.state.isFailed,
            var task = TaskKinds.read(record) as? ScheduleTask, task.isUnwanted != true
        else { return false }
        task.isUnwanted = true
        task.atMs = environment.wallMs() + Self.putOffMs
        try rewrite(record, as: task, tx)
        return true
    }

    /// Changes a queued message that is to be scheduled. If the message was refused, retries it.
    func rewrite(_ record: TaskRecord, as task: ScheduleTask, _ tx: StoreTransaction) throws {
        let payload = try TaskKinds.write(task)
        try tasks.change(tx) { next in
            let changes = next.rewrite(record.id, payload: payload)
            return try record.state.isFailed ? changes + next.retry(record.id) : changes
        }
        tx.changes.histories.insert(ChatID(task.chat))
        tx.changes.chats.insert(ChatID(task.chat))
    }
}
