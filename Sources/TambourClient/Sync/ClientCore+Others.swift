import Foundation
import GRDB
import TambourProtocol

/// The services of the process that owns the connection to others that share the store, besides
/// running their tasks.
///
/// The others write down looks, and requests whose answers they wait for (errands). The connected
/// process notices the change of the store, carries them out, and writes down the results.
extension ClientCore {
    /// A look that was passed on to the connected process.
    struct ToldLook {
        let place: SharedLook
        let atMs: Int64
    }

    /// The time after which a look is passed on again: another process may be connected by then.
    private static let lookAgainMs: Int64 = 5_000
    /// The time after which an errand that was sent is deleted: nobody waits for its answer any
    /// more.
    private static let errandMs: Int64 = 600_000
    /// The time after which an errand that was not sent is deleted: its caller has given up.
    private static let unsentErrandMs: Int64 = 30_000

    /// Asks the connected process to fetch the messages that are missing on a screen here.
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

    /// Asks the connected process to send a request.
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
        // This process may have become the connected one.
        try serveOthers(tx)
        return id
    }

    /// Carries out what other processes have written down.
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
        // Their sender is gone, or lost that connection without recording it.
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

/// A look as processes pass it on; messages by id.
struct SharedLook: Codable, Hashable {
    let position: Int64?
    let isGoingBack: Bool
    let rowsOnScreen: Int
    /// Oldest first.
    let visible: [Int64]
}

/// The failure of an errand as processes pass it on.
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
