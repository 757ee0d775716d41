import TambourEvents
import TambourProtocol
import TambourStore

/// Deletes messages. Each step deletes at most `deletedPerStep` messages.
extension MessagesHandler {
    /// Answers `MSG_DELETE` (66): deletes messages for the caller alone, or for everybody.
    ///
    /// Users may delete their own messages for everybody. The role table says which roles may
    /// delete messages of other users. The reply lists the messages that cannot be deleted.
    /// Messages that are already deleted are not in this list.
    /// - Throws: `chat.not.found`.
    /// - Note: A command, `deletedPerStep` messages at a time.
    func msgDelete(
        _ request: MsgDeleteRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Progress<WriteTransaction, MsgDeleteReply> {
        if request.itemType == .delayed {
            return .finished(try deleteDelayed(request, from: caller, in: tx))
        }
        var seen: Set<MessageID> = []
        let ids = request.messageIDs.filter { seen.insert($0).inserted }
        let none = MsgDeleteReply(chatID: request.chatID, messageIDs: [])
        return try delete(ids[...], none, as: request, from: caller, in: tx)
    }

    /// - Parameter reply: the results of the earlier steps.
    private func delete(
        _ ids: ArraySlice<MessageID>,
        _ reply: MsgDeleteReply,
        as request: MsgDeleteRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Progress<WriteTransaction, MsgDeleteReply> {
        let chat = try tx.known(request.chatID, request.postID, to: caller.userID)
        var done: [MessageRecord] = []
        var failed: [MessageID] = []
        var gone: [MessageID] = []
        let floor = try tx.member(caller.userID, of: chat)?.floor ?? MessageID(0)
        for id in ids.prefix(limits.deletedPerStep) {
            guard id > floor, let record = try tx.record(id, in: chat) else {
                failed.append(id)
                continue
            }
            if record.status == .removed {
                gone.append(id)
            } else if try request.forMe || mayRemove(record, in: chat, caller, tx) {
                done.append(record)
            } else {
                failed.append(id)
            }
        }
        let deleted = done.map(\.id)
        if request.forMe {
            try requireRoom(toHide: deleted, in: chat, for: caller, tx)
            try tx.hide(deleted, in: chat, for: caller.userID)
        } else {
            try tx.remove(done, in: chat)
        }
        if !done.isEmpty {
            if request.forMe {
                let push = NotifMsgDelete(
                    chatID: chat.wireID,
                    postID: chat.post?.id,
                    messageIDs: deleted
                )
                tx.emit(
                    .push(
                        .notifMsgDelete(push),
                        to: [caller.userID],
                        except: caller.connectionID
                    )
                )
            } else {
                try tx.tellDeleted(
                    deleted,
                    in: chat,
                    except: caller.connectionID,
                    limits: limits
                )
            }
        }
        var reply = reply
        reply.chatID = chat.wireID
        reply.messageIDs += deleted + gone
        if !failed.isEmpty { reply.failedMessageIDs = (reply.failedMessageIDs ?? []) + failed }
        let rest = ids.dropFirst(limits.deletedPerStep)
        guard !rest.isEmpty else { return .finished(reply) }
        return .more { [reply] in try delete(rest, reply, as: request, from: caller, in: $0) }
    }

    private func requireRoom(
        toHide ids: [MessageID],
        in chat: ChatState,
        for caller: Caller,
        _ tx: WriteTransaction
    ) throws {
        let fresh = try ids.filter {
            try !tx.reader.isHidden($0, in: chat.key, for: caller.userID)
        }
        guard !fresh.isEmpty else { return }
        let count = try tx.hiddenCount(in: chat, of: caller.userID)
        guard count + fresh.count <= limits.maxHiddenPerChat else {
            throw RequestError.protoPayload(
                "/forMe: limit \(limits.maxHiddenPerChat) messages of a chat; clear it"
            )
        }
    }

    /// Answers `MSG_DELETE_RANGE` (92): deletes the messages that were sent between two times, for
    /// everybody.
    ///
    /// If the caller may clear the history for everybody, deletes the messages of all users.
    /// Otherwise deletes only the caller's own messages.
    /// - Throws: `chat.not.found`, `not.allowed` for readers of a channel, `proto.payload` for an
    ///   invalid range of times or a range with more than `maxDeletedRange` messages.
    /// - Note: A command, `deletedPerStep` messages at a time.
    func msgDeleteRange(
        _ request: MsgDeleteRangeRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Progress<WriteTransaction, MsgDeleteRangeReply> {
        let chat = try tx.knownChat(request.chatID, to: caller.userID)
        guard request.startTime > 0 else { throw RequestError.protoPayload("/startTime: none") }
        guard request.endTime >= request.startTime else {
            throw RequestError.protoPayload("/endTime: before the start")
        }
        let isAll = try ChatRules.may(.clearForAll, caller.userID, in: chat, tx)
        if !isAll { try ChatRules.require(.send, of: caller.userID, in: chat, tx) }
        let floor = try tx.member(caller.userID, of: chat)?.floor ?? MessageID(0)
        let first = max(MessageID.last(at: request.startTime - 1), floor)
        let last = min(MessageID.last(at: request.endTime), chat.head.id)
        let reader = try tx.flushedReader()
        let count =
            try reader.head(of: chat.key, at: last.timeMs).number
            - reader.head(of: chat.key, at: first.timeMs).number
        guard count <= limits.maxDeletedRange else {
            throw RequestError.protoPayload(
                "/endTime: \(count) messages, limit \(limits.maxDeletedRange)"
            )
        }
        let range = NotifMsgDeleteRange(
            chatID: chat.wireID,
            startTime: max(request.startTime, floor.timeMs + 1),
            endTime: min(request.endTime, last.timeMs)
        )
        return try deleteRange(after: first, upTo: last, range, from: caller, in: tx)
    }

    /// - Parameters:
    ///   - range: the push that the last step sends.
    ///   - hasDeleted: whether an earlier step deleted something.
    private func deleteRange(
        after first: MessageID,
        upTo last: MessageID,
        _ range: NotifMsgDeleteRange,
        hasDeleted: Bool = false,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> Progress<WriteTransaction, MsgDeleteRangeReply> {
        let chat = try tx.knownChat(range.chatID, to: caller.userID)
        let isAll = try ChatRules.may(.clearForAll, caller.userID, in: chat, tx)
        if !isAll { try ChatRules.require(.send, of: caller.userID, in: chat, tx) }
        let part = try tx.part(of: chat, after: first, limit: limits.deletedPerStep)
        let end = min(part?.last ?? last, last)
        let sender = isAll ? nil : caller.userID
        let deleted = try tx.remove(after: first, upTo: end, sentBy: sender, in: chat)
        let hasDeleted = hasDeleted || !deleted.isEmpty
        let isLast = part?.count != limits.deletedPerStep || end == last
        if isAll, hasDeleted, isLast {
            let members = chat.memberIDs
            tx.emit(.push(.notifMsgDeleteRange(range), to: members, except: caller.connectionID))
        }
        try tx.tellDeleted(deleted, in: chat, except: caller.connectionID, limits: limits)
        guard isLast else {
            return .more {
                try deleteRange(
                    after: end,
                    upTo: last,
                    range,
                    hasDeleted: hasDeleted,
                    from: caller,
                    in: $0
                )
            }
        }
        return .finished(MsgDeleteRangeReply(chat: try tx.seen(chat, by: caller.userID)))
    }

    private func mayRemove(
        _ record: MessageRecord,
        in chat: ChatState,
        _ caller: Caller,
        _ tx: WriteTransaction
    ) throws -> Bool {
        if isEvent(record, in: chat) { return false }
        // Authors may delete their comments even when commenting is turned off.
        if record.sender == caller.userID, chat.kind == .comments { return true }
        if record.sender == caller.userID, try ChatRules.may(.send, caller.userID, in: chat, tx) {
            return true
        }
        return try ChatRules.may(.deleteOthers, caller.userID, in: chat, tx)
    }

    /// Returns whether a message records the creation of the chat, or another event in it. No user
    /// is the author of such a message.
    func isEvent(_ record: MessageRecord, in chat: ChatState) -> Bool {
        record.device == .server || chat.kind.isJoined && record.number == 1
    }
}
