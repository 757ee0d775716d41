import GRDB
import TambourProtocol

@testable import TambourClient

/// Photos that devices send, and a fake upload server.
///
/// The server does not accept photos yet: it refuses each message that names one.
struct Photos {
    struct Sent {
        let device: Int
        let chat: ChatID
        let task: OutgoingID
        let caption: String
        var isCancelled = false
    }

    private struct Upload {
        let token: String
        let untilMs: Int64
    }

    var sent: [Sent] = []
    private var captions: [String] = []
    private var livesMs: [Int64] = []
    /// The numbers of uploaded bytes, and the finished uploads, by upload key.
    private var held: [String: Int64] = [:]
    private var uploads: [String: Upload] = [:]
    /// The upload keys of each photo, by photo number.
    private var keys: [Int: [String]] = [:]
    private var toldKeys: [Int: String] = [:]
    /// The client ids under which photos were sent, by caption.
    private var named: [String: Int64] = [:]

    /// Adds a photo whose uploads expire after `lifeMs`.
    mutating func add(_ caption: String, lifeMs: Int64) -> Int {
        captions.append(caption)
        livesMs.append(lifeMs)
        return captions.count - 1
    }

    func source(of number: Int) -> String { "photo \(number)" }

    func number(ofSource source: String) -> Int? {
        captions.indices.first { self.source(of: $0) == source }
    }

    /// Returns a photo file whose size identifies the photo.
    func file(of number: Int) -> PhotoFile { PhotoFile(kind: .jpeg, bytes: Int64(1000 + number)) }

    private func number(of file: PhotoFile) -> Int { Int(file.bytes) - 1000 }

    func held(of key: String) -> Int64 { held[key] ?? 0 }

    mutating func hold(_ reached: Int64, of key: String) {
        held[key] = max(reached, held(of: key))
    }

    /// Returns the token of a fully uploaded photo; the same key always gives the same token.
    mutating func token(of file: PhotoFile, key: String, nowMs: Int64) -> PhotoToken {
        let number = number(of: file)
        if uploads[key] == nil {
            let count = keys[number, default: []].count
            keys[number, default: []].append(key)
            // The fourth upload does not expire, so that every play comes to rest.
            let lifeMs = count < 3 ? livesMs[number] : 3_600_000
            uploads[key] = Upload(token: "photo \(number) \(count)", untilMs: nowMs + lifeMs)
        }
        let upload = uploads[key] ?? Upload(token: "", untilMs: 0)
        return PhotoToken(upload.token, goodFor: .milliseconds(max(0, upload.untilMs - nowMs)))
    }

    func uploads(of file: PhotoFile) -> Int { keys[number(of: file)]?.count ?? 0 }

    /// Records that a device has received the photo's token.
    mutating func told(_ key: String, of file: PhotoFile) { toldKeys[number(of: file)] = key }

    /// Returns whether the earlier upload of a photo has expired when the device starts an upload
    /// under a new key. Returns nil if there is no earlier upload, or if the key is the same.
    func isRenewed(_ key: String, of file: PhotoFile, nowMs: Int64) -> Bool? {
        guard let told = toldKeys[number(of: file)], told != key else { return nil }
        return uploads[told].map { $0.untilMs <= nowMs } ?? false
    }

    func isNamed(_ caption: String) -> Bool { named[caption] != nil }

    /// Records that a message names a photo.
    ///
    /// - Returns: A description of the violation, if any.
    mutating func name(_ token: String, by caption: String, cid: Int64) -> String? {
        guard let upload = uploads.first(where: { $0.value.token == token }) else {
            return "\(caption) names \(token), which nothing was uploaded as"
        }
        guard let number = captions.firstIndex(of: caption),
            keys[number]?.contains(upload.key) == true
        else {
            return "\(caption) names \(token), which is another photo"
        }
        if let other = named.updateValue(cid, forKey: caption), other != cid {
            return "\(caption) is sent as \(other) and as \(cid)"
        }
        return nil
    }
}

extension World {
    func photo(_ move: Move) {
        guard move.kind == .photo else { return changePhoto(move) }
        let device = devices[move.a % devices.count]
        let chat = chat(on: device, move.b)
        let caption = device.nextText()
        let lifeMs: [Int64] = [500, 5000, 60_000, 3_600_000]
        let number = photos.add(caption, lifeMs: lifeMs[move.c % lifeMs.count])
        let source = photos.source(of: number)
        let task = device.wish { core, tx in
            let cid = core.nextClientID()
            let message = SendPhotoTask(chat: chat.rawValue, cid: cid, text: caption)
            return try core.photos.queue(message, source: source, tx)
        }
        guard let task, let place = devices.firstIndex(where: { $0 === device }) else { return }
        photos.sent.append(Photos.Sent(device: place, chat: chat, task: task, caption: caption))
    }

    private func changePhoto(_ move: Move) {
        guard !photos.sent.isEmpty else { return }
        let place = move.b % photos.sent.count
        let sent = photos.sent[place]
        let isCancel = move.kind == .cancelPhoto
        let done: Void? = devices[sent.device].wish { core, tx in
            if isCancel { try core.cancel(sent.task, tx) } else { try core.retry(sent.task, tx) }
        }
        if done != nil, isCancel { photos.sent[place].isCancelled = true }
    }

    /// Checks that an upload begins at or before the end of the bytes that the server holds. Checks
    /// also that the upload gets a new key only after the token of the old key has expired.
    func uploadBegins(_ file: PhotoFile, key: String, from offset: Int64) {
        if offset > photos.held(of: key) {
            violated("\(key) is uploaded from \(offset), and \(photos.held(of: key)) are held")
        }
        guard let isRenewed = photos.isRenewed(key, of: file, nowMs: loop.nowMs) else { return }
        // A device may have a wrong clock.
        if isRenewed {
            hit(.uploadExpired)
        } else if !areClocksWrong {
            violated("\(key) is uploaded, although what was uploaded before is still good")
        }
    }

    private var areClocksWrong: Bool { plan.moves.contains { $0.kind == .deviceClock } }

    func photoNamed(_ token: String, by caption: String, cid: Int64) {
        if let what = photos.name(token, by: caption, cid: cid) { violated(what) }
    }

    /// Checks that each photo was sent, or waits with its steps for a user's decision. A cancelled
    /// photo that was never sent must leave nothing behind.
    func checkPhotos() {
        for (place, device) in devices.enumerated() {
            let rows = device.read { reader in
                try Row.fetchAll(
                    reader.store.db,
                    sql: "SELECT id, kind, state, lastError FROM task WHERE kind IN (?, ?, ?)",
                    arguments: [SendPhotoTask.kind, UploadPhotoTask.kind, KeepPhotoTask.kind]
                )
            }
            guard let rows else { continue }
            let messages = rows.filter { $0["kind"] == SendPhotoTask.kind }
            for kind in [UploadPhotoTask.kind, KeepPhotoTask.kind] {
                let count = rows.count { $0["kind"] == kind }
                if count != messages.count {
                    violated("\(device.name) has \(messages.count) photos and \(count) \(kind)")
                }
            }
            for sent in photos.sent where sent.device == place {
                let row = messages.first { $0["id"] == sent.task.rawValue }
                let state: String? = row?["state"]
                let reason: String = row?["lastError"] ?? ""
                let isNamed = photos.isNamed(sent.caption)
                if sent.isCancelled, state == nil || isNamed { continue }
                guard let state, state.hasPrefix("failed"), !reason.contains("upload"), isNamed
                else {
                    violated("the photo \(sent.caption) is \(state ?? "lost"): \(reason)")
                    continue
                }
            }
        }
    }
}
