import TambourProtocol

/// Saves a draft for the account's other devices. A draft that the server refuses stays on this
/// device.
struct SaveDraftTask: ClientTask {
    static let kind = "draft.save"

    let chat: Int64
    let text: String
    var replyTo: Int64?

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }
    // The client can discard a draft only if it knows whether the server has saved the draft.
    var mustBeAnswered: Bool { true }
    // A refused draft stays on this device, so there is nothing to report.
    var tellsRefusal: Bool { false }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.putDraft(text, replyTo: replyTo.map(MessageID.init), in: ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftSaveRequest {
        let replyTo = replyTo.map(MessageID.init)
        try tx.noteSentDraft(text, replyTo: replyTo, in: ChatID(chat))
        let draft = NewDraft(text: Text(text), replyTo: replyTo)
        return DraftSaveRequest(chatID: ChatID(chat), draft: draft)
    }

    func succeeded(_ reply: DraftSaveReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        let subject = Subject.draft(ChatID(chat))
        let isCurrent = core.isCurrent(subject, since: core.tasks.asked.transactions, tx)
        try tx.noteSavedDraft(
            text,
            replyTo: replyTo.map(MessageID.init),
            timeMs: reply.time,
            in: ChatID(chat)
        )
        tx.learned.insert(subject)
        if !isCurrent { try core.askAnew(subject, tx) }
    }

    func ended(in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.showDraft(of: ChatID(chat))
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        // The refusal may mean that the account is no longer in the group. The refresh finds out.
        if ChatID(chat).isGroup { try core.refresh(ChatID(chat), tx) }
    }
}

/// Discards a draft that the user deleted or sent.
struct DiscardDraftTask: ClientTask {
    static let kind = "draft.discard"

    let chat: Int64
    /// The time up to which drafts are discarded; 0 for any draft. Set only in tasks queued before
    /// the table `draft_saved` existed.
    var time: Int64?

    var lane: String? { draftLane(ChatID(chat)) }
    var coalescingKey: String? { "draft" }
    // After a refusal, the server's draft is shown again.
    var tellsRefusal: Bool { false }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.hideDraft(of: ChatID(chat))
    }

    func request(_ tx: StoreTransaction) throws -> DraftDiscardRequest {
        // Only a draft that this device has shown or sent is discarded, not an unseen draft from
        // another device.
        let meant = try tx.timeOfOwnSavedDraft(in: ChatID(chat))
        // Without such a draft, the time is 1. Every draft is later, so the server discards
        // nothing.
        return DraftDiscardRequest(chatID: ChatID(chat), time: meant ?? time ?? 1)
    }

    func succeeded(_ reply: DraftDiscardReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learn(.draft(ChatID(chat)), tx) {
            try tx.noteDiscardedDraft(in: ChatID(chat))
        }
    }

    func ended(in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.showDraft(of: ChatID(chat))
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try tx.showDraft(of: ChatID(chat))
    }
}

/// The lane of tasks that change a chat's draft.
func draftLane(_ chat: ChatID) -> String { "draft:\(chat)" }
