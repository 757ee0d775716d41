import TambourProtocol

extension MessageRecord {
    /// The size of the message's own content in bytes, without the answered or forwarded message.
    private var contentBytes: Int {
        text.bytes.count + (elements?.bytes.count ?? 0) + (attaches?.bytes.count ?? 0)
    }

    /// Returns the message as readers receive it, without the parts that exceed the limits.
    ///
    /// Older servers stored larger messages. The rows of these messages stay unchanged, so the
    /// operator can still read them. Readers receive the text and all parts that fit. Parts are
    /// omitted in this order until the rest fits: poll votes, attributes of the formatting,
    /// formatting, attachments from the last to the first. The content of a forwarded message has
    /// its own limit.
    func fitting(_ limits: Limits) -> MessageRecord {
        let limit = limits.maxMessageContentBytes
        let forwardLimit = limits.maxMessageBytes - limit
        guard contentBytes > limit || forward?.bytes.count ?? 0 > forwardLimit else { return self }
        var record = self
        if record.contentBytes > limit, poll != nil { record.attaches = attaches?.withoutVotes }
        if record.contentBytes > limit { record.elements = elements?.withoutAttributes }
        if record.contentBytes > limit { record.elements = nil }
        if record.contentBytes > limit, let stored = record.attaches?.stored {
            var kept = stored[...]
            while record.contentBytes > limit, !kept.isEmpty {
                kept.removeLast()
                record.attaches = kept.isEmpty ? nil : Packed(Array(kept))
            }
            // Readers find the votes through the attachment of the poll. Without this attachment,
            // the message has no poll.
            if !kept.contains(where: { $0.type == .poll }) { record.poll = nil }
        }
        func fits(_ link: Packed<MessageLink>?) -> Bool { link?.bytes.count ?? 0 <= forwardLimit }
        if !fits(record.forward) { record.forward = forward?.withoutAttributes }
        if !fits(record.forward) { record.forward = forward?.textAlone }
        if !fits(record.forward) { record.forward = nil }
        return record
    }
}

extension Packed<MessageLink> {
    /// The link without the attributes of the formatting in its message; nil if the bytes are not a
    /// link.
    fileprivate var withoutAttributes: Self? {
        changed { $0.elements = $0.elements?.withoutAttributes }
    }

    /// The link with only the text of the message in it; nil if the bytes are not a link.
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
    /// The formatting without its attributes, which have no size limit; nil if the bytes are not
    /// formatting.
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

extension Packed<[Attach]> {
    /// The attachments without the voters of the poll; nil if the bytes are not attachments.
    fileprivate var withoutVotes: Self? {
        guard var attaches = stored else { return nil }
        for index in attaches.indices {
            guard var state = attaches[index].state else { continue }
            state.voterPreviewIDs = []
            state.result = state.result?.map { result in
                var result = result
                result.votes = []
                return result
            }
            attaches[index].state = state
        }
        return Packed(attaches)
    }
}
