import Foundation
import TambourProtocol

/// Copies a photo, because the original may change or disappear before it is sent.
///
/// The photo is not scaled down, because the plain build has no image library. The task checks only
/// the size of the photo, and its kind by the first bytes.
struct KeepPhotoTask: QueuedTask {
    static let kind = "photo.keep"

    /// The path of the original.
    let source: String

    /// One copy at a time, so that the other slots of the scheduler stay free for text messages.
    var lane: String? { "photos.keep" }
    /// Requires no server, and therefore runs at once, even offline.
    var requires: TaskConditions { [] }

    func start(_ run: TaskRun, in core: ClientCore, _ tx: StoreTransaction) throws {
        guard let folder = core.photos.folder else {
            return try core.end(run, .never, "this account is not kept in a file", nil, tx)
        }
        core.photos.begin(.keep(source: source, path: folder.path(of: run.task)), for: run)
    }
}

/// Uploads the copy of a photo, so that a message can refer to it.
///
/// When the token of an upload has expired, the upload starts again from the first byte, in a new
/// `round`.
struct UploadPhotoTask: QueuedTask {
    static let kind = "photo.upload"

    /// The server has all bytes before this offset.
    var reached: Int64 = 0
    /// The `round` in which `reached` was stored. In another round, `reached` is ignored.
    var round = 0

    /// One upload at a time, so that the other slots of the scheduler stay free for text messages.
    var lane: String? { "photos" }

    func start(_ run: TaskRun, in core: ClientCore, _ tx: StoreTransaction) throws {
        let inputs = try core.tasks.inputs(of: run.task, tx)
        guard let record = try core.tasks.task(run.task, tx), let folder = core.photos.folder,
            let (keeper, output) = inputs.first,
            let file = try? JSONDecoder().decode(PhotoFile.self, from: Data(output))
        else {
            return try core.end(run, .never, "there is no photo to upload", nil, tx)
        }
        core.photos.begin(
            .upload(
                file,
                path: folder.path(of: keeper),
                key: record.requestKey,
                offset: round == record.round ? reached : 0
            ),
            for: run
        )
    }
}

/// Sends a message with a photo, after the upload of the photo.
struct SendPhotoTask: ClientTask {
    static let kind = "message.send.photo"

    let chat: Int64
    /// The idempotency key, by which the server recognises a retry.
    let cid: Int64
    /// The caption; may be empty.
    let text: String
    var replyTo: Int64?
    var isSilent = false
    /// The token of the upload for this run. It is not stored with the task, because the next run
    /// may use another token.
    var token: HeldPhotoToken?

    private enum CodingKeys: CodingKey { case chat, cid, text, replyTo, isSilent }

    var lane: String? { chatLane(ChatID(chat)) }
    var changedChat: ChatID? { ChatID(chat) }
    var staysWhenRefused: Bool { true }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        let shown = SendTask.Shown(text: text, elements: nil, replyTo: replyTo, hasPhoto: true)
        let now = core.environment.wallMs()
        try tx.addOverlay(.send, of: task, chat: ChatID(chat), cid: cid, atHereMs: now, shown)
    }

    func start(_ run: TaskRun, in core: ClientCore, _ tx: StoreTransaction) throws {
        var ready = self
        ready.token = try core.tasks.inputs(of: run.task, tx).values.first.flatMap {
            try? JSONDecoder().decode(HeldPhotoToken.self, from: Data($0))
        }
        try core.send(ready, run, tx)
    }

    func needsNewInput(atHereMs now: Int64) -> Bool { token.map { $0.untilHereMs <= now } ?? true }

    func request(_ tx: StoreTransaction) throws -> MsgSendRequest {
        guard let token else { throw ClientError.invalid(reason: "the photo is not uploaded") }
        let message = SendTask(
            chat: chat,
            cid: cid,
            text: text,
            replyTo: replyTo,
            isSilent: isSilent
        )
        var request = try message.request(tx)
        request.message.attaches = [NewAttach(type: .photo, photoToken: Text(token.token))]
        return request
    }

    func succeeded(_ reply: MsgSendReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.learnSent(reply, tx)
    }
}

extension SendTask.Shown {
    /// The message as one line, for lists.
    var line: String { hasPhoto == true ? Message.line(ofPhoto: text) : text }
}

extension Message {
    /// Returns one line for a photo with this caption.
    static func line(ofPhoto caption: String) -> String {
        caption.isEmpty ? photoText : "\(caption) \(photoText)"
    }
}
