import Foundation
import GRDB
import TambourProtocol

/// Messages between the processes that share a store: looks at chats, and requests to the server
/// (errands) with their replies.
extension StoreTransaction {
    // MARK: - Looks

    /// Writes a look for the connected process.
    func leave(_ look: SharedLook, at chat: ChatID, by owner: String) throws {
        try execute(
            "INSERT OR REPLACE INTO look VALUES (?, ?, ?)",
            [owner, chat.rawValue, JSONEncoder().encode(look)]
        )
    }

    /// Returns and deletes the looks of all processes.
    func takeLooks() throws -> [(owner: String, chat: ChatID, look: SharedLook)] {
        let rows = try rows("SELECT owner, chat, place FROM look ORDER BY owner, chat")
        if !rows.isEmpty { try execute("DELETE FROM look") }
        return rows.compactMap { row in
            let look = try? JSONDecoder().decode(SharedLook.self, from: row["place"] as Data)
            return look.map { (row["owner"], ChatID(row["chat"]), $0) }
        }
    }

    // MARK: - Errands

    /// Writes a request that the connected process is to send.
    ///
    /// - Returns: the id of the errand.
    func leaveErrand(_ opcode: Opcode, _ payload: [UInt8], atHereMs: Int64) throws -> Int64 {
        try execute(
            "INSERT INTO errand (opcode, payload, askedAtHere) VALUES (?, ?, ?)",
            [Int64(opcode.rawValue), Data(payload), atHereMs]
        )
        return db.lastInsertedRowID
    }

    /// Returns the errands that no process has sent, oldest first.
    func unsentErrands() throws -> [(id: Int64, opcode: Opcode, payload: [UInt8])] {
        try rows("SELECT id, opcode, payload FROM errand WHERE sentBy IS NULL ORDER BY id").map {
            ($0["id"], Opcode(rawValue: $0["opcode"]), [UInt8]($0["payload"] as Data))
        }
    }

    /// Records the connection that sends an errand.
    func noteSent(errand: Int64, by sender: String) throws {
        try execute("UPDATE errand SET sentBy = ? WHERE id = ?", [sender, errand])
    }

    /// Stores the answer to an errand. Does nothing if the errand no longer exists.
    func put(_ answer: Result<[UInt8], ClientError>, toErrand errand: Int64) throws {
        switch answer {
        case .success(let reply):
            try execute("UPDATE errand SET reply = ? WHERE id = ?", [Data(reply), errand])
        case .failure(let error):
            try execute(
                "UPDATE errand SET failure = ? WHERE id = ?",
                [ErrandFailure(error).storedData, errand]
            )
        }
        changes.queue = true
    }

    /// Fails the unanswered errands that other connections have sent.
    func failErrands(notSentBy sender: String) throws {
        try execute(
            "UPDATE errand SET failure = ? WHERE sentBy != ? AND reply IS NULL AND failure IS NULL",
            [ErrandFailure(.disconnected).storedData, sender]
        )
        if db.changesCount > 0 { changes.queue = true }
    }

    /// Deletes the errands whose age exceeds a limit. Sent and unsent errands have different
    /// limits.
    func removeErrands(atHereMs now: Int64, olderThanMs age: Int64, ifUnsent unsentAge: Int64)
        throws
    {
        try execute(
            """
            DELETE FROM errand WHERE abs(askedAtHere - ?) > CASE WHEN sentBy IS NULL THEN ? ELSE ? END
            """,
            [now, unsentAge, age]
        )
    }

    func removeErrand(_ errand: Int64) throws {
        try execute("DELETE FROM errand WHERE id = ?", [errand])
    }
}

extension StoreReading {
    /// Returns the answer to an errand; nil until it arrives.
    func answer(toErrand errand: Int64) throws -> Result<[UInt8], ClientError>? {
        let row = try row("SELECT reply, failure FROM errand WHERE id = ?", [errand])
        // A missing errand was erased, because a process signed out or the errand was too old.
        guard let row else { return .failure(.disconnected) }
        if let reply = row["reply"] as Data? { return .success([UInt8](reply)) }
        guard let failure = row["failure"] as Data? else { return nil }
        let read = try? JSONDecoder().decode(ErrandFailure.self, from: failure)
        return .failure(read?.error ?? .unreadable(reason: "an unknown failure"))
    }
}

/// Which part of a chat a process shows on its screen, as shared between processes. Messages are
/// given by id.
struct SharedLook: Codable, Hashable {
    let position: Int64?
    let isGoingBack: Bool
    let rowsOnScreen: Int
    /// Oldest first.
    let visible: [Int64]
}

/// The failure of an errand as shared between processes.
struct ErrandFailure: Codable {
    /// The protocol's error code of a refusal.
    private var code: String?
    private var text = ""
    private var retryAfterMs: Int64?
    private var isTimeout = false
    private var isDisconnected = false

    init(_ error: ClientError) {
        switch error {
        case .refused(let code, let text, let pause):
            self.code = code
            self.text = text
            retryAfterMs = pause.map { $0.wholeMilliseconds }
        case .timedOut: isTimeout = true
        case .disconnected: isDisconnected = true
        default: text = error.description
        }
    }

    var error: ClientError {
        if isTimeout { return .timedOut }
        if isDisconnected { return .disconnected }
        guard let code else { return .invalid(reason: text) }
        return .refused(
            code: code,
            text: text,
            retryAfter: retryAfterMs.map { .milliseconds($0) }
        )
    }

    fileprivate var storedData: Data {
        get throws { try JSONEncoder().encode(self) }
    }
}
