import Foundation
package import TambourProtocol

/// Photos that are sent. Nothing of it is public before the server takes uploads: until then it
/// refuses every message with a photo.
extension Client {
    /// Sends a photo, as soon as it is uploaded; what is written behind it in the chat waits for it.
    ///
    /// What goes wrong on the way, a file that is no photo too, shows as the failure of the message, which
    /// can be retried or dropped. Public when the server takes uploads: `StandInUpload` carries nothing,
    /// and the server answers `error.message.invalid`.
    ///
    /// - Parameters:
    ///   - path: a JPEG, PNG, GIF or WebP of at most `PhotoFile.maxBytes`. The client that is connected
    ///     copies it at once; until then the file must stay where it is.
    ///   - caption: at most 4,000 UTF-16 units.
    /// - Returns: when it is stored here; it names the message until the server has it.
    @discardableResult
    package func sendPhoto(
        at path: String,
        caption: String = "",
        to chat: ChatID,
        replyingTo message: MessageID? = nil,
        isSilent: Bool = false
    ) async throws(ClientError) -> OutgoingID {
        try Self.requireRoom(for: caption)
        // Another process may do it, in another folder.
        let source = URL(filePath: path).standardizedFileURL.path
        return try await wish { core, tx in
            let task = SendPhotoTask(
                chat: chat.rawValue,
                cid: core.nextClientID(),
                text: caption,
                replyTo: message?.rawValue,
                isSilent: isSilent
            )
            return try core.queuePhoto(task, source: source, tx)
        }
    }
}
