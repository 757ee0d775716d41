import Foundation
import GRDB
import TambourProtocol

/// The kind of an unconfirmed change that a task shows.
enum OverlayKind: String {
    case send
    case edit
    case delete
    case react
    /// A change of the scheduled messages. `Reader` reads the change from the task.
    case scheduled
}

/// Unconfirmed changes of this device.
extension StoreTransaction {
    /// Shows a change until its task ends.
    func addOverlay(
        _ kind: OverlayKind,
        of task: TaskID,
        chat: ChatID,
        message: MessageID? = nil,
        cid: Int64? = nil,
        atHereMs: Int64,
        _ value: some Encodable
    ) throws {
        try execute(
            "INSERT INTO overlay VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                task.rawValue, chat.rawValue, message?.rawValue, kind.rawValue, cid, atHereMs,
                try JSONEncoder().encode(value),
            ]
        )
        changes.histories.insert(chat)
        changes.chats.insert(chat)
    }

    /// Replaces the shown value of a change.
    func changeOverlay(
        _ kind: OverlayKind,
        of task: TaskID,
        chat: ChatID,
        _ value: some Encodable
    ) throws {
        try execute(
            "UPDATE overlay SET value = ? WHERE task = ? AND kind = ?",
            [JSONEncoder().encode(value), task.rawValue, kind.rawValue]
        )
        changes.histories.insert(chat)
        changes.chats.insert(chat)
    }

    func removeOverlays(of task: TaskID) throws {
        for row in try rows("SELECT DISTINCT chat FROM overlay WHERE task = ?", [task.rawValue]) {
            changes.histories.insert(ChatID(row[0]))
            changes.chats.insert(ChatID(row[0]))
        }
        try execute("DELETE FROM overlay WHERE task = ?", [task.rawValue])
    }
}

extension StoreReading {
    /// The unconfirmed changes of a chat.
    func overlays(of chat: ChatID) throws -> Overlays {
        Overlays(
            try rows(
                """
                SELECT overlay.*, task.state, task.lastError, task.place FROM overlay
                LEFT JOIN task ON task.id = overlay.task WHERE overlay.chat = ? ORDER BY task.place
                """,
                [chat.rawValue]
            )
        )
    }

    /// Returns the task that sends a message; nil if there is no such task.
    func taskSending(cid: Int64, to chat: ChatID) throws -> TaskID? {
        try int(
            "SELECT task FROM overlay WHERE chat = ? AND cid = ? AND kind = ?",
            [chat.rawValue, cid, OverlayKind.send.rawValue]
        ).map { TaskID($0) }
    }
}

/// The unconfirmed changes that this device made in a chat.
struct Overlays {
    struct Send {
        let task: TaskID
        let cid: Int64
        let atHereMs: Int64
        let shown: SendTask.Shown
        /// The reason why the server refused the message; nil for a queued message.
        let failure: String?
    }

    private(set) var edits: [MessageID: EditTask.Shown] = [:]
    /// A list of one emoji, or an empty list when the reaction was removed.
    private(set) var reactions: [MessageID: [String]] = [:]
    private var deleted: Set<Int64> = []
    /// Queued and refused messages of this device. If the reply to a message was lost, the server
    /// may already have stored the message.
    private(set) var sends: [Send] = []

    fileprivate init(_ rows: [Row]) {
        let decoder = JSONDecoder()
        for row in rows {
            let value: Data = row["value"]
            let message = (row["message"] as Int64?).map(MessageID.init)
            switch OverlayKind(rawValue: row["kind"]) {
            case .edit:
                guard let message else { continue }
                edits[message] = try? decoder.decode(EditTask.Shown.self, from: value)
            case .react:
                guard let message else { continue }
                reactions[message] = try? decoder.decode([String].self, from: value)
            case .delete:
                deleted.formUnion((try? decoder.decode([Int64].self, from: value)) ?? [])
            case .send:
                guard let shown = try? decoder.decode(SendTask.Shown.self, from: value) else {
                    continue
                }
                let state: String = row["state"] ?? ""
                sends.append(
                    Send(
                        task: TaskID(row["task"]),
                        cid: row["cid"],
                        atHereMs: row["createdAtHere"],
                        shown: shown,
                        failure: state.hasPrefix("failed") ? row["lastError"] ?? "" : nil
                    )
                )
            case .scheduled, nil: continue
            }
        }
    }

    func isDeleted(_ message: MessageID) -> Bool { deleted.contains(message.rawValue) }
}
