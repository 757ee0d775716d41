import TambourEvents
import TambourProtocol
import TambourStore

/// Family `chats`: reading chats, history, read marks. Wire: protocol-spec/opcodes/chats.yaml
struct ChatsHandler: Sendable {
    let limits: Limits
    let environment: Environment
    let session: SessionHandler
    /// The commit time up to which the store's change times are incomplete; 0 if all are complete.
    /// CHAT_CHANGES asks clients with cursors up to this time to resync.
    var changesUnknown: Int64 = 0

    /// Answers `CHAT_INFO` (48): returns the requested chats. Omits chats of which the caller is
    /// not a member, and chats that do not fit the reply.
    ///
    /// - Note: A query.
    func chatInfo(
        _ request: ChatInfoRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Progress<ReadTransaction, ChatInfoReply> {
        var seen: Set<ChatID> = []
        let ids = request.chatIDs.filter { seen.insert($0).inserted }
        let state = (budget: caller.replyBudget, chats: [Chat]())
        return try snapshot.inSteps(ids[...], state) { id, state, snapshot in
            guard let chat = try chat(id, for: caller, in: snapshot) else { return true }
            state.budget -= chat.wireSizeEstimate
            if state.budget < 0, !state.chats.isEmpty { return false }
            state.chats.append(chat)
            return true
        } finish: { state, _ in
            ChatInfoReply(chats: state.chats)
        }
    }

    /// Answers `CHAT_HISTORY` (49): returns at most `backward` messages at or before `from`, and at
    /// most `forward` messages after it.
    ///
    /// - Throws: `chat.not.found` (also when not a member), `proto.payload` for negative counts.
    /// - Note: A query.
    func chatHistory(
        _ request: ChatHistoryRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatHistoryReply {
        guard request.backward >= 0 else { throw RequestError.protoPayload("/backward: negative") }
        guard request.forward >= 0 else { throw RequestError.protoPayload("/forward: negative") }
        let chat = request.getChat ? try chat(request.chatID, for: caller, in: snapshot) : nil
        var page = HistoryPage()
        if request.getMessages, request.itemType == .delayed, request.postID == nil {
            page.messages = try delayed(request.chatID, of: caller, in: snapshot)
        }
        // Check the access to the chat only if there are no scheduled messages. The caller may list
        // these even if they can no longer be sent to the chat.
        let view =
            page.messages.isEmpty
            ? try snapshot.begun(request.chatID, request.postID, of: caller.userID) : nil
        if let view, request.getMessages, request.itemType != .delayed {
            let now = environment.wallMs()
            let newest = Int64.max >> 16
            var from = request.from ?? (request.backward > 0 ? newest : 0)
            // If `from` is now or later, the client wants the newest messages. There is one
            // exception: in a burst, message times run ahead of the clock. If a message has exactly
            // the time `from`, the page starts at this message.
            if from < 0 {
                from = newest
            } else if from >= now, try snapshot.head(of: view.key, at: from).id.timeMs != from {
                from = newest
            }
            let backward = Int(count: min(request.backward, Int64(limits.maxHistoryPage)))
            let forward = Int(count: min(request.forward, Int64(limits.maxHistoryPage)))
            page = try snapshot.history(
                of: view.key,
                at: view.address,
                for: caller.userID,
                above: view.floor,
                from: from,
                backward: backward,
                forward: forward,
                earliest: bound(request.backwardTime) ?? 0,
                latest: bound(request.forwardTime) ?? .max,
                pageLimit: limits.maxHistoryPage,
                budget: caller.replyBudget - (chat?.wireSizeEstimate ?? 0)
            )
        }
        return ChatHistoryReply(
            messages: request.getMessages ? page.messages : nil,
            chat: chat,
            more: page.more
        )
    }

    /// Answers `CHAT_CHANGES` (1030): returns the messages that were changed or deleted after a
    /// cursor.
    ///
    /// - Throws: `chat.not.found`; `proto.payload` for a count below 1, or a negative cursor.
    /// - Note: A query.
    func chatChanges(
        _ request: ChatChangesRequest,
        from call: QueryCall,
        in snapshot: ReadTransaction
    ) throws -> ChatChangesReply {
        guard request.count ?? 1 > 0 else { throw RequestError.protoPayload("/count: below 1") }
        guard request.since >= 0 else { throw RequestError.protoPayload("/since: below 0") }
        let (caller, time) = (call.caller, call.time)
        let view = try snapshot.begun(request.chatID, request.postID, of: caller.userID)
        var reply = ChatChangesReply(time: time)
        if changesUnknown > 0, request.since <= changesUnknown {
            reply.resync = true
            return reply
        }
        guard let view else { return reply }
        if view.floor.rawValue > 0 { reply.clearedID = view.floor }
        let most = Int64(limits.maxHistoryPage)
        let count = Int(clamping: min(request.count ?? most, most))
        // A cursor without a message id comes after all changes of its millisecond.
        let mark = (time: request.since, message: request.messageID ?? MessageID(.max))
        let changes = try snapshot.changes(in: view, after: mark, limit: count + 1)
        var budget = caller.replyBudget
        var last = mark
        for change in changes.prefix(count) {
            let record = try snapshot.visibleRecord(
                change.message,
                in: view.key,
                for: caller.userID,
                above: view.floor
            )
            if let record {
                let message = try snapshot.message(
                    record,
                    at: view.address,
                    for: view.viewpoint
                )
                budget -= message.wireSizeEstimate
                if budget < 0, !reply.messages.isEmpty || !reply.removedIDs.isEmpty { break }
                reply.messages.append(message)
            } else {
                reply.removedIDs.append(change.message)
            }
            last = change
        }
        guard let newest = changes.last, newest != last else { return reply }
        // The new cursor must not be later than `time`. After `time`, more changes may still
        // appear, even between the changes read here.
        (reply.time, reply.messageID) =
            last.time <= time ? (last.time, last.message) : (time, MessageID(.max))
        return reply
    }

    /// Returns the messages that the caller has scheduled in a chat, the earliest first. The anchor
    /// of the request and its numbers of messages have no effect. A scheduled message may answer
    /// another message. The reply includes the answered message only while there is room.
    private func delayed(
        _ id: ChatID,
        of caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> [Message] {
        let place = ChatPlace(id, for: caller.userID)
        var room = caller.replyBudget / 2
        return try snapshot.delayed(of: caller.userID, for: place).map { record in
            let message = try snapshot.message(record)
            room -= message.wireSizeEstimate - record.wireSizeEstimate
            return room >= 0 ? message : record.message(link: record.content.forward)
        }
    }

    /// Answers `CHAT_MARK` (50): raises the caller's read mark. The type `SET_AS_UNREAD` lowers it.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A command.
    func chatMark(
        _ request: ChatMarkRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatMarkReply {
        guard let chat = try tx.chat(request.chatID, visibleTo: caller.userID),
            let member = try tx.member(caller.userID, of: chat)
        else {
            try tx.reader.requireDialog(request.chatID, of: caller.userID)
            return ChatMarkReply(unread: 0, mark: 0)
        }
        var setAsUnread = false
        let before = (own: member.readTime, shown: member.shownTime)
        switch request.type {
        case .readReaction:
            break
        case .readMessage:
            let mark = MarkRules.readMark(
                asked: request.mark,
                message: request.messageID.map(\.timeMs),
                lastMessage: chat.head.id.timeMs,
                now: max(tx.ct, chat.head.id.timeMs)
            )
            try tx.raiseRead(to: mark, of: caller.userID, in: chat)
        case .setAsUnread:
            setAsUnread = true
            // The first unread message is the named message. If the request names no message, it is
            // the message at the requested mark. If the request has no mark either, it is the last
            // message.
            let asked = request.messageID?.timeMs ?? request.mark ?? chat.head.id.timeMs
            let first = max(1, min(asked, chat.head.id.timeMs))
            try tx.lowerRead(to: first - 1, of: caller.userID, in: chat)
        }
        // Other members get a push only if the mark that they see has changed.
        let tellsOwn = member.readTime != before.own
        let tellsOthers = member.shownTime != before.shown && !chat.isBig
        if tellsOwn || tellsOthers {
            let push = NotifMark(
                chatID: chat.wireID,
                userID: caller.userID,
                // If the push goes to the caller and to others, both marks are equal.
                mark: tellsOwn ? member.readTime : member.shownTime,
                setAsUnread: setAsUnread
            )
            let hear =
                tellsOthers
                ? chat.memberIDs.filter { tellsOwn || $0 != caller.userID } : [caller.userID]
            tx.emit(.push(.notifMark(push), to: hear, except: caller.connectionID))
        }
        return ChatMarkReply(
            unread: try tx.unread(of: caller.userID, in: chat),
            mark: member.readTime
        )
    }

    /// Answers `CHATS_LIST` (53): returns chats whose last event is before `marker`, the newest
    /// first.
    ///
    /// - Note: A query.
    func chatsList(
        _ request: ChatsListRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatsListReply {
        let asked = request.count ?? Int64(limits.chatsPageSize)
        let count = Int(clamping: min(max(1, asked), Int64(limits.maxChatsPage)))
        let page = try snapshot.chatsPage(
            for: caller.userID,
            from: try cursor(request.marker, of: caller, in: snapshot),
            limit: count,
            budget: caller.replyBudget
        )
        return ChatsListReply(chats: page.chats, marker: page.next)
    }

    /// Reads a marker of `CHATS_LIST`.
    ///
    /// Marker 0 means the newest chats, because one client begins with 0. A future time also means
    /// the newest chats, because the client's clock may run ahead.
    ///
    /// There is one exception. After a burst, or after the server's clock was set back, a chat's
    /// time may be in the future. If a page ended at such a chat, the next page continues after
    /// this chat.
    private func cursor(
        _ marker: Int64?,
        of caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatCursor {
        guard let marker, marker != 0 else { return .newest }
        if let cursor = ChatCursor(insideMillisecond: marker) { return cursor }
        if marker >= environment.wallMs(),
            try snapshot.chatCount(of: caller.userID, lastActiveAt: marker) == 0
        {
            return .newest
        }
        return ChatCursor(before: marker)
    }

    /// Answers `CHAT_SUBSCRIBE` (75): starts or ends a subscription. For a dialog, the connection
    /// starts to follow the partner's presence. Clients receive the pushes of a chat without a
    /// subscription. Pushes about comments are sent only to connections that have opened the
    /// comments.
    ///
    /// - Throws: `chat.not.found`, `not.found`.
    /// - Note: A query.
    func chatSubscribe(
        _ request: ChatSubscribeRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Answer {
        Answer(
            .reply(ChatSubscribeReply()),
            interest: try interest(in: request, of: caller, in: snapshot)
        )
    }

    /// Returns the subscription that the caller's connection starts or ends.
    private func interest(
        in request: ChatSubscribeRequest,
        of caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Interest? {
        if let post = request.postID {
            let address = MessageAddress(chatID: request.chatID, postID: post)
            // Any caller may end a subscription, so check the access only when one starts.
            guard request.subscribe else { return .closed(address) }
            _ = try snapshot.known(request.chatID, post, of: caller.userID)
            return .opened(address)
        }
        let isDialog = try followsPresence(of: request.chatID, caller, in: snapshot)
        return isDialog && request.subscribe ? .dialog(request.chatID) : nil
    }

    /// Returns whether the caller can follow the presence of a chat's partner. This needs a dialog
    /// that has begun, and a partner whom the caller can reach.
    private func followsPresence(
        of id: ChatID,
        _ caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Bool {
        guard let view = try snapshot.begunView(id, of: caller.userID),
            let partner = view.partner
        else { return false }
        return try snapshot.isReachable(partner, for: caller.userID)
    }

    /// Answers `CHAT_PERSONAL_CONFIG` (61): returns the chat in the form that the caller sees.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func chatPersonalConfig(
        _ request: ChatPersonalConfigRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatPersonalConfigReply {
        guard let chat = try chat(request.chatID, for: caller, in: snapshot) else {
            throw RequestError.chatNotFound
        }
        return ChatPersonalConfigReply(chat: chat)
    }

    /// Answers `CHAT_PIN_SET_VISIBILITY` (86): sets whether the caller's devices show the pinned
    /// message. The choice is stored as the setting `hidePinned` of the chat.
    ///
    /// - Throws: `chat.not.found`, `proto.payload` for too many settings.
    /// - Note: A command.
    func chatPinSetVisibility(
        _ request: ChatPinSetVisibilityRequest,
        from requester: Requester,
        in tx: WriteTransaction
    ) throws -> ChatPinSetVisibilityReply {
        // Null removes a setting.
        let value = request.show ? AnyValue(unchecked: Bytes([0xC0])) : AnyValue(true)
        let chats = IDMap([(request.chatID, NameMap([(Text("hidePinned"), value)]))])
        let change = ConfigRequest(settings: SettingsChange(chats: chats))
        _ = try session.config(change, from: requester, in: tx)
        return ChatPinSetVisibilityReply()
    }

    /// Answers `CHAT_HIDE` (196): hides a chat until its next message, or shows it again.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A command.
    func chatHide(
        _ request: ChatHideRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatHideReply {
        guard let chat = try tx.chat(request.chatID, visibleTo: caller.userID) else {
            try tx.reader.requireDialog(request.chatID, of: caller.userID)
            return ChatHideReply()
        }
        let changed =
            try request.hide == false
            ? tx.bringBack(chat, for: caller.userID) : tx.hide(chat, for: caller.userID)
        if changed {
            let push = NotifChat(chat: try tx.seen(chat, by: caller.userID))
            tx.emit(.push(.notifChat(push), to: [caller.userID], except: caller.connectionID))
        }
        return ChatHideReply()
    }

    /// Returns the chat in the form that clients receive. The chat of saved messages exists even
    /// while it is empty.
    private func chat(
        _ id: ChatID,
        for caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Chat? {
        if let view = try snapshot.view(id, for: caller.userID) { return try snapshot.chat(view) }
        guard id.partner(of: caller.userID) == caller.userID,
            let account = try snapshot.account(caller.userID)
        else { return nil }
        return ChatObject(
            id: id,
            kind: .saved,
            owner: caller.userID,
            created: account.registered,
            joined: account.registered,
            modified: account.registered,
            lastEvent: account.registered,
            participants: IDMap([(caller.userID, 0)]),
            details: nil,
            admins: nil,
            messages: ChatObject.Messages(last: nil, previous: nil, pinned: nil, unread: 0)
        ).wire
    }

    private func bound(_ time: Int64?) -> Int64? {
        guard let time, time > 0 else { return nil }
        // The last millisecond that a message id can represent.
        return min(time, Int64.max >> 16)
    }
}
