import TambourProtocol
import TambourStore

/// Limits the size of a message. Every stored message must fit the replies and pushes that can
/// contain it.
///
/// A message contains at most one other message, and the contained message has no link of its own.
/// The content of two messages with their reactions stays below `maxMessageBytes`. Later additions
/// must also fit. The limit therefore reserves room for reactions, and counts a new poll with all
/// its possible votes.
enum MessageSizeRules {
    /// - Parameters:
    ///   - poll: the mark of the poll among the attachments; nil if there is no poll.
    ///   - path: the path of the request's field, for errors.
    /// - Throws: `proto.payload` when text, elements and attachments exceed
    ///   `maxMessageContentBytes`. A poll counts with the largest number of votes that it can show.
    static func requireFits(
        text: Text,
        elements: Packed<[Element]>?,
        attaches: Packed<[Attach]>? = nil,
        poll: PollMark? = nil,
        limits: Limits,
        at path: String
    ) throws {
        let grown =
            poll == nil
            ? attaches : attaches.map { withAllVotes($0, limits) }
        let bytes = text.bytes.count + (elements?.bytes.count ?? 0) + (grown?.bytes.count ?? 0)
        guard bytes <= limits.maxMessageContentBytes else {
            throw RequestError.protoPayload(
                "\(path): text, elements and attachments take \(bytes) bytes, "
                    + "limit \(limits.maxMessageContentBytes)"
            )
        }
    }

    private static func withAllVotes(
        _ attaches: Packed<[Attach]>,
        _ limits: Limits
    ) -> Packed<[Attach]> {
        guard var list = attaches.stored, let place = list.firstIndex(where: { $0.type == .poll })
        else { return attaches }
        list[place] = PollRules.fullest(list[place], limits: limits)
        return Packed(list)
    }

    /// Limits the size of a forwarded message, because an older store may contain messages that are
    /// too large to be embedded.
    ///
    /// - Throws: `error.message.invalid` if the forwarded message leaves too little room for the
    ///   content of the new message.
    static func requireFits(forward: Packed<MessageLink>, limits: Limits) throws {
        let most = limits.maxMessageBytes - limits.maxMessageContentBytes
        guard forward.bytes.count <= most else {
            throw RequestError.errorMessageInvalid(
                "/message/link: the message to forward takes \(forward.bytes.count) bytes, limit \(most)"
            )
        }
    }
}
