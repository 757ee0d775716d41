import Foundation
import GRDB
import TambourProtocol

/// What the process that is connected does for others that share the store, beside their tasks.
///
/// They write down where somebody looks, and requests whose answer somebody waits for; it notices that the
/// store has changed, does both, and writes down what came of it.
extension ClientCore {
    /// What the connected process was told of a look.
    struct ToldLook {
        let place: SharedLook
        let atMs: Int64
    }

    /// So long the connected process may take before it is told once more: it may have gone meanwhile.
    private static let lookAgainMs: Int64 = 5_000
    /// Nobody waits for an answer as long as that.
    private static let errandMs: Int64 = 600_000
    /// Who asked has given up by then, and may not want it any more.
    private static let unsentErrandMs: Int64 = 30_000

    /// Has the connected process fetch what is missing where somebody looks here.
    func tellLook(at chat: ChatID, _ screen: Screen, _ tx: StoreTransaction) throws {
        let place = SharedLook(
            position: screen.position?.rawValue,
            isGoingBack: screen.direction == .backward,
            rowsOnScreen: screen.rowsOnScreen,
            visible: screen.visible.map(\.rawValue)
        )
        let now = environment.nowMs()
        if let told = toldLooks[chat], told.place == place, now - told.atMs < Self.lookAgainMs {
            return
        }
        toldLooks[chat] = ToldLook(place: place, atMs: now)
        try tx.execute(
            "INSERT OR REPLACE INTO look VALUES (?, ?, ?)",
            [owner, chat.rawValue, JSONEncoder().encode(place)]
        )
    }

    /// Has a request sent by the process that is connected.
    ///
    /// - Returns: the row in which its answer will be.
    func leaveErrand(
        _ opcode: Opcode,
        _ payload: [UInt8],
        _ tx: StoreTransaction
    ) throws -> Int64 {
        try tx.execute(
            "INSERT INTO errand (opcode, payload, askedAtHere) VALUES (?, ?, ?)",
            [Int64(opcode.rawValue), Data(payload), environment.wallMs()]
        )
        let id = tx.db.lastInsertedRowID
        // It may have become this one.
        try serveOthers(tx)
        return id
    }

    /// Does what others have written down.
    func serveOthers(_ tx: StoreTransaction) throws {
        guard isLive else { return }
        let looks = try tx.rows("SELECT owner, chat, place FROM look ORDER BY owner, chat")
        if !looks.isEmpty { try tx.execute("DELETE FROM look") }
        for row in looks {
            let process: String = row["owner"]
            if process == owner { continue }
            let data: Data = row["place"]
            guard let place = try? JSONDecoder().decode(SharedLook.self, from: data) else {
                continue
            }
            try look(
                at: ChatID(row["chat"]),
                position: place.position.map { MessageID($0) },
                isGoingBack: place.isGoingBack,
                rowsOnScreen: place.rowsOnScreen,
                visible: place.visible.map { MessageID($0) },
                for: process,
                tx
            )
        }
        try runErrands(tx)
        try pullEntitiesForOthers(tx)
    }

    private func runErrands(_ tx: StoreTransaction) throws {
        let now = environment.wallMs()
        try tx.execute(
            """
            DELETE FROM errand WHERE abs(askedAtHere - ?) > CASE WHEN sentBy IS NULL THEN ? ELSE ? END
            """,
            [now, Self.unsentErrandMs, Self.errandMs]
        )
        // Who has sent them is gone, or lost that connection without a chance to write it down.
        let sender = "\(owner).\(life)"
        try tx.execute(
            "UPDATE errand SET failure = ? WHERE sentBy != ? AND reply IS NULL AND failure IS NULL",
            [JSONEncoder().encode(ErrandFailure(.disconnected)), sender]
        )
        if tx.db.changesCount > 0 { tx.changes.queue = true }
        for row in try tx.rows(
            "SELECT id, opcode, payload FROM errand WHERE sentBy IS NULL ORDER BY id"
        ) {
            let id: Int64 = row["id"]
            let payload: Data = row["payload"]
            try tx.execute("UPDATE errand SET sentBy = ? WHERE id = ?", [sender, id])
            call(Opcode(rawValue: row["opcode"]), [UInt8](payload)) { answer, tx in
                switch answer {
                case .success(let reply):
                    try tx.execute("UPDATE errand SET reply = ? WHERE id = ?", [Data(reply), id])
                case .failure(let error):
                    try tx.execute(
                        "UPDATE errand SET failure = ? WHERE id = ?",
                        [JSONEncoder().encode(ErrandFailure(error)), id]
                    )
                }
                tx.changes.queue = true
            }
        }
    }
}

/// Where somebody looks, as processes tell each other; messages by their ids.
struct SharedLook: Codable, Hashable {
    let position: Int64?
    let isGoingBack: Bool
    let rowsOnScreen: Int
    /// Oldest first.
    let visible: [Int64]
}

/// Why an errand came to nothing, as processes tell each other.
struct ErrandFailure: Codable {
    /// The protocol's code of a refusal.
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
}
