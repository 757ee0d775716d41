public import TambourProtocol

/// A message that the server sends at a later time.
public struct ScheduledMessage: Hashable, Sendable, Identifiable {
    public enum ID: Hashable, Sendable {
        /// A message that the server holds. It gets another id when it is sent.
        case message(MessageID)
        /// A message that waits for the server, or that the server refused to schedule.
        case queued(OutgoingID)
    }

    public enum State: Hashable, Sendable {
        /// The server sends the message at its time, even while this device is offline.
        case scheduled
        /// The message waits for the server. After its time, it is sent as soon as the server can
        /// be reached.
        case waiting
        /// The server refused to schedule the message. `reason` is text for the user.
        case refused(reason: String)
        /// The server could not send the message at its time, for example because the account may
        /// no longer write in the chat. A new time causes another attempt.
        case failed
    }

    public let id: ID
    public let text: String
    /// Formatting, in UTF-16 units of `text`.
    public let spans: [MessageSpan]
    /// The attachments, described in words.
    public let attachments: [String]
    /// The answered message.
    public let replyTo: MessageID?
    /// When the message is sent, in Unix milliseconds; nil for as soon as possible.
    public let timeMs: Int64?
    public let state: State
    /// Whether a change made on this device is queued or in flight.
    public let isChanging: Bool
}

/// Scheduled messages: messages that the server sends at a later time.
extension Client {
    /// The maximum number of scheduled messages in a chat.
    public static let mostScheduledInChat = Limits.standard.maxDelayedPerChat

    /// Schedules a message.
    ///
    /// The message waits until the server can be reached. If the message reaches the server after
    /// its time, the server sends the message at once. If it is then more than a minute late, the
    /// client publishes `ClientEvent.sentLate`.
    ///
    /// - Parameters:
    ///   - atMs: when to send the message, in Unix milliseconds.
    ///   - draft: as in `send` without the parameter `atMs`.
    /// - Throws: `ClientError.invalid` for a time that has passed or is more than a year away, for
    ///   a chat that the account is no longer in, and when the chat already has
    ///   `mostScheduledInChat` scheduled messages.
    @discardableResult
    public func send(
        _ text: String,
        to chat: ChatID,
        atMs: Int64,
        replyingTo message: MessageID? = nil,
        formatted spans: [MessageSpan] = [],
        isSilent: Bool = false,
        insteadOf draft: Draft = .empty
    ) async throws(ClientError) -> OutgoingID {
        try Self.check(text)
        return try await wish { core, tx in
            try tx.requireMembership(of: chat)
            try core.requireSchedulable(atMs)
            guard try Reader(tx).scheduled(in: chat).count < Self.mostScheduledInChat else {
                throw ClientError.invalid(
                    reason: "a chat has at most \(Self.mostScheduledInChat) scheduled messages"
                )
            }
            try core.discardDraft(draft, in: chat, tx)
            return try core.queue(
                ScheduleTask(
                    chat: chat.rawValue,
                    cid: core.nextClientID(),
                    text: text,
                    elements: spans.storedElements,
                    replyTo: message?.rawValue,
                    isSilent: isSilent,
                    atMs: atMs
                ),
                tx
            )
        }
    }

    /// Returns the scheduled messages of a chat from local storage, the next message to send first.
    ///
    /// While `look` reports the chat as shown, the client keeps the list up to date. Changes are
    /// announced in `ChangeSet.histories`.
    public func scheduled(in chat: ChatID) throws(ClientError) -> [ScheduledMessage] {
        try store.read { try Reader($0).scheduled(in: chat) }
    }

    /// Changes the text or the time of a scheduled message. A new time retries a message that the
    /// server could not send. Any change retries the scheduling of a refused message.
    ///
    /// - Parameters:
    ///   - text: the new text; nil keeps the text.
    ///   - spans: as in `edit`.
    ///   - atMs: the new time in Unix milliseconds; nil keeps the time.
    /// - Throws: `ClientError.invalid` for a time that `send` refuses, and for a message that is no
    ///   longer scheduled.
    public func changeScheduled(
        _ id: ScheduledMessage.ID,
        in chat: ChatID,
        text: String? = nil,
        formatted spans: [MessageSpan]? = nil,
        atMs: Int64? = nil
    ) async throws(ClientError) {
        if let text { try Self.check(text) }
        try await wish { core, tx in
            if let atMs { try core.requireSchedulable(atMs) }
            var change = ScheduledChange()
            change.text = text.map { EditedText(text: $0, spans: spans) }
            change.atMs = atMs
            try core.change(id, in: chat, change, tx)
        }
    }

    /// Sends a scheduled message now; offline, as soon as the server can be reached.
    ///
    /// - Throws: `ClientError.invalid` for a message that is no longer scheduled.
    public func sendScheduledNow(
        _ id: ScheduledMessage.ID,
        in chat: ChatID
    ) async throws(ClientError) {
        try await wish { core, tx in
            try core.change(id, in: chat, ScheduledChange(isNow: true), tx)
        }
    }

    /// Cancels a scheduled message, so that it is not sent. If the message was sent before the
    /// cancellation reached the server, the client publishes `ClientEvent.refused`.
    ///
    /// - Throws: `ClientError.invalid` for a message that is no longer scheduled.
    public func cancelScheduled(
        _ id: ScheduledMessage.ID,
        in chat: ChatID
    ) async throws(ClientError) {
        try await wish { core, tx in
            switch try core.place(of: id, in: chat, tx) {
            case .queued(let record): try core.cancel(OutgoingID(record.id.rawValue), tx)
            case .server(let message):
                let task = CancelScheduledTask(
                    chat: chat.rawValue,
                    message: message.id.rawValue
                )
                try core.queue(task, tx)
            }
        }
    }
}

/// A change of a scheduled message.
private struct ScheduledChange {
    var text: EditedText?
    var atMs: Int64?
    var isNow = false
}

extension ClientCore {
    /// Where a scheduled message is.
    fileprivate enum ScheduledPlace {
        case queued(TaskRecord)
        case server(Message)
    }

    /// - Throws: `ClientError.invalid` for a time that has passed or is too far away.
    fileprivate func requireSchedulable(_ atMs: Int64) throws {
        let now = environment.wallMs()
        guard atMs > now else {
            throw ClientError.invalid(reason: "this time has passed; name a later one")
        }
        guard atMs - now <= Limits.standard.maxDelayMs else {
            throw ClientError.invalid(
                reason: "a message can be scheduled at most a year ahead; name an earlier time"
            )
        }
    }

    /// Finds a scheduled message. After a queued message has reached the server, it is no longer
    /// found under its old id.
    ///
    /// - Throws: `ClientError.invalid` for a message that is no longer scheduled.
    fileprivate func place(
        of id: ScheduledMessage.ID,
        in chat: ChatID,
        _ tx: StoreTransaction
    ) throws -> ScheduledPlace {
        switch id {
        case .queued(let outgoing):
            if let record = try tasks.task(TaskID(outgoing.rawValue), tx) {
                return .queued(record)
            }
        case .message(let message):
            if let held = try tx.scheduledMessage(message, in: chat) { return .server(held) }
        }
        throw ClientError.invalid(reason: "this message is sent, or no longer scheduled")
    }

    fileprivate func change(
        _ id: ScheduledMessage.ID,
        in chat: ChatID,
        _ change: ScheduledChange,
        _ tx: StoreTransaction
    ) throws {
        switch try place(of: id, in: chat, tx) {
        case .queued(let record): try self.change(record, change, tx)
        case .server(let message): try self.change(message, in: chat, change, tx)
        }
    }

    private func change(
        _ record: TaskRecord,
        _ change: ScheduledChange,
        _ tx: StoreTransaction
    ) throws {
        guard var task = TaskKinds.read(record) as? ScheduleTask else { return }
        if let text = change.text {
            let old = task.elements.flatMap { [Element](stored: $0) } ?? []
            let elements = text.elements(insteadOf: task.text, old)
            task.text = text.text
            task.elements = elements.isEmpty ? nil : elements.storedBytes
        }
        if let atMs = change.isNow ? ScheduleTask.nowMs : change.atMs { task.atMs = atMs }
        if record.runs > 0 { task.hadOther = true }
        try rewrite(record, as: task, tx)
    }

    private func change(
        _ message: Message,
        in chat: ChatID,
        _ change: ScheduledChange,
        _ tx: StoreTransaction
    ) throws {
        var task = EditScheduledTask(chat: chat.rawValue, message: message.id.rawValue)
        // The new task replaces a queued task, so the new task must repeat the changes of the
        // queued task.
        for case (_, let queued as EditScheduledTask) in try tx.scheduling(in: chat)
        where queued.message == task.message {
            task = queued.merged(onto: task)
        }
        if let text = change.text {
            let elements = text.elements(
                insteadOf: task.text ?? "\(message.text)",
                task.text == nil
                    ? message.elements?.stored ?? []
                    : task.elements.flatMap { [Element](stored: $0) } ?? []
            )
            task.text = text.text
            task.elements = elements.isEmpty ? nil : elements.storedBytes
        }
        if change.isNow { task.isNow = true }
        if let atMs = change.atMs { (task.atMs, task.isNow) = (atMs, nil) }
        try queue(task, tx)
    }
}

extension EditScheduledTask {
    /// Returns the combination of an earlier change and this later change.
    fileprivate func merged(onto earlier: EditScheduledTask) -> EditScheduledTask {
        var merged = earlier
        if let text { (merged.text, merged.elements) = (text, elements) }
        if atMs != nil || isNow != nil { (merged.atMs, merged.isNow) = (atMs, isNow) }
        return merged
    }
}

extension Reader {
    /// Returns the scheduled messages of a chat, with this device's queued changes applied.
    func scheduled(in chat: ChatID) throws -> [ScheduledMessage] {
        var edits: [Int64: EditScheduledTask] = [:]
        var cancelled: Set<Int64> = []
        var waiting: [ScheduledMessage] = []
        for (record, task) in try store.scheduling(in: chat) {
            switch task {
            case let task as ScheduleTask where task.isUnwanted != true:
                waiting.append(scheduled(task, record))
            case let task as EditScheduledTask:
                let earlier =
                    edits[task.message] ?? EditScheduledTask(chat: task.chat, message: task.message)
                edits[task.message] = task.merged(onto: earlier)
            case let task as CancelScheduledTask: cancelled.insert(task.message)
            default: break
            }
        }
        let failedMs = try store.scheduledList(of: chat)?.failedMs ?? 0
        let passedMs: Int64 = try store.value(of: .chatsMark) ?? 0
        let held = try store.scheduledMessages(in: chat)
            .filter { !cancelled.contains($0.id.rawValue) }
            .map { scheduled($0, edits[$0.id.rawValue], failedMs, passedMs) }
        return (held + waiting).sorted { ($0.timeMs ?? 0) < ($1.timeMs ?? 0) }
    }

    private func scheduled(_ task: ScheduleTask, _ record: TaskRecord) -> ScheduledMessage {
        let elements = task.elements.flatMap { [Element](stored: $0) } ?? []
        return ScheduledMessage(
            id: .queued(OutgoingID(record.id.rawValue)),
            text: task.text,
            spans: MessageSpan.all(of: elements, length: task.text.utf16.count),
            attachments: [],
            replyTo: task.replyTo.map(MessageID.init),
            timeMs: task.atMs == ScheduleTask.nowMs ? nil : task.atMs,
            state: record.refusal.map { .refused(reason: $0) } ?? .waiting,
            isChanging: false
        )
    }

    /// - Parameters:
    ///   - failedMs: the time of the last failure to send a message of the list. Messages that were
    ///     due by then have failed.
    ///   - passedMs: a time that the server's clock has reached.
    private func scheduled(
        _ message: Message,
        _ edit: EditScheduledTask?,
        _ failedMs: Int64,
        _ passedMs: Int64
    ) -> ScheduledMessage {
        var spans = message.shownSpans
        if let text = edit?.text {
            let elements = edit?.elements.flatMap { [Element](stored: $0) } ?? []
            spans = MessageSpan.all(of: elements, length: text.utf16.count)
        }
        let time = message.delayedAttributes?.timeToFire ?? message.time
        let hasNewTime = edit?.atMs != nil || edit?.isNow == true
        let isNow = edit?.isNow == true || failedMs < time && time <= passedMs
        return ScheduledMessage(
            id: .message(message.id),
            text: edit?.text ?? "\(message.text)",
            spans: spans,
            attachments: message.attachmentTexts(name: name),
            replyTo: message.link?.stored.flatMap { $0.type == .reply ? $0.message.id : nil },
            timeMs: edit?.atMs ?? (isNow ? nil : time),
            state: time <= failedMs && !hasNewTime ? .failed : .scheduled,
            isChanging: edit != nil
        )
    }
}
