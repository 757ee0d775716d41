import Foundation
import TambourProtocol

/// Sends a message at a later time. The server keeps the message until then.
struct ScheduleTask: ClientTask {
    static let kind = "message.schedule"
    /// The value of `atMs` for a message to send as soon as the server can be reached.
    static let nowMs: Int64 = 1
    /// The longest delay after the planned time for which the client publishes no
    /// `ClientEvent.sentLate`.
    private static let toleranceMs: Int64 = 60_000

    let chat: Int64
    /// The idempotency key, by which the server recognises a retry.
    let cid: Int64
    var text: String
    var elements: Data?
    var replyTo: Int64?
    var isSilent = false
    /// When the server sends the message, in Unix milliseconds.
    var atMs: Int64
    /// Set if the text or the time was changed when the server might already have received the
    /// earlier version.
    var hadOther: Bool?
    /// Set if the message was cancelled when the server might already have received it.
    var isUnwanted: Bool?

    var lane: String? { chatLane(ChatID(chat)) }
    var staysWhenRefused: Bool { isUnwanted != true }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.showScheduling(task, in: ChatID(chat), cid: cid, tx)
    }

    func request(_ tx: StoreTransaction) throws -> MsgSendRequest {
        let send = SendTask(
            chat: chat,
            cid: cid,
            text: text,
            elements: elements,
            replyTo: replyTo,
            isSilent: isSilent
        )
        var request = try send.request(tx)
        request.message.delayedAttributes = DelayedAttributes(
            timeToFire: atMs,
            notifyOpponents: !isSilent
        )
        return request
    }

    func succeeded(_ reply: MsgSendReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        // If another device has cancelled the message after an earlier attempt, ignore the reply.
        guard reply.message.status != .removed else { return }
        let isOther = hadOther == true && "\(reply.message.text)" != text
        guard let planned = reply.message.delayedAttributes else {
            return try sent(reply, isOther: isOther, in: core, tx)
        }
        try core.learnScheduled(reply.message, in: reply.chatID, tx)
        if isUnwanted == true {
            let message = reply.message.id.rawValue
            try core.queue(CancelScheduledTask(chat: chat, message: message), tx)
        } else if isOther || planned.timeToFire != atMs {
            var edit = EditScheduledTask(chat: chat, message: reply.message.id.rawValue)
            if isOther { (edit.text, edit.elements) = (text, elements) }
            if atMs == Self.nowMs {
                edit.isNow = true
            } else if planned.timeToFire != atMs {
                edit.atMs = atMs
            }
            try core.queue(edit, tx)
        }
    }

    /// Handles a message that the server has already sent. Either the message reached the server
    /// after its planned time, or an earlier reply was lost and the planned time passed before this
    /// retry.
    private func sent(
        _ reply: MsgSendReply,
        isOther: Bool,
        in core: ClientCore,
        _ tx: StoreTransaction
    ) throws {
        try core.learnSent(reply, tx)
        try core.noteChanged(reply.chatID, tx)
        if isUnwanted == true {
            core.publish(.refused("The message was sent before its cancellation arrived"))
        } else if isOther {
            let message = reply.message.id.rawValue
            let edit = EditTask(chat: chat, message: message, text: text, elements: elements)
            try core.queue(edit, tx)
        } else if atMs != Self.nowMs, reply.message.time > atMs + Self.toleranceMs {
            core.publish(.sentLate(reply.chatID, plannedMs: atMs))
        }
    }
}

/// Changes a scheduled message that the server has.
struct EditScheduledTask: ClientTask {
    static let kind = "message.schedule.edit"

    let chat: Int64
    let message: Int64
    /// The new text; nil keeps the current text and its formatting.
    var text: String?
    var elements: Data?
    /// The new time in Unix milliseconds; nil keeps the current time.
    var atMs: Int64?
    /// Whether the message is sent at once.
    var isNow: Bool?

    var lane: String? { chatLane(ChatID(chat)) }
    var coalescingKey: String? { "later:\(message)" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.showScheduling(task, in: ChatID(chat), tx)
    }

    func request(_ tx: StoreTransaction) throws -> MsgEditRequest {
        var time = atMs
        if isNow == true {
            // Use a time that is past on the server's clock, but later than the last failure. A
            // message with an earlier time would count as a message that could not be sent.
            let failedMs = try tx.scheduledList(of: ChatID(chat))?.failedMs ?? 0
            time = max(failedMs + 1, try tx.value(of: .chatsMark) ?? 0)
        }
        let known = try tx.scheduledMessage(MessageID(message), in: ChatID(chat))
        let isLoud = known?.delayedAttributes?.notifyOpponents ?? true
        return MsgEditRequest(
            chatID: ChatID(chat),
            messageID: MessageID(message),
            text: text.map { Text($0) },
            elements: text == nil
                ? nil : elements.flatMap { [Element](stored: $0) } ?? [],
            delayedAttributes: time.map {
                DelayedAttributes(timeToFire: $0, notifyOpponents: isLoud)
            }
        )
    }

    func succeeded(_ reply: MsgEditReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learnScheduled(reply.message, in: ChatID(chat), tx)
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.askAnew(.scheduled(ChatID(chat)), tx)
    }

    func words(for error: ClientError, _ tx: StoreTransaction) -> String {
        guard error.code == .notFound else { return "\(error)" }
        return "The scheduled message was sent or cancelled before your change arrived"
    }
}

/// Cancels a scheduled message that the server has.
struct CancelScheduledTask: ClientTask {
    static let kind = "message.schedule.cancel"

    let chat: Int64
    let message: Int64

    var lane: String? { chatLane(ChatID(chat)) }
    var coalescingKey: String? { "later:\(message)" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.showScheduling(task, in: ChatID(chat), tx)
    }

    func request(_ tx: StoreTransaction) throws -> MsgDeleteRequest {
        MsgDeleteRequest(
            chatID: ChatID(chat),
            messageIDs: [MessageID(message)],
            itemType: .delayed
        )
    }

    func succeeded(_ reply: MsgDeleteReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learn(.scheduled(ChatID(chat)), tx) {
            try tx.removeScheduled([MessageID(message)], in: ChatID(chat))
        }
        if reply.failedMessageIDs?.isEmpty == false {
            core.publish(.refused("The message was sent before its cancellation arrived"))
        }
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.askAnew(.scheduled(ChatID(chat)), tx)
    }
}

extension StoreReading {
    /// Returns the unfinished tasks about scheduled messages of a chat, oldest first.
    func scheduling(in chat: ChatID) throws -> [(record: TaskRecord, task: any QueuedTask)] {
        try unfinishedTasks(inLane: chatLane(chat)).compactMap { record in
            switch record.kind {
            case ScheduleTask.kind, EditScheduledTask.kind, CancelScheduledTask.kind:
                TaskKinds.read(record).map { (record, $0) }
            default: nil
            }
        }
    }
}
