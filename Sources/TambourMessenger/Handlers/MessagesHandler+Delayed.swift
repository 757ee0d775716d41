import TambourEvents
import TambourProtocol
import TambourStore

/// Handles scheduled messages. Only the sender of a scheduled message can see, change and delete
/// it.
extension MessagesHandler {
    // MARK: - Scheduling

    /// Returns the schedule of a message; nil if it must be sent at once.
    ///
    /// A message that was scheduled offline may arrive after its time. Such a message is sent at
    /// once.
    /// - Throws: `proto.payload` for a time that is too far in the future.
    func schedule(
        _ attributes: DelayedAttributes?,
        in tx: WriteTransaction
    ) throws -> DelayedAttributes? {
        guard let attributes, attributes.timeToFire > tx.ct else { return nil }
        try requireNear(attributes.timeToFire, at: "/message/delayedAttributes/timeToFire", in: tx)
        return attributes
    }

    private func requireNear(_ time: Int64, at path: String, in tx: WriteTransaction) throws {
        guard time <= tx.ct + Int64(limits.maxDelayMs) else {
            throw RequestError.protoPayload(
                "\(path): more than \(limits.maxDelayMs) ms from now"
            )
        }
    }

    /// Stores a scheduled message that has passed all checks.
    func schedule(
        _ content: MessageContent,
        _ attributes: DelayedAttributes,
        for target: Target,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        let waiting = try tx.reader.delayedCount(of: caller.userID)
        guard waiting < limits.maxDelayed else {
            throw RequestError.protoPayload(
                "/message/delayedAttributes: limit \(limits.maxDelayed) scheduled messages"
            )
        }
        let size = try tx.reader.delayedSize(
            of: caller.userID,
            for: target.place,
            without: MessageID(0)
        )
        let record = DelayedRecord(
            sender: caller.userID,
            place: target.place,
            id: MessageID(0),
            device: caller.deviceID,
            attributes: attributes,
            content: content
        )
        try requireRoom(for: record, beside: size)
        let stored = try tx.schedule(record, in: target.chat)
        try tell(caller.userID, target.place, put: stored, except: caller.connectionID, in: tx)
        return try reply(with: stored, in: target.chat, in: tx)
    }

    /// Refuses the message if the chat already has `maxDelayedPerChat` scheduled messages. Also
    /// refuses it if the chat's scheduled messages would then fill more than half a reply. The
    /// other half is reserved for the messages that they answer.
    private func requireRoom(
        for record: DelayedRecord,
        beside others: (count: Int, bytes: Int)
    ) throws {
        guard others.count < limits.maxDelayedPerChat else {
            throw RequestError.protoPayload(
                "/message/delayedAttributes: limit \(limits.maxDelayedPerChat) in a chat"
            )
        }
        let bytes = others.bytes + record.wireSizeEstimate
        guard bytes <= limits.maxReplyBytes / 2 else {
            throw RequestError.protoPayload(
                "/message: \(bytes) bytes scheduled in a chat, limit \(limits.maxReplyBytes / 2)"
            )
        }
    }

    /// Returns the reply for a scheduled message. For a retry, `record` is the message that the
    /// first request with this `cid` scheduled.
    func reply(
        with record: DelayedRecord,
        in chat: ChatState?,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        MsgSendReply(
            chatID: record.place.wireID(for: record.sender),
            message: try tx.flushedReader().message(record),
            unread: try chat.map { try tx.unread(of: record.sender, in: $0) },
            mark: try chat.flatMap { try tx.member(record.sender, of: $0)?.readTime }
        )
    }

    /// Returns the reply for a `cid` whose scheduled message was deleted. The reply contains only
    /// the message's id.
    func reply(
        withDeleted id: MessageID,
        cid: Int64,
        for target: Target,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        let chatID = target.place.wireID(for: caller.userID)
        let message = Message(
            id: id,
            time: id.timeMs,
            type: chatID.isChannel ? "CHANNEL" : "USER",
            sender: chatID.isChannel ? nil : caller.userID,
            chatID: chatID,
            cid: cid,
            attaches: .emptyList,
            status: .removed
        )
        return MsgSendReply(
            chatID: chatID,
            message: message,
            unread: try target.chat.map { try tx.unread(of: caller.userID, in: $0) },
            mark: try target.chat.flatMap { try tx.member(caller.userID, of: $0)?.readTime }
        )
    }

    // MARK: - Changing

    /// Changes the text, formatting, attachments or time of a scheduled message. If the new time
    /// has already passed, sends the message at once.
    func edit(
        _ record: DelayedRecord,
        as request: MsgEditRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgEditReply {
        var record = record
        record.content = try content(
            after: request,
            before: record.content,
            instead: nil,
            by: caller,
            in: tx
        )
        if let attributes = request.delayedAttributes {
            try requireNear(attributes.timeToFire, at: "/delayedAttributes/timeToFire", in: tx)
            record.attributes = attributes
        }
        let size = try tx.reader.delayedSize(
            of: caller.userID,
            for: record.place,
            without: record.id
        )
        try requireRoom(for: record, beside: size)
        let chat = try tx.chat(request.chatID, visibleTo: caller.userID)
        let edited = try tx.edit(record, in: chat)
        try tell(caller.userID, record.place, put: edited, except: caller.connectionID, in: tx)
        return MsgEditReply(
            message: try tx.flushedReader().message(edited),
            chatID: record.place.wireID(for: caller.userID)
        )
    }

    func deleteDelayed(
        _ request: MsgDeleteRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgDeleteReply {
        let chat = try tx.chat(request.chatID, visibleTo: caller.userID)
        let place = ChatPlace(request.chatID, for: caller.userID)
        // Comments cannot be scheduled. If the request names a post, it therefore finds no
        // scheduled messages.
        let waiting =
            request.postID == nil
            ? Set(try tx.reader.delayed(of: caller.userID, for: place).map(\.id)) : []
        // The sender can withdraw a scheduled message even if they can no longer send to the chat.
        if chat == nil, waiting.isEmpty {
            try tx.reader.requireDialog(request.chatID, of: caller.userID)
        }
        let asked = Set(request.messageIDs).sorted()
        let done = asked.filter { waiting.contains($0) }
        let failed = asked.filter { !waiting.contains($0) }
        if !done.isEmpty {
            try tx.deleteDelayed(
                done,
                of: caller.userID,
                for: place,
                in: chat,
                keepingKeys: true
            )
            try tell(caller.userID, place, gone: done, except: caller.connectionID, in: tx)
        }
        return MsgDeleteReply(
            chatID: request.chatID,
            messageIDs: done,
            failedMessageIDs: failed.isEmpty ? nil : failed
        )
    }

    // MARK: - Sending

    /// Sends due messages, at most `delayedPerStep` of them.
    ///
    /// - Returns: the time when the next message is due, in Unix milliseconds; nil when no message
    ///   is left.
    func sendDue(in tx: WriteTransaction) throws -> Int64? {
        let due = try tx.reader.dueDelayed(at: tx.ct, limit: limits.delayedPerStep)
        for record in due { try send(record, in: tx) }
        return try tx.reader.nextDelayedTime()
    }

    private func send(_ record: DelayedRecord, in tx: WriteTransaction) throws {
        let id = record.place.wireID(for: record.sender)
        let target: Target
        do {
            guard try tx.isListed(record.sender) else { throw RequestError.notAllowed }
            target = try self.target(id, of: record.sender, in: tx)
            try requireSendable(target, from: record.sender, in: tx)
        } catch is RequestError {
            let chat = try tx.chat(id, visibleTo: record.sender)
            try tx.fail(record, in: chat)
            try tell(record.sender, record.place, put: record, failed: true, except: nil, in: tx)
            return
        }
        var chat = target.chat
        // The sender may have sent a message with the same `cid` in the meantime. It counts as the
        // same message, so do not send it again.
        let isSent =
            try chat.map {
                try tx.sent(
                    cid: record.content.cid,
                    from: record.sender,
                    on: record.device,
                    in: $0
                ) != nil
            } ?? false
        if !isSent {
            chat = try deliver(
                record.content,
                to: target,
                from: record.sender,
                on: record.device,
                except: nil,
                in: tx
            ).chat
        }
        try tx.deleteDelayed(
            [record.id],
            of: record.sender,
            for: record.place,
            in: chat,
            keepingKeys: false
        )
        try tell(record.sender, record.place, gone: [record.id], except: nil, in: tx)
    }

    /// Notifies the sender's sessions, except `connection`, that a scheduled message was stored,
    /// failed, or is no longer scheduled.
    private func tell(
        _ sender: UserID,
        _ place: ChatPlace,
        put record: DelayedRecord? = nil,
        gone: [MessageID]? = nil,
        failed: Bool = false,
        except connection: ConnectionID?,
        in tx: WriteTransaction
    ) throws {
        let reader = try tx.flushedReader()
        let chatID = place.wireID(for: sender)
        let time = try reader.view(chatID, for: sender)?.delayedUpdated ?? tx.ct
        let push = NotifMsgDelayed(
            chatID: chatID,
            lastDelayedUpdateTime: time,
            lastFireDelayedErrorTime: failed ? time : nil,
            message: try record.map { try reader.message($0) },
            messageIDs: gone
        )
        tx.emit(.push(.notifMsgDelayed(push), to: [sender], except: connection))
    }
}
