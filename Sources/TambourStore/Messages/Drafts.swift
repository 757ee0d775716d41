package import TambourProtocol
import TambourSQL

/// A row of the table `draft`: a draft or its tombstone.
package struct DraftRecord: Sendable {
    package let place: ChatPlace
    /// The commit clock of the last change.
    package let ct: Int64
    /// The time at which the draft was saved, Unix milliseconds; 0 for a discarded draft.
    package let saved: Int64
    package let text: Text
    package let elements: Packed<[Element]>?
    package let replyTo: MessageID?
    /// The creation time of the draft's dialog; 0 for groups and for dialogs that do not exist yet.
    package let dialogCreated: Int64

    package var isSaved: Bool { saved > 0 }

    /// The draft object for the wire.
    package var draft: Draft {
        Draft(text: text, elements: elements, replyTo: replyTo, time: saved, saveTime: saved)
    }

    /// An upper estimate of the draft's size on the wire, in bytes.
    package var wireSizeEstimate: Int { 120 + text.bytes.count + (elements?.bytes.count ?? 0) }
}

/// The columns of the tables `draft` (as `d`) and `chat` (as `c`), which contains the draft's
/// dialog.
enum DraftColumn: Int, SQLColumn {
    case peer, ct, saved, text, elements, replyTo, dialogCreated

    var sql: String {
        switch self {
        case .dialogCreated: "COALESCE(c.created, 0)"
        default: "d.\(snakeCase)"
        }
    }
}

struct DraftStatements {
    let byPlace: SQLQuery<DraftColumn>
    let changed: SQLQuery<DraftColumn>
    let count: any SQLStatement
    let bytesAt: any SQLStatement
    let put: any SQLStatement
    let discard: any SQLStatement
    let discardAll: any SQLStatement
    let touch: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let select = """
            SELECT \(DraftColumn.list)
            FROM draft d LEFT JOIN chat c
              ON c.low_user = CASE WHEN d.peer < d.user_id THEN d.peer ELSE d.user_id END
              AND c.high_user = CASE WHEN d.peer < d.user_id THEN d.user_id ELSE d.peer END
            WHERE d.user_id = $1
            """
        byPlace = try sql.query("\(select) AND d.peer = $2")
        changed = try sql.query(
            "\(select) AND d.ct > $2 AND d.ct <= $3 ORDER BY d.ct DESC, d.peer"
        )
        count = try sql.prepare("SELECT count(*) FROM draft WHERE user_id = $1 AND saved > 0")
        bytesAt = try sql.prepare(
            """
            SELECT CAST(COALESCE(sum(length(text) + COALESCE(length(elements), 0)), 0) AS bigint)
            FROM draft WHERE user_id = $1 AND ct = $2 AND saved > 0
            """
        )
        put = try sql.prepare(
            """
            INSERT INTO draft (user_id, peer, ct, saved, text, elements, reply_to)
            VALUES ($1, $2, $3, $3, $4, $5, $6)
            ON CONFLICT (user_id, peer) DO UPDATE SET
              ct = excluded.ct, saved = excluded.saved, text = excluded.text,
              elements = excluded.elements, reply_to = excluded.reply_to
            """
        )
        let own = "WHERE user_id = $1 AND peer = $2 AND saved > 0"
        discard = try sql.prepare(
            """
            UPDATE draft SET ct = $3, saved = 0, text = $4, elements = NULL, reply_to = 0 \(own)
            """
        )
        discardAll = try sql.prepare(
            """
            UPDATE draft SET ct = $2, saved = 0, text = $3, elements = NULL, reply_to = 0
            WHERE peer = $1 AND saved > 0
            """
        )
        touch = try sql.prepare("UPDATE draft SET ct = $3 \(own)")
    }
}

extension DraftRecord {
    fileprivate init(row: SQLRow<DraftColumn>) {
        self.init(
            place: ChatPlace(peer: row.int(.peer)),
            ct: row.int(.ct),
            saved: row.int(.saved),
            text: row.text(.text),
            elements: row.packed(.elements),
            replyTo: row.nonZero(.replyTo).map { MessageID($0) },
            dialogCreated: row.int(.dialogCreated)
        )
    }
}

extension ReadTransaction {
    /// Returns the draft of `user` for a place, or the draft's tombstone; nil if neither exists.
    package func draft(of user: UserID, for place: ChatPlace) throws -> DraftRecord? {
        try store.drafts.byPlace.one {
            $0.bind(1, user.rawValue)
            $0.bind(2, place.peer)
        } read: {
            DraftRecord(row: $0)
        }
    }

    /// Returns the drafts that were saved or discarded after `since` and not after `end` (commit
    /// clock), the newest change first.
    package func changedDrafts(
        of user: UserID,
        since: Int64,
        upTo end: Int64 = .max
    ) throws -> [DraftRecord] {
        try store.drafts.changed.all {
            $0.bind(1, user.rawValue)
            $0.bind(2, since)
            $0.bind(3, end)
        } read: {
            DraftRecord(row: $0)
        }
    }

    /// Returns the total size of the drafts that `user` saved at `ct` (commit clock). This is the
    /// size of their texts and elements, in bytes.
    package func draftBytes(of user: UserID, savedAt ct: Int64) throws -> Int {
        let bytes = try store.drafts.bytesAt.oneInt {
            $0.bind(1, user.rawValue)
            $0.bind(2, ct)
        }
        return Int(clamping: bytes ?? 0)
    }

    /// Returns the number of drafts of `user`.
    package func draftCount(of user: UserID) throws -> Int {
        try store.drafts.count.oneCount { $0.bind(1, user.rawValue) }
    }
}

extension WriteTransaction {
    /// Saves a draft, which replaces the previous draft. The time of the draft is the commit clock.
    package func saveDraft(
        text: Text,
        elements: Packed<[Element]>?,
        replyTo: MessageID?,
        of user: UserID,
        for place: ChatPlace
    ) throws {
        writes += 1
        try store.drafts.put.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, place.peer)
            $0.bind(3, ct)
            $0.bindWords(4, text)
            $0.bindBlob(5, elements?.bytes)
            $0.bind(6, replyTo?.rawValue ?? 0)
        }
    }

    /// Discards a draft if it exists. The next login delta contains the draft's tombstone.
    package func discardDraft(of user: UserID, for place: ChatPlace) throws {
        writes += 1
        try store.drafts.discard.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, place.peer)
            $0.bind(3, ct)
            $0.bindWords(4, Text.empty)
        }
    }

    /// Discards all users' drafts in a group or channel.
    func discardDrafts(for place: ChatPlace) throws {
        try store.drafts.discardAll.run {
            $0.bind(1, place.peer)
            $0.bind(2, ct)
            $0.bindWords(3, Text.empty)
        }
    }

    /// Marks the drafts for a new dialog as changed. Before the dialog existed, clients received
    /// these drafts with the id of the other user. The next login delta contains them with the id
    /// of the chat.
    func moveDrafts(of a: UserID, and b: UserID) throws {
        for (user, partner) in [(a, b), (b, a)] {
            try store.drafts.touch.run {
                $0.bind(1, user.rawValue)
                $0.bind(2, partner.rawValue)
                $0.bind(3, ct)
            }
        }
    }
}
