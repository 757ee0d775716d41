import TambourProtocol
import TambourStore

/// Limits the size of a message, so that every stored message fits every reply and push that can
/// carry it.
///
/// A message embeds at most one other message, without that message's own link. Twice the content
/// of a message, with reactions, stays below `maxMessageBytes`. Later additions must fit too: the
/// limit reserves room for reactions, and a new poll counts with all its possible votes.
enum MessageSizeRules {
    /// - Parameters:
    ///   - poll: the mark of the poll among the attachments, if any.
    ///   - path: the field of the request that an error names.
    /// - Throws: `proto.payload` when text, elements and attachments exceed
    ///   `maxMessageContentBytes`, or would exceed it with the most votes that the poll can show.
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
    /// - Throws: `error.message.invalid` for a forward that leaves no room for the message's own
    ///   content.
    static func requireFits(forward: Packed<MessageLink>, limits: Limits) throws {
        let most = limits.maxMessageBytes - limits.maxMessageContentBytes
        guard forward.bytes.count <= most else {
            throw RequestError.errorMessageInvalid(
                "/message/link: the message to forward takes \(forward.bytes.count) bytes, limit \(most)"
            )
        }
    }
}
