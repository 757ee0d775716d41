import Foundation
import TambourEvents
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting

/// Fills a data directory directly through the store, which is faster than over the wire and has
/// the same result.
///
/// The clock advances between batches, so that the data looks like a history and not like a burst.
final class Seeder {
    private let writer: StoreWriter
    private var ct: Int64
    private let stepMs: Int64
    private var cid: Int64 = 1
    private let corpus: Corpus
    private let batches: Int
    private var written = 0

    /// - Parameter batches: The total number of batches; the last batch gets the current time.
    init(_ directory: URL, corpus: Corpus, batches: Int) throws {
        self.batches = batches
        let path = directory.appendingPathComponent("tambour.db").path
        let connection = try SQLiteConnection(path: path, mode: .readWrite)
        try connection.execute("PRAGMA synchronous = OFF")
        writer = try StoreWriter(
            StoreConnection(connection, limits: .standard),
            userIDs: .rising()
        )
        let now = Int64(Date.now.timeIntervalSince1970 * 1_000)
        // A batch of a thousand messages in one chat occupies a whole second of ids.
        stepMs = 2_000
        ct = max(now - Int64(batches + 10) * stepMs, try writer.persistedLeaseEnd() + 1)
        self.corpus = corpus
    }

    var clock: Int64 { ct }

    /// Writes alternating messages from both users into their dialog, as one batch.
    @discardableResult
    func dialog(_ a: UserID, _ b: UserID, messages: Int) throws -> [MessageID] {
        try batch { tx in
            try dialog(a, b, messages: messages, in: tx)
        }
    }

    /// - Parameter sender: The author of all messages, which then stay unread. If nil, the users
    ///   write in turn.
    @discardableResult
    func dialog(
        _ a: UserID,
        _ b: UserID,
        messages: Int,
        from sender: UserID? = nil,
        in tx: WriteTransaction
    ) throws -> [MessageID] {
        let chat = try tx.chat(of: a, and: b) ?? tx.createPairChat(a, b, by: a)
        return try (0..<messages).map { index in
            let text = corpus.message(UInt32(truncatingIfNeeded: cid))
            let content = MessageContent(cid: cid, text: Text(unchecked: Bytes(text)))
            cid += 1
            let sender = sender ?? (index % 2 == 0 ? b : a)
            return try tx.append(content, to: chat, from: sender, on: DeviceID(1)).record.id
        }
    }

    func batch<Result>(_ body: (WriteTransaction) throws -> Result) throws -> Result {
        ct += stepMs
        let result = try body(writer.begin(CommitStamp(ct: ct, leaseEnd: ct)))
        _ = try writer.commit()
        // Does this background work now, so that the measured server does not have to.
        while writer.hasWordsToIndex {
            try writer.begin(CommitStamp(ct: ct, leaseEnd: ct)).indexWords()
            _ = try writer.commit()
        }
        written += 1
        Progress.show("seeding: \(written * 100 / max(1, batches)) %")
        return result
    }

    /// Creates `cache/name` unless it exists and is complete.
    ///
    /// - Parameter fill: Fills the empty directory, which is kept for later runs.
    static func cached(_ name: String, in cache: URL, fill: (URL) throws -> Void) throws -> URL {
        let url = cache.appendingPathComponent(name)
        let mark = url.appendingPathComponent("complete")
        if FileManager.default.fileExists(atPath: mark.path) { return url }
        try? FileManager.default.removeItem(at: url)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try fill(url)
        try Data().write(to: mark)
        return url
    }

    /// Makes a writable copy. Its files share blocks with the original if the file system supports
    /// sharing.
    static func copy(_ directory: URL, to target: URL) throws {
        _ = try Tool.text(
            "/bin/cp",
            ["-r", "--reflink=auto", directory.path, target.path]
        )
    }
}
