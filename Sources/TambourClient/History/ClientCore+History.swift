import TambourProtocol

/// Applying knowledge about histories, and requesting missing messages.
extension ClientCore {
    /// What is known about the message before another message.
    enum Predecessor {
        case unknown
        /// The id of the preceding message, visible or not; nil for the chat's first message.
        case known(MessageID?)
    }

    // MARK: - Learning

    /// Stores a message. If its predecessor is known, no message lies between the two.
    ///
    /// - Returns: whether the message is new on this device.
    @discardableResult
    func learn(
        _ message: Message,
        after previous: Predecessor,
        in chat: ChatID,
        isPushed: Bool = false,
        _ tx: StoreTransaction
    ) throws -> Bool {
        let position = Position(message.id.rawValue)
        let isNew = try !tx.holds(message.id, in: chat)
        // A chat outside of the list has no mark from which to request later changes of its
        // messages.
        let isListed = try tx.isListed(chat) || tx.commentThread(chat) != nil
        try change(chat, with: [message], isPushed: isPushed, tx) { history in
            guard isListed, case .known(let before) = previous else {
                return history.island(position)
            }
            let evidence = Evidence.message(position, after: before.map { Position($0.rawValue) })
            return evidence.map { history.apply($0) } ?? HistoryEffects()
        }
        try startChanges(of: chat, tx)
        return isNew
    }

    /// Stores the newest message of a chat, as received with a list of chats.
    func learnNewest(
        _ message: Message?,
        after previous: MessageID?,
        in chat: ChatID,
        _ tx: StoreTransaction
    ) throws {
        guard let safe: Int64 = try tx.value(of: .chatsMark) else { return }
        let evidence = Evidence.newest(
            message.map { Position($0.id.rawValue) },
            after: previous.map { Position($0.rawValue) },
            safeTimeMs: safe
        )
        guard let evidence else { return }
        try change(chat, with: message.map { [$0] } ?? [], isPushed: false, tx) {
            $0.apply(evidence)
        }
        try startChanges(of: chat, tx)
    }

    /// Handles an edit of a message that may be stored here.
    func learnEdit(
        of message: Message,
        in chat: ChatID,
        isPushed: Bool = true,
        _ tx: StoreTransaction
    ) throws {
        let isReading = screens.isReading(chat)
        let position = Position(message.id.rawValue)
        try change(chat, with: [message], isPushed: isPushed, tx) {
            $0.edit([position], isReading: isReading)
        }
        if try tx.describedChat(chat)?.pinnedMessage?.id == message.id { try refresh(chat, tx) }
    }

    /// Handles the deletion of messages.
    func forget(_ messages: [MessageID], in chat: ChatID, _ tx: StoreTransaction) throws {
        try change(chat, with: [], isPushed: false, tx) {
            $0.delete(messages.map { Position($0.rawValue) })
        }
        guard let known = try tx.chatRow(chat) else { return }
        // A deleted message may have been the newest message, an unread message or the pinned
        // message.
        let pinned = try tx.describedChat(chat)?.pinnedMessage?.id
        let important = [known.newest, pinned].compactMap { $0 }
        if known.unread > 0 || important.contains(where: messages.contains) {
            try refresh(chat, tx)
        }
    }

    /// Handles the deletion of all messages between two times.
    func empty(_ chat: ChatID, fromMs: Int64, throughMs: Int64, _ tx: StoreTransaction) throws {
        guard let evidence = Evidence.emptied(fromMs: fromMs, throughMs: throughMs) else { return }
        try change(chat, with: [], isPushed: false, tx) { $0.apply(evidence) }
        try refresh(chat, tx)
    }

    /// Forgets the history of a chat whose rows have been deleted.
    func forgetHistory(of chat: ChatID) {
        histories.forget(chat)
        screens.forget(chat)
    }

    /// Handles data loss on the server. The stored messages stay visible, but the client assumes
    /// gaps between all of these messages.
    func distrustHistories(_ tx: StoreTransaction) throws {
        histories.forgetAll()
        try tx.distrustHistories()
    }

    func change(
        _ chat: ChatID,
        with messages: [Message],
        revision: Int64? = nil,
        isPushed: Bool,
        _ tx: StoreTransaction,
        _ body: (inout ChatHistory) -> HistoryEffects
    ) throws {
        try histories.change(
            chat,
            with: messages,
            revision: revision,
            isPushed: isPushed,
            tx,
            body
        )
        // A push to all members lacks this account's reaction, and a page that arrives after the
        // push may contain older reactions. Therefore request the reactions.
        for message in tx.outrun { try askReactions(to: message, in: chat, tx) }
        tx.outrun = []
    }

    /// Starts the cursor for changes of a chat's messages. The cursor starts at the last login
    /// before the first message of the chat is stored.
    private func startChanges(of chat: ChatID, _ tx: StoreTransaction) throws {
        guard let mark: Int64 = try tx.value(of: .chatsMark) else { return }
        try tx.startChanges(of: chat, sinceMs: mark)
    }

    // MARK: - Requesting

    /// Records which messages are on the screen, and requests the missing messages.
    ///
    /// - Parameters:
    ///   - position: the message at the edge of the screen towards which the reader scrolls; nil at
    ///     the newest end.
    ///   - visible: the messages on the screen, oldest first. Gaps between them are filled.
    ///   - process: the `owner` of the process that shows the chat; empty for this process.
    func look(
        at chat: ChatID,
        position: MessageID?,
        isGoingBack: Bool,
        rowsOnScreen: Int,
        visible: [MessageID],
        for process: String = "",
        _ tx: StoreTransaction
    ) throws {
        let looker = Looker(chat: chat, process: process)
        var screen =
            screens[looker]
            ?? Screen(
                direction: .backward,
                rowsOnScreen: rowsOnScreen,
                visible: [],
                reader: HistoryReader(pageSize: options.historyPage)
            )
        screen.position = position.map { Position($0.rawValue) }
        screen.direction = isGoingBack ? .backward : .forward
        screen.rowsOnScreen = rowsOnScreen
        screen.visible = visible.map { Position($0.rawValue) }
        screens[looker] = screen
        if isElsewhere { return try tellLook(at: chat, screen, tx) }
        try readHistory(for: looker, tx)
        try readAnswered(for: looker, tx)
        try askCommentCounts(on: visible, in: chat, tx)
    }

    /// Requests the message that the draft of a chat answers, if it is not stored. The draft may
    /// come from another device.
    private func readAnswered(for looker: Looker, _ tx: StoreTransaction) throws {
        let chat = looker.chat
        guard isLive, try tx.commentThread(chat) == nil,
            let message = try tx.draft(of: chat)?.replyTo, screens[looker]?.answered != message,
            try !tx.holds(message, in: chat)
        else { return }
        screens[looker]?.answered = message
        call(MsgGetRequest(chatID: chat, messageIDs: [message])) { [self] answer, tx in
            // Without an answer the draft shows no quote, like a draft that answers a deleted
            // message.
            guard case .success(let reply) = answer else { return }
            for message in reply.messages { try learn(message, after: .unknown, in: chat, tx) }
        }
    }

    /// Records that the chat is no longer on the screen.
    func lookAway(from chat: ChatID) {
        screens.lookAway(from: chat)
        guard comments.asked.contains(chat) else { return }
        run { [self] tx in try closeComments(chat, tx) }
    }

    /// On a new connection, requests the missing messages of all screens again.
    func readHistories(_ tx: StoreTransaction) throws {
        screens.reconnected()
        for looker in screens.lookers { try readHistory(for: looker, tx) }
    }

    /// Fills gaps that these changes may have caused on screens, without waiting for the next look.
    func readHistories(of changes: ChangeSet, _ tx: StoreTransaction) throws {
        let changed = changes.chats.union(changes.histories)
        for looker in screens.lookers where changed.contains(looker.chat) {
            try readHistory(for: looker, tx)
        }
    }

    func readHistory(for looker: Looker, _ tx: StoreTransaction) throws {
        guard isLive, var screen = screens[looker] else { return }
        let chat = looker.chat
        let thread = try tx.commentThread(chat)
        if thread == nil { try readScheduled(of: chat, tx) }
        let place = MessagePlace(chat, thread)
        let known = try tx.chatRow(place.chat)
        guard let known, !known.isGone, let safe: Int64 = try tx.value(of: .chatsMark) else {
            return forgetOther(looker)
        }
        var newest = known.newest
        if let thread {
            guard thread.isOpen else { return try openComments(thread, tx) }
            newest = thread.newest
        } else if known.isMissingChanges, !screen.hasAskedChanges,
            !wire.requests.isOpen(.changes(chat))
        {
            screen.hasAskedChanges = true
            try askChanges(of: chat, tx)
        }
        let end = ChatEnd(newest: newest.map { Position($0.rawValue) }, safeTimeMs: safe)
        let history = try histories.history(of: chat, tx)
        let gap = screen.reader.request(toFillGapsBetween: screen.visible, in: history, end: end)
        if let gap { ask(gap, of: place, for: looker, try tx.nextRevision()) }
        let viewport = try viewport(of: screen, in: chat, history, end, tx)
        if let more = screen.reader.request(for: viewport, in: history, end: end) {
            ask(more, of: place, for: looker, try tx.nextRevision())
        }
        screens[looker] = screen
        if !screen.reader.isReading { forgetOther(looker) }
    }

    /// Removes the screen of another process, because that process reports its next look itself.
    func forgetOther(_ looker: Looker) {
        if !looker.process.isEmpty { screens[looker] = nil }
    }

    private func viewport(
        of screen: Screen,
        in chat: ChatID,
        _ history: ChatHistory,
        _ end: ChatEnd,
        _ tx: StoreTransaction
    ) throws -> HistoryViewport {
        let position = screen.position ?? end.position
        var ahead: [Position] = []
        if let chunk = history.chunk(containing: position) {
            let limit = screen.rowsOnScreen * 2 + 2
            ahead =
                switch screen.direction {
                case .backward:
                    try tx.positions(in: chat, before: position, downTo: chunk.lower, limit: limit)
                case .forward:
                    try tx.positions(in: chat, after: position, upTo: chunk.upper, limit: limit)
                }
        }
        return HistoryViewport(
            position: screen.position,
            direction: screen.direction,
            rowsOnScreen: screen.rowsOnScreen,
            rowsAhead: ahead.count,
            lastRowAhead: ahead.last
        )
    }

    private func ask(
        _ request: HistoryRequest,
        of place: MessagePlace,
        for looker: Looker,
        _ revision: Int64
    ) {
        histories.countRequest()
        let chat = looker.chat
        let query = ChatHistoryRequest(
            chatID: place.chat,
            from: request.fromMs,
            forward: Int64(request.forward),
            backward: Int64(request.backward),
            backwardTime: request.backwardTimeMs,
            forwardTime: request.forwardTimeMs,
            postID: place.post
        )
        call(query) { [self] answer, tx in
            let reply: ChatHistoryReply
            switch answer {
            case .success(let success): reply = success
            case .failure(let error):
                screens[looker]?.reader.ended(request)
                if error != .disconnected { forgetOther(looker) }
                // The pause that the server requests ends with a login, which requests the missing
                // messages again.
                if case .refused(_, _, _?) = error { try syncFailed(error, tx) }
                return
            }
            let messages = reply.messages ?? []
            let found = messages.map { Position($0.id.rawValue) }
            // The page is valid evidence even if no screen shows the chat now.
            let evidence =
                screens[looker]?.reader.answered(request, found: found, more: reply.more)
                ?? request.evidence(found: found, more: reply.more)
            if let evidence {
                try change(chat, with: messages, revision: revision, isPushed: false, tx) {
                    $0.apply(evidence)
                }
                try startChanges(of: chat, tx)
            }
            try readHistory(for: looker, tx)
        }
    }

    /// Requests changes of the stored messages.
    func askChanges(of chat: ChatID, _ tx: StoreTransaction) throws {
        guard let asked = try tx.chatRow(chat)?.changes else { return }
        let revision = try tx.nextRevision()
        let generation = try histories.history(of: chat, tx).generation
        let request = ChatChangesRequest(
            chatID: chat,
            since: asked.sinceMs,
            messageID: asked.behind.map { MessageID($0.rawValue) }
        )
        call(request, as: .changes(chat)) { [self] answer, tx in
            let reply: ChatChangesReply
            switch answer {
            case .success(let success): reply = success
            // The account is not in the chat.
            case .failure(.refused(_, _, nil)): return
            case .failure(let error): return try syncFailed(error, tx)
            }
            let changes = MessageChanges(
                changed: reply.messages.map { Position($0.id.rawValue) },
                removed: reply.removedIDs.map { Position($0.rawValue) },
                clearedThrough: reply.clearedID.map { Position($0.rawValue) },
                isResync: reply.resync == true,
                timeMs: reply.time,
                next: reply.messageID.map { Position($0.rawValue) }
            )
            let isReading = screens.isReading(chat)
            var isBelieved = true
            try change(chat, with: reply.messages, revision: revision, isPushed: false, tx) {
                let effects = $0.apply(changes, asked: generation, isReading: isReading)
                isBelieved = effects != nil
                return effects ?? HistoryEffects()
            }
            // If the history was discarded in the meantime, the cursor stays.
            guard isBelieved else { return }
            var cursor = asked
            cursor.advance(past: changes, asked: asked)
            try tx.put(cursor, of: chat)
            if cursor.behind != nil { try askChanges(of: chat, tx) }
            for looker in screens.lookers where looker.chat == chat {
                try readHistory(for: looker, tx)
            }
        }
    }

    /// Completes the catch-up after a login: requests message changes for the chats at the top of
    /// the list.
    func synced(_ tx: StoreTransaction) throws {
        try readHistories(tx)
        let chats = try tx.chatsMissingChanges(limit: 20)
        for chat in chats where !wire.requests.isOpen(.changes(chat)) {
            try askChanges(of: chat, tx)
        }
    }
}
