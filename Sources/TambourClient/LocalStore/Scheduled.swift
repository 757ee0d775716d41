import Foundation
import GRDB
import TambourProtocol

/// What this device knows about the list of scheduled messages of a chat.
struct ScheduledList {
    /// When the list last changed on the server, as far as this device knows.
    var changedMs: Int64
    /// The time up to which this device has all changes of the list.
    var heldMs: Int64
    /// The time of the last failure to send a message of the list; 0 if there was none.
    var failedMs: Int64

    /// Whether the stored list may lack changes.
    var isStale: Bool { changedMs > heldMs }
}

/// Scheduled messages that the server holds. All times are times of the server's clock.
extension StoreTransaction {
    /// Stores the server's statement about the list of scheduled messages of a chat.
    ///
    /// - Returns: whether the server reports a new failure to send a message. False if the list was
    ///   unknown before.
    @discardableResult
    func noteScheduled(in chat: ChatID, changedMs: Int64, failedMs: Int64 = 0) throws -> Bool {
        guard changedMs > 0 || failedMs > 0 else { return false }
        let known = try scheduledList(of: chat)
        guard changedMs > known?.changedMs ?? 0 || failedMs > known?.failedMs ?? 0 else {
            return false
        }
        try execute(
            """
            INSERT INTO scheduled_list VALUES (?, ?, 0, ?) ON CONFLICT (chat) DO UPDATE SET
              changed = max(changed, excluded.changed), failed = max(failed, excluded.failed)
            """,
            [chat.rawValue, changedMs, failedMs]
        )
        try announceScheduled(in: chat)
        // A device that has just signed in does not report an old failure, but the list shows it.
        return known.map { failedMs > $0.failedMs } ?? false
    }

    /// Records that the stored list has all changes up to a time.
    func settleScheduled(in chat: ChatID, upToMs heldMs: Int64) throws {
        try execute(
            "UPDATE scheduled_list SET held = max(held, ?) WHERE chat = ?",
            [heldMs, chat.rawValue]
        )
    }

    /// Records that the stored list may lack changes.
    func doubtScheduled(in chat: ChatID) throws {
        try execute(
            """
            INSERT INTO scheduled_list VALUES (?, 1, 0, 0)
            ON CONFLICT (chat) DO UPDATE SET changed = max(changed, 1), held = 0
            """,
            [chat.rawValue]
        )
    }

    /// Records that the lists of dialogs that have not begun may lack changes, because no login
    /// describes these dialogs.
    func doubtScheduledOutsideOfList() throws {
        try execute(
            """
            UPDATE scheduled_list SET changed = max(changed, 1), held = 0
            WHERE chat NOT IN (SELECT id FROM chat)
            """
        )
    }

    /// Records that all lists may lack changes, after the server has lost data.
    func distrustScheduled() throws {
        try execute("UPDATE scheduled_list SET changed = max(changed, 1), held = 0, failed = 0")
    }

    /// Stores a scheduled message.
    func putScheduled(_ message: Message, in chat: ChatID) throws {
        try execute(
            "INSERT OR REPLACE INTO scheduled VALUES (?, ?, ?, ?)",
            [
                chat.rawValue, message.id.rawValue,
                message.delayedAttributes?.timeToFire ?? message.time, message.storedBytes,
            ]
        )
        try execute(
            "INSERT OR IGNORE INTO scheduled_list VALUES (?, 0, 0, 0)",
            [chat.rawValue]
        )
        try announceScheduled(in: chat)
    }

    /// Removes messages that are no longer scheduled.
    func removeScheduled(_ messages: [MessageID], in chat: ChatID) throws {
        for message in messages {
            try execute(
                "DELETE FROM scheduled WHERE chat = ? AND id = ?",
                [chat.rawValue, message.rawValue]
            )
        }
        try announceScheduled(in: chat)
    }

    /// Replaces the scheduled messages of a chat.
    func putScheduled(all messages: [Message], in chat: ChatID) throws {
        try execute("DELETE FROM scheduled WHERE chat = ?", [chat.rawValue])
        try announceScheduled(in: chat)
        for message in messages { try putScheduled(message, in: chat) }
    }

    private func announceScheduled(in chat: ChatID) throws {
        changes.histories.insert(chat)
        // The list of chats counts the messages that could not be sent.
        if try scheduledList(of: chat).map({ $0.failedMs > 0 }) == true {
            changes.chats.insert(chat)
        }
    }

    /// Deletes the scheduled messages of a group that the account is no longer in, because the
    /// server will not send them.
    func forgetScheduled(in chat: ChatID) throws {
        guard chat.isGroup else { return }
        try execute("DELETE FROM scheduled WHERE chat = ?", [chat.rawValue])
        try execute("DELETE FROM scheduled_list WHERE chat = ?", [chat.rawValue])
    }
}

extension StoreReading {
    /// Returns what is known about the list of a chat; nil if the server has never mentioned the
    /// list.
    func scheduledList(of chat: ChatID) throws -> ScheduledList? {
        try row("SELECT * FROM scheduled_list WHERE chat = ?", [chat.rawValue]).map { row in
            ScheduledList(
                changedMs: row["changed"],
                heldMs: row["held"],
                failedMs: row["failed"]
            )
        }
    }

    /// Returns the stored scheduled messages of a chat, without queued changes.
    func scheduledMessages(in chat: ChatID) throws -> [Message] {
        try rows("SELECT data FROM scheduled WHERE chat = ?", [chat.rawValue])
            .compactMap { Message(stored: $0["data"]) }
    }

    /// Returns a scheduled message; nil when the stored list lacks it.
    func scheduledMessage(_ message: MessageID, in chat: ChatID) throws -> Message? {
        try row(
            "SELECT data FROM scheduled WHERE chat = ? AND id = ?",
            [chat.rawValue, message.rawValue]
        ).flatMap { Message(stored: $0["data"]) }
    }
}
