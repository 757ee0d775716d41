package import TambourEvents
package import TambourProtocol
import TambourSQL

/// A row of `delayed_message`: a scheduled message.
package struct DelayedRecord: Sendable {
    package let sender: UserID
    package let place: ChatPlace
    package internal(set) var id: MessageID
    package let device: DeviceID
    package var attributes: DelayedAttributes
    /// Whether the message was due but could not be sent. The store then keeps it until its sender
    /// changes or deletes it.
    package var hasFailed = false
    /// The commit clock of the last edit; 0 if the message was never edited.
    package var updated: Int64 = 0
    package var content: MessageContent

    package init(
        sender: UserID,
        place: ChatPlace,
        id: MessageID,
        device: DeviceID,
        attributes: DelayedAttributes,
        hasFailed: Bool = false,
        updated: Int64 = 0,
        content: MessageContent
    ) {
        self.sender = sender
        self.place = place
        self.id = id
        self.device = device
        self.attributes = attributes
        self.hasFailed = hasFailed
        self.updated = updated
        self.content = content
    }

    /// Returns the message object for the sender. The time of the object is the time at which the
    /// message is due.
    package func message(link: Packed<MessageLink>?) -> Message {
        let chatID = place.wireID(for: sender)
        return Message(
            id: id,
            time: attributes.timeToFire,
            type: chatID.isChannel ? "CHANNEL" : "USER",
            text: content.text,
            sender: chatID.isChannel ? nil : sender,
            chatID: chatID,
            cid: content.cid,
            elements: content.elements,
            attaches: content.attaches ?? .emptyList,
            link: link,
            status: updated == 0 ? nil : .edited,
            updateTime: updated == 0 ? nil : updated,
            delayedAttributes: attributes
        )
    }

    /// An upper estimate of the message's size on the wire in bytes, without the message that it
    /// answers.
    package var wireSizeEstimate: Int {
        280 + content.text.bytes.count + (content.elements?.bytes.count ?? 0)
            + (content.attaches?.bytes.count ?? 0) + (content.forward?.bytes.count ?? 0)
    }
}

enum DelayedColumn: Int, SQLColumn {
    case userID, peer, id, device, fire, notify, failed, updated, cid, replyTo, text, elements
    case attaches, forward, poll
}

enum DelayedSizeColumn: Int, SQLColumn {
    case count, bytes

    var sql: String {
        switch self {
        case .count: "count(*)"
        case .bytes: "COALESCE(sum(bytes), 0)"
        }
    }
}

struct DelayedStatements {
    let byID: SQLQuery<DelayedColumn>
    let byCID: SQLQuery<DelayedColumn>
    let ofPlace: SQLQuery<DelayedColumn>
    let sizeOfPlace: SQLQuery<DelayedSizeColumn>
    let count: any SQLStatement
    let due: SQLQuery<DelayedColumn>
    let next: any SQLStatement
    let put: any SQLStatement
    let fail: any SQLStatement
    let delete: any SQLStatement
    let deleteAll: any SQLStatement
    let deleteAllOfPlace: any SQLStatement
    let keyByCID: any SQLStatement
    let keep: any SQLStatement
    let keepAll: any SQLStatement
    let forgetKeys: any SQLStatement
    let noteUpdate: any SQLStatement
    let noteFailure: any SQLStatement

    init(_ sql: any SQLConnection) throws {
        let select = "SELECT \(DelayedColumn.list) FROM delayed_message"
        let place = "WHERE user_id = $1 AND peer = $2"
        byID = try sql.query("\(select) \(place) AND id = $3")
        byCID = try sql.query("\(select) \(place) AND cid = $3 AND device = $4")
        ofPlace = try sql.query("\(select) \(place) ORDER BY fire, id")
        sizeOfPlace = try sql.query(
            "SELECT \(DelayedSizeColumn.list) FROM delayed_message \(place) AND id <> $3"
        )
        count = try sql.prepare("SELECT count(*) FROM delayed_message WHERE user_id = $1")
        due = try sql.query(
            "\(select) WHERE failed = 0 AND fire <= $1 ORDER BY fire, user_id, peer, id LIMIT $2"
        )
        next = try sql.prepare(
            "SELECT fire FROM delayed_message WHERE failed = 0 ORDER BY fire LIMIT 1"
        )
        put = try sql.prepare(
            """
            INSERT INTO delayed_message (\(DelayedColumn.list), bytes)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            ON CONFLICT (user_id, peer, id) DO UPDATE SET
              fire = excluded.fire, notify = excluded.notify, failed = excluded.failed,
              updated = excluded.updated, text = excluded.text, elements = excluded.elements,
              attaches = excluded.attaches, poll = excluded.poll, bytes = excluded.bytes
            """
        )
        fail = try sql.prepare("UPDATE delayed_message SET failed = 1 \(place) AND id = $3")
        delete = try sql.prepare("DELETE FROM delayed_message \(place) AND id = $3")
        deleteAllOfPlace = try sql.prepare("DELETE FROM delayed_message WHERE peer = $1")
        deleteAll = try sql.prepare("DELETE FROM delayed_message \(place)")
        keyByCID = try sql.prepare(
            "SELECT id FROM delayed_key \(place) AND cid = $3 AND device = $4"
        )
        let keep =
            """
            INSERT INTO delayed_key (user_id, peer, device, cid, id, ct)
            SELECT user_id, peer, device, cid, id, CAST($3 AS bigint) FROM delayed_message \(place)
            """
        let newest =
            "ON CONFLICT (user_id, peer, device, cid) DO UPDATE SET id = excluded.id, ct = excluded.ct"
        self.keep = try sql.prepare("\(keep) AND id = $4 \(newest)")
        keepAll = try sql.prepare("\(keep) \(newest)")
        forgetKeys = try sql.prepare(
            """
            DELETE FROM delayed_key WHERE user_id = $1 AND ct < (
              SELECT ct FROM delayed_key WHERE user_id = $1 ORDER BY ct DESC LIMIT 1 OFFSET $2
            )
            """
        )
        // Two commits may have the same millisecond. Each change of a member's scheduled messages
        // nevertheless gets a later time than the previous change, so that devices notice both
        // changes.
        let time =
            "CASE WHEN delayed_updated < $3 THEN CAST($3 AS bigint) ELSE delayed_updated + 1 END"
        let note = "UPDATE member SET delayed_updated = \(time)"
        let member = "WHERE user_id = $1 AND chat = $2"
        noteUpdate = try sql.prepare("\(note) \(member)")
        noteFailure = try sql.prepare("\(note), delayed_failed = \(time) \(member)")
    }
}

extension DelayedRecord {
    init(row: SQLRow<DelayedColumn>) {
        let notify = row.int(.notify)
        self.init(
            sender: UserID(row.int(.userID)),
            place: ChatPlace(peer: row.int(.peer)),
            id: MessageID(row.int(.id)),
            device: DeviceID(row.int(.device)),
            attributes: DelayedAttributes(
                timeToFire: row.int(.fire),
                notifySender: notify & 1 != 0,
                notifyOpponents: notify & 2 != 0
            ),
            hasFailed: row.bool(.failed),
            updated: row.int(.updated),
            content: MessageContent(
                cid: row.int(.cid),
                text: row.text(.text),
                elements: row.packed(.elements),
                attaches: row.packed(.attaches),
                poll: PollMark(rawValue: row.int(.poll)),
                replyTo: row.nonZero(.replyTo).map { MessageID($0) },
                forward: row.packed(.forward)
            )
        )
    }

    fileprivate func bind(to statement: any SQLStatement) {
        statement.bind(1, sender.rawValue)
        statement.bind(2, place.peer)
        statement.bind(3, id.rawValue)
        statement.bind(4, device.rawValue)
        statement.bind(5, attributes.timeToFire)
        let notify: Int64 =
            (attributes.notifySender ? 1 : 0) | (attributes.notifyOpponents ? 2 : 0)
        statement.bind(6, notify)
        statement.bind(7, hasFailed ? 1 : 0)
        statement.bind(8, updated)
        statement.bind(9, content.cid)
        statement.bind(10, content.replyTo?.rawValue ?? 0)
        statement.bindWords(11, content.text)
        statement.bindBlob(12, content.elements?.bytes)
        statement.bindBlob(13, content.attaches?.bytes)
        statement.bindBlob(14, content.forward?.bytes)
        statement.bind(15, content.poll?.rawValue ?? 0)
        statement.bind(16, Int64(wireSizeEstimate))
    }
}

extension ReadTransaction {
    /// Returns the messages that `user` has scheduled for a place, the earliest first.
    package func delayed(of user: UserID, for place: ChatPlace) throws -> [DelayedRecord] {
        try store.delayed.ofPlace.all({ $0.bind(user, place) }, read: DelayedRecord.init(row:))
    }

    package func delayed(
        _ id: MessageID,
        of user: UserID,
        for place: ChatPlace
    ) throws -> DelayedRecord? {
        try store.delayed.byID.one {
            $0.bind(user, place)
            $0.bind(3, id.rawValue)
        } read: {
            DelayedRecord(row: $0)
        }
    }

    /// Returns the message that `user` scheduled from `device` with this `cid`.
    package func delayed(
        cid: Int64,
        of user: UserID,
        on device: DeviceID,
        for place: ChatPlace
    ) throws -> DelayedRecord? {
        try store.delayed.byCID.one {
            $0.bind(user, place)
            $0.bind(3, cid)
            $0.bind(4, device.rawValue)
        } read: {
            DelayedRecord(row: $0)
        }
    }

    /// Returns the id of a deleted message that `user` had scheduled from `device` with this `cid`.
    package func deletedDelayed(
        cid: Int64,
        of user: UserID,
        on device: DeviceID,
        for place: ChatPlace
    ) throws -> MessageID? {
        let id = try store.delayed.keyByCID.oneInt {
            $0.bind(user, place)
            $0.bind(3, cid)
            $0.bind(4, device.rawValue)
        }
        return id.map { MessageID($0) }
    }

    /// Returns the number of messages that `user` has scheduled for a place, and an estimate of
    /// their size on the wire in bytes. The message `id` does not count.
    package func delayedSize(
        of user: UserID,
        for place: ChatPlace,
        without id: MessageID
    ) throws -> (count: Int, bytes: Int) {
        try store.delayed.sizeOfPlace.one {
            $0.bind(user, place)
            $0.bind(3, id.rawValue)
        } read: {
            ($0.count(.count), $0.count(.bytes))
        } ?? (0, 0)
    }

    /// Returns the number of messages that `user` has scheduled.
    package func delayedCount(of user: UserID) throws -> Int {
        try store.delayed.count.oneCount { $0.bind(1, user.rawValue) }
    }

    /// Returns the messages that are due at or before `time` (Unix milliseconds), the earliest
    /// first.
    package func dueDelayed(at time: Int64, limit: Int) throws -> [DelayedRecord] {
        try store.delayed.due.all {
            $0.bind(1, time)
            $0.bind(2, Int64(limit))
        } read: {
            DelayedRecord(row: $0)
        }
    }

    /// Returns the earliest time at which a message is due, Unix milliseconds; nil if there is
    /// none. Ignores messages that have failed.
    package func nextDelayedTime() throws -> Int64? { try store.delayed.next.oneInt() }

    /// Returns the message object for the wire. If the message is a reply, the object contains the
    /// current version of the answered message.
    package func message(_ record: DelayedRecord) throws -> Message {
        let wireID = record.place.wireID(for: record.sender)
        guard let replyTo = record.content.replyTo, let view = try view(wireID, for: record.sender)
        else { return record.message(link: record.content.forward) }
        let link = try reply(
            to: replyTo,
            in: view.key,
            at: view.address,
            for: view.viewpoint
        )
        return record.message(link: link ?? record.content.forward)
    }
}

extension SQLStatement {
    /// Binds a user and a place to the parameters `$1` and `$2`.
    fileprivate func bind(_ user: UserID, _ place: ChatPlace) {
        bind(1, user.rawValue)
        bind(2, place.peer)
    }
}

extension WriteTransaction {
    /// Stores a message that will be sent when it is due.
    ///
    /// - Parameters:
    ///   - record: the message, which has no id yet.
    ///   - chat: nil if the dialog does not exist yet.
    /// - Returns: the row as stored.
    package func schedule(_ record: DelayedRecord, in chat: ChatState?) throws -> DelayedRecord {
        counter &+= 1
        var stored = record
        stored.id = MessageID(timeMs: ct, counter: counter)
        try put(stored, in: chat)
        return stored
    }

    /// Replaces a scheduled message. If an earlier attempt to send the message failed, the server
    /// tries again.
    ///
    /// - Returns: the row as stored.
    package func edit(_ record: DelayedRecord, in chat: ChatState?) throws -> DelayedRecord {
        var edited = record
        edited.updated = nextUpdate(after: record.updated)
        edited.hasFailed = false
        try put(edited, in: chat)
        return edited
    }

    private func put(_ record: DelayedRecord, in chat: ChatState?) throws {
        writes += 1
        record.bind(to: store.delayed.put)
        try store.delayed.put.run()
        try note(record.sender, in: chat, by: store.delayed.noteUpdate)
        emit(.delayed(until: record.attributes.timeToFire))
    }

    /// Deletes scheduled messages. The user has requested this, or the messages are being sent.
    ///
    /// - Parameter keepingKeys: whether the `cid` of each deleted message stays taken. Pass true
    ///   when deleting on request, because then no other row contains this `cid`.
    package func deleteDelayed(
        _ ids: [MessageID],
        of user: UserID,
        for place: ChatPlace,
        in chat: ChatState?,
        keepingKeys: Bool
    ) throws {
        guard !ids.isEmpty else { return }
        writes += 1
        for id in ids {
            if keepingKeys {
                try store.delayed.keep.run {
                    $0.bind(1, user.rawValue)
                    $0.bind(2, place.peer)
                    $0.bind(3, ct)
                    $0.bind(4, id.rawValue)
                }
            }
            try store.delayed.delete.run {
                $0.bind(1, user.rawValue)
                $0.bind(2, place.peer)
                $0.bind(3, id.rawValue)
            }
        }
        if keepingKeys { try forgetOldestKeys(of: user) }
        try note(user, in: chat, by: store.delayed.noteUpdate)
    }

    /// Records that a message could not be sent. The message stays stored.
    package func fail(_ record: DelayedRecord, in chat: ChatState?) throws {
        writes += 1
        try store.delayed.fail.run {
            $0.bind(1, record.sender.rawValue)
            $0.bind(2, record.place.peer)
            $0.bind(3, record.id.rawValue)
        }
        try note(record.sender, in: chat, by: store.delayed.noteFailure)
    }

    /// Records a change of the scheduled messages of a new dialog, for each of its users who had
    /// scheduled messages before the dialog existed.
    func showDelayed(of a: UserID, and b: UserID, in chat: ChatState) throws {
        for (user, partner) in a == b ? [(a, a)] : [(a, b), (b, a)]
        where try reader.delayedSize(of: user, for: .user(partner), without: MessageID(0)).count > 0
        {
            try note(user, in: chat, by: store.delayed.noteUpdate)
        }
    }

    /// Deletes the scheduled messages of a user who leaves the chat. The keys of these messages
    /// stay taken. If the user returns and an outbox tries again to schedule such a message, the
    /// server therefore does not send it.
    func forgetDelayed(of user: UserID, for place: ChatPlace) throws {
        store.delayed.keepAll.bind(1, user.rawValue)
        store.delayed.keepAll.bind(2, place.peer)
        store.delayed.keepAll.bind(3, ct)
        if try store.delayed.keepAll.run() > 0 { try forgetOldestKeys(of: user) }
        try store.delayed.deleteAll.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, place.peer)
        }
    }

    /// Deletes the oldest keys of the user's deleted messages. The newest `maxDelayed` keys stay.
    private func forgetOldestKeys(of user: UserID) throws {
        try store.delayed.forgetKeys.run {
            $0.bind(1, user.rawValue)
            $0.bind(2, Int64(max(1, store.limits.maxDelayed) - 1))
        }
    }

    /// Deletes all messages that are scheduled for a deleted group or channel.
    func forgetDelayed(for place: ChatPlace) throws {
        try store.delayed.deleteAllOfPlace.run { $0.bind(1, place.peer) }
    }

    /// Records that the scheduled messages of `user` in a chat have changed. The user's other
    /// devices receive the change at their next login.
    private func note(
        _ user: UserID,
        in chat: ChatState?,
        by statement: any SQLStatement
    ) throws {
        guard let chat, let member = try member(user, of: chat) else { return }
        try flush()
        statement.bind(1, user.rawValue)
        statement.bind(2, chat.key.rawValue)
        statement.bind(3, ct)
        try statement.run()
        touch(member, in: chat)
    }
}
