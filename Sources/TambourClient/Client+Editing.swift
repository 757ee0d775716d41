public import TambourProtocol

/// Editing own messages.
extension Client {
    /// Replaces the text of an own message.
    ///
    /// - Parameter spans: the formatting and the mentions of the new text; nil keeps the formatting
    ///   of the unchanged parts. Mentions in the unchanged parts always stay.
    /// - Returns: the id of the queued action.
    @discardableResult
    public func edit(
        _ message: MessageID,
        in chat: ChatID,
        text: String,
        formatted spans: [MessageSpan]? = nil
    ) async throws(ClientError) -> OutgoingID {
        try Self.check(text)
        return try await wish { core, tx in
            try core.edit(message, in: chat, EditedText(text: text, spans: spans), tx)
        }
    }

    /// Replaces the text of an own message, sent or queued. A refused message is sent again.
    ///
    /// - Throws: `ClientError.invalid` when the message no longer exists, and for a queued photo or
    ///   forwarded message.
    public func edit(
        _ row: HistoryRow.ID,
        in chat: ChatID,
        text: String,
        formatted spans: [MessageSpan]? = nil
    ) async throws(ClientError) {
        guard case .own(let cid) = row else {
            guard case .message(let message) = row else { return }
            try await edit(message, in: chat, text: text, formatted: spans)
            return
        }
        try Self.check(text)
        try await wish { core, tx in
            let text = EditedText(text: text, spans: spans)
            let sent = try tx.userID().flatMap { try tx.ownMessage(cid: cid, in: chat, me: $0) }
            if let message = sent {
                try core.edit(message, in: chat, text, tx)
            } else {
                try core.rewrite(cid: cid, in: chat, text, tx)
            }
        }
    }
}

/// The new text of a message.
struct EditedText {
    let text: String
    /// The new formatting; nil keeps the old formatting.
    let spans: [MessageSpan]?

    /// Returns the formatting of the new text, given the old text and its formatting.
    func elements(insteadOf old: String, _ elements: [Element]) -> [Element] {
        let moved = TextChange(from: old, to: text).moved(elements)
        guard let spans else { return moved }
        // `spans` cannot express formatting that is unknown to this library. Such formatting
        // therefore stays, as mentions do.
        let kept = moved.filter { $0.style?.isMention ?? true }
        let named = kept.filter { $0.style != nil }.map(\.range)
        let new = spans.filter { span in
            !span.style.isMention || !named.contains { $0.overlaps(span.range) }
        }
        return kept + new.map(\.element)
    }
}

/// The single range in which two texts differ, in UTF-16 units.
struct TextChange: Equatable {
    /// The range of the old text that is replaced.
    let range: Range<Int>
    /// The difference in length: positive when the new text is longer.
    let shift: Int

    init(from old: String, to new: String) {
        let (old, new) = (Array(old.utf16), Array(new.utf16))
        let most = min(old.count, new.count)
        var head = 0
        while head < most, old[head] == new[head] { head += 1 }
        // Never split a surrogate pair.
        if head > 0, UTF16.isLeadSurrogate(old[head - 1]) { head -= 1 }
        var tail = 0
        while tail < most - head, old[old.count - tail - 1] == new[new.count - tail - 1] {
            tail += 1
        }
        if tail > 0, UTF16.isTrailSurrogate(old[old.count - tail]) { tail -= 1 }
        range = head..<old.count - tail
        shift = new.count - old.count
    }

    /// Moves formatting of the old text to its place in the new text.
    ///
    /// Replaced text loses its formatting. A mention whose text changed is dropped.
    func moved(_ elements: [Element]) -> [Element] {
        elements.compactMap { element in
            guard let moved = moved(element.range, isWhole: element.style?.isMention == true),
                !moved.isEmpty
            else { return nil }
            var new = element
            new.from = Int64(moved.lowerBound)
            new.length = Int64(moved.count)
            return new
        }
    }

    /// - Parameter isWhole: whether the element is dropped if any part of its text changes.
    private func moved(_ old: Range<Int>, isWhole: Bool) -> Range<Int>? {
        if old.upperBound <= range.lowerBound { return old }
        if old.lowerBound >= range.upperBound {
            return old.lowerBound + shift..<old.upperBound + shift
        }
        let isReplaced = range.lowerBound <= old.lowerBound && old.upperBound <= range.upperBound
        if isWhole || isReplaced { return nil }
        // The element begins before the change, ends after it, or both.
        let start = old.lowerBound < range.lowerBound ? old.lowerBound : range.upperBound + shift
        let end = old.upperBound > range.upperBound ? old.upperBound + shift : range.lowerBound
        return start <= end ? start..<end : nil
    }
}

extension Element {
    /// The range that the element formats, clamped so that an invalid range from the server causes
    /// no overflow.
    fileprivate var range: Range<Int> {
        let most = Int(Int32.max)
        let start = min(max(0, Int(clamping: from)), most)
        return start..<start + min(max(0, Int(clamping: length ?? 0)), most)
    }
}

extension ClientCore {
    /// Queues an edit of an own message that has reached the server.
    @discardableResult
    fileprivate func edit(
        _ message: MessageID,
        in chat: ChatID,
        _ text: EditedText,
        _ tx: StoreTransaction
    ) throws -> OutgoingID {
        let overlays = try tx.overlays(of: chat)
        let stored = try tx.message(message, in: chat)
        var elements = text.elements(
            insteadOf: stored.map { "\($0.text)" } ?? "",
            stored?.elements?.stored ?? []
        )
        if let waiting = overlays.edits[message] {
            let old = waiting.elements.flatMap { [Element](stored: $0) } ?? []
            elements = text.elements(insteadOf: waiting.text, old)
        }
        let place = try tx.place(of: chat)
        return try queue(
            EditTask(
                chat: place.chat.rawValue,
                post: place.post?.rawValue,
                message: message.rawValue,
                text: text.text,
                elements: elements.isEmpty ? nil : elements.storedBytes
            ),
            tx
        )
    }

    /// Changes the text of a queued message.
    fileprivate func rewrite(
        cid: Int64,
        in chat: ChatID,
        _ text: EditedText,
        _ tx: StoreTransaction
    ) throws {
        guard let id = try tx.taskSending(cid: cid, to: chat),
            let record = try tasks.task(id, tx)
        else {
            throw ClientError.invalid(reason: "the message is gone")
        }
        guard let old = TaskKinds.read(record) as? SendTask, old.forwardOf == nil else {
            throw ClientError.invalid(
                reason: "a photo, or what is forwarded, can be changed once it is sent"
            )
        }
        let elements = text.elements(
            insteadOf: old.text,
            old.elements.flatMap { [Element](stored: $0) } ?? []
        )
        let task = old.saying(
            text.text,
            elements.isEmpty ? nil : elements.storedBytes,
            mayBeSentAlready: record.runs > 0
        )
        try tasks.change(tx) { next in
            let changes = next.rewrite(id, payload: try TaskKinds.write(task))
            return try record.state.isFailed ? changes + next.retry(id) : changes
        }
        try tx.changeOverlay(.send, of: id, chat: chat, task.shown)
    }
}
