import Foundation
package import TambourProtocol

/// Sending photos. The server does not accept uploads yet and refuses every message with a photo.
/// These calls are therefore not public.
extension Client {
    /// Uploads a photo, then sends a message with it. Later messages in the chat wait for the
    /// photo.
    ///
    /// Errors, such as a file that is not a photo, appear as the failure of the message. The user
    /// can retry or discard the message. This call becomes public when the server accepts uploads:
    /// today `StandInUpload` uploads nothing, and the server answers `error.message.invalid`.
    ///
    /// - Parameters:
    ///   - path: a JPEG, PNG, GIF or WebP of at most `PhotoFile.maxBytes`. The file must stay in
    ///     place until the connected client has copied it.
    ///   - caption: at most 4,000 UTF-16 units.
    /// - Returns: an id for the message until the server assigns one. The message is already stored
    ///   when the call returns.
    @discardableResult
    package func sendPhoto(
        at path: String,
        caption: String = "",
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        isSilent: Bool = false
    ) async throws(ClientError) -> OutgoingID {
        try Self.requireRoom(for: caption)
        // Store an absolute path, because another process with another working directory may upload
        // the file.
        let source = URL(filePath: path).standardizedFileURL.path
        return try await wish { core, tx in
            try tx.requireNoComments(chat, "a comment cannot have a photo yet")
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
