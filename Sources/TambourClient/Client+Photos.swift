import Foundation
package import TambourProtocol

/// Sending photos. Nothing here is public before the server accepts uploads: until then it refuses
/// every message with a photo.
extension Client {
    /// Sends a photo as soon as it is uploaded. Later messages in the chat wait for it.
    ///
    /// Errors, such as a file that is not a photo, show as the failure of the message, which can be
    /// retried or dropped. This becomes public when the server accepts uploads: `StandInUpload`
    /// uploads nothing, and the server answers `error.message.invalid`.
    ///
    /// - Parameters:
    ///   - path: a JPEG, PNG, GIF or WebP of at most `PhotoFile.maxBytes`. The client that is
    ///     connected copies it at once; until then the file must stay where it is.
    ///   - caption: at most 4,000 UTF-16 units.
    /// - Returns: an id for the message until the server has it. The message is stored here by
    ///   then.
    @discardableResult
    package func sendPhoto(
        at path: String,
        caption: String = "",
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        isSilent: Bool = false
    ) async throws(ClientError) -> OutgoingID {
        try Self.requireRoom(for: caption)
        // Another process, in another working directory, may do the upload.
        let source = URL(filePath: path).standardizedFileURL.path
        return try await wish { core, tx in
            let task = SendPhotoTask(
                chat: chat.rawValue,
                cid: core.nextClientID(),
                text: caption,
                replyTo: message?.rawValue,
                isSilent: isSilent
            )
            return try core.photos.queue(task, source: source, tx)
        }
    }
}
