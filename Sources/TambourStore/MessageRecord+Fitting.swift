import TambourProtocol

extension MessageRecord {
    /// The bytes of what a message carries itself; what it answers is not counted.
    var contentBytes: Int {
        text.bytes.count + (elements?.bytes.count ?? 0) + (attaches?.bytes.count ?? 0)
            + (forward?.bytes.count ?? 0)
    }

    /// The message as it is served: as stored, or without what does not fit.
    ///
    /// An older server stored larger messages. Their rows stay as they are, for the operator to look at; their
    /// readers get the text, and of the rest what fits: first the attributes of formatting are left out, then
    /// formatting, attachments from the last one on, and what a forward carries.
    func fitting(_ limit: Int) -> MessageRecord {
        guard contentBytes > limit else { return self }
        var record = self
        record.elements = elements?.withoutAttributes
        record.forward = forward?.withoutAttributes
        if record.contentBytes > limit { record.elements = nil }
        if record.contentBytes > limit, let stored = attaches?.stored {
            var kept = stored[...]
            while record.contentBytes > limit, !kept.isEmpty {
                kept.removeLast()
                record.attaches = kept.isEmpty ? nil : Packed(Array(kept))
            }
            // Votes are found by the poll's attachment.
            if !kept.contains(where: { $0.type == .poll }) { record.poll = nil }
        }
        if record.contentBytes > limit { record.forward = forward?.textAlone }
        if record.contentBytes > limit { record.forward = nil }
        return record
    }
}

extension Packed<MessageLink> {
    /// The link whose message has formatting without attributes; nil when the bytes are not a link.
    fileprivate var withoutAttributes: Self? {
        changed { $0.elements = $0.elements?.withoutAttributes }
    }

    /// The link whose message has its text and nothing else.
    fileprivate var textAlone: Self? {
        changed {
            $0.elements = nil
            $0.attaches = Packed<[Attach]>([])
            $0.link = nil
        }
    }

    private func changed(_ change: (inout Message) -> Void) -> Self? {
        guard var link = stored else { return nil }
        change(&link.message)
        return Packed(link)
    }
}

extension Packed<[Element]> {
    /// Formatting without what may have any size; nil when the bytes are not formatting.
    fileprivate var withoutAttributes: Self? {
        guard let elements = stored else { return nil }
        return Packed(
            elements.map { element in
                var plain = element
                plain.attributes = nil
                return plain
            }
        )
    }
}
