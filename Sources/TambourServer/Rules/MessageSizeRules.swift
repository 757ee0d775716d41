import TambourProtocol
import TambourStore

/// How large a message may be: what is stored fits every reply and push that can carry it.
///
/// A message embeds at most one other, without the link of that one. So twice the content of a message,
/// with reactions and votes, stays below `maxMessageBytes`.
enum MessageSizeRules {
    /// - Parameter path: the field of the request that an error names.
    /// - Throws: `proto.payload` when text, elements and attachments exceed `maxMessageContentBytes`.
    static func requireFits(
        text: Text,
        elements: Packed<[Element]>?,
        attaches: Packed<[Attach]>? = nil,
        limits: Limits,
        at path: String
    ) throws {
        let bytes =
            text.bytes.count + (elements?.bytes.count ?? 0) + (attaches?.bytes.count ?? 0)
        guard bytes <= limits.maxMessageContentBytes else {
            throw RequestError.protoPayload(
                "\(path): text, elements and attachments take \(bytes) bytes, "
                    + "limit \(limits.maxMessageContentBytes)"
            )
        }
    }

    /// An older store may hold a message that is too large to be embedded.
    ///
    /// - Throws: `error.message.invalid` for a forward that leaves no room for content beside it.
    static func requireFits(forward: Packed<MessageLink>, limits: Limits) throws {
        let most = limits.maxMessageBytes - limits.maxMessageContentBytes
        guard forward.bytes.count <= most else {
            throw RequestError.errorMessageInvalid(
                "/message/link: the message to forward takes \(forward.bytes.count) bytes, limit \(most)"
            )
        }
    }
}
