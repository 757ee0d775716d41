import TambourProtocol
import TambourStore

/// Family `search`: messages by their words and attachments, people by name and phone.
/// Wire: protocol-spec/opcodes/search.yaml
struct SearchHandler: Sendable {
    let limits: Limits
    let found: FoundPeople

    // MARK: - Messages

    /// Answers `CHAT_SEARCH` (68): finds messages in all the caller's chats, newest first.
    ///
    /// - Throws: `proto.payload` for a negative count.
    /// - Note: A query.
    func chatSearch(
        _ request: ChatSearchRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatSearchReply {
        let limit = try pageSize(request.count)
        guard let query = SearchQuery(request.query, limits) else { return ChatSearchReply() }
        let page = try snapshot.search(
            query,
            for: caller.userID,
            below: request.marker,
            limit: limit
        )
        let (found, marker) = try results(page, of: query, for: caller, in: snapshot)
        return ChatSearchReply(result: found, marker: marker)
    }

    /// Answers `MSG_SEARCH` (73): finds messages in one chat, or in all the caller's chats when the
    /// request names no chat.
    ///
    /// - Throws: `chat.not.found` (also when not a member), `proto.payload` for a negative count.
    /// - Note: A query.
    func msgSearch(
        _ request: MsgSearchRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> MsgSearchReply {
        let limit = try pageSize(request.count)
        var view: ChatView?
        if let chat = request.chatID {
            view = try snapshot.begunView(chat, of: caller.userID)
            guard view != nil else { return MsgSearchReply() }
        }
        guard let query = SearchQuery(request.query, limits) else { return MsgSearchReply() }
        let below = request.marker
        let page =
            if let view {
                try snapshot.search(query, in: view, below: below, limit: limit)
            } else {
                try snapshot.search(query, for: caller.userID, below: below, limit: limit)
            }
        let (found, marker) = try results(page, of: query, for: caller, in: snapshot)
        return MsgSearchReply(result: found, marker: marker)
    }

    private func results(
        _ page: SearchPage,
        of query: SearchQuery,
        for caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> (found: [FoundMessage], marker: MessageID?) {
        let highlights = query.highlights
        let extra = highlights.reduce(16) { $0 + $1.bytes.count + 3 }
        var budget = caller.replyBudget
        var found: [FoundMessage] = []
        for hit in page.messages {
            let message = try snapshot.message(
                hit.record,
                at: hit.view.address,
                for: hit.view.viewpoint
            )
            budget -= message.wireSizeEstimate + extra
            if budget < 0, !found.isEmpty {
                // The next page begins below a message id, so all hits with the same id must be on
                // the same page.
                let fitting = found.prefix { $0.message.id != hit.record.id }
                let kept = fitting.isEmpty ? found[...] : fitting
                return (Array(kept), kept.last?.message.id)
            }
            found.append(
                FoundMessage(chatID: hit.view.wireID, message: message, highlights: highlights)
            )
        }
        return (found, page.next)
    }

    /// Answers `CHAT_MEDIA` (51): returns messages with certain kinds of attachments, oldest first.
    ///
    /// - Throws: `chat.not.found`, `proto.payload` for negative counts.
    /// - Note: A query.
    func chatMedia(
        _ request: ChatMediaRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatMediaReply {
        guard request.backward >= 0 else { throw RequestError.protoPayload("/backward: negative") }
        guard request.forward >= 0 else { throw RequestError.protoPayload("/forward: negative") }
        let count = request.count ?? 0
        guard count >= 0 else { throw RequestError.protoPayload("/count: negative") }
        guard let view = try snapshot.begunView(request.chatID, of: caller.userID) else {
            return ChatMediaReply()
        }
        var kinds = request.attachTypes
        if let type = request.type {
            kinds.append(AttachType(name: type == "IMAGE" ? "PHOTO" : Text(type)))
        }
        var backward = max(request.backward, count)
        if backward == 0, request.forward == 0 { backward = Int64(limits.searchPageSize) }
        let place = request.messageID ?? MessageID(.max)
        var budget = ScanBudget(limits)
        func isWanted(_ attach: Attach) -> Bool {
            attach.type != .control && (kinds.isEmpty || kinds.contains(attach.type))
        }
        let older = try snapshot.attached(
            in: view,
            upTo: place,
            limit: Int(count: min(backward, Int64(limits.maxHistoryPage))),
            &budget,
            isWanted
        )
        let newer = try snapshot.attached(
            in: view,
            after: place,
            limit: Int(count: min(request.forward, Int64(limits.maxHistoryPage))),
            &budget,
            isWanted
        )
        // Fill the reply with the older messages first, then with the newer ones. On each side,
        // begin with the messages nearest to the anchor. Omit the messages that no longer fit.
        var room = caller.replyBudget
        func messages(of page: AttachedPage, behind first: Message?) throws -> AttachedMessages {
            var shown = AttachedMessages(reached: page.reached)
            for record in page.messages {
                let message = try snapshot.message(record, at: view.address, for: view.viewpoint)
                room -= message.wireSizeEstimate
                if room < 0, first != nil || !shown.messages.isEmpty {
                    shown.reached = shown.messages.last?.id ?? place
                    break
                }
                shown.messages.append(message)
            }
            return shown
        }
        let before = try messages(of: older, behind: nil)
        let after = try messages(of: newer, behind: before.messages.first)
        return ChatMediaReply(
            messages: before.messages.reversed() + after.messages,
            backwardMarker: before.reached?.before,
            forwardMarker: after.reached
        )
    }

    /// The messages of a page that fit the reply, and the id up to which the page is complete.
    private struct AttachedMessages {
        var messages: [Message] = []
        var reached: MessageID?
    }

    /// Answers `MSG_SEARCH_TOUCH` (72). The request has no effect.
    ///
    /// - Note: A query.
    func msgSearchTouch(_: MsgSearchTouchRequest, from _: Caller, in _: ReadTransaction) -> Answer {
        .reply(MsgSearchTouchReply())
    }

    /// Answers `MSG_GET_STAT` (74): returns, for each message, the number of members who have read
    /// it. The author does not count.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func msgGetStat(
        _ request: MsgGetStatRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> MsgGetStatReply {
        guard let view = try snapshot.begunView(request.chatID, of: caller.userID) else {
            return MsgGetStatReply(stats: IDMap([]))
        }
        let messages = try Set(request.messageIDs).sorted().compactMap {
            try snapshot.visibleRecord($0, in: view.key, for: caller.userID, above: view.floor)
        }
        let views =
            view.isBig && view.memberCount > limits.fanOutMembers
            ? try views(of: messages, inBig: view.key, snapshot)
            : try views(of: messages, in: view, snapshot)
        let stats = zip(messages, views).map { ($0.id, MessageStats(views: Int64($1))) }
        return MsgGetStatReply(stats: IDMap(stats))
    }

    private func views(
        of messages: [MessageRecord],
        in view: ChatView,
        _ snapshot: ReadTransaction
    ) throws -> [Int] {
        let marks = try snapshot.marks(of: view)
        return messages.map { message in
            marks.pairs.count { $0.0 != message.sender && $0.1 >= message.id.timeMs }
        }
    }

    /// Returns the view counts of messages in a big chat. Members who hide their read mark count
    /// too, because a large count does not reveal whether a single member has read a message.
    ///
    /// - Parameter messages: oldest first.
    private func views(
        of messages: [MessageRecord],
        inBig chat: ChatKey,
        _ snapshot: ReadTransaction
    ) throws -> [Int] {
        let counts = try snapshot.readerCounts(inBig: chat, notBelow: messages.map(\.id.timeMs))
        var timesOfAuthors: [UserID: Int64] = [:]
        return try zip(messages, counts).map { message, count in
            let author = message.sender
            let time =
                try timesOfAuthors[author] ?? snapshot.view(chat, for: author)?.readTime ?? 0
            timesOfAuthors[author] = time
            return time >= message.id.timeMs ? count - 1 : count
        }
    }

    // MARK: - People and public chats

    /// Answers `PUBLIC_SEARCH` (60): finds people by name or phone number, then public chats by
    /// title and name.
    ///
    /// - Throws: `proto.payload` for a negative count.
    /// - Note: A query.
    func publicSearch(
        _ request: PublicSearchRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> PublicSearchReply {
        let limit = try pageSize(request.count)
        let query = SearchQuery(request.query, limits)
        var search = NameSearch(
            caller: caller.userID,
            cursor: NameCursor(marker: request.marker ?? request.from ?? 0),
            limits: limits
        )
        if let phone = PhoneNumber.parse(String(describing: request.query)) {
            search.put(try snapshot.account(phone: phone, findableBy: caller.userID))
        }
        if let query { try search.run(query, in: snapshot) }
        let page = search.found.prefix(limit)
        found.note(page.compactMap(\.result.account?.id), by: caller.userID)
        let highlights = query?.highlights ?? []
        return PublicSearchReply(
            result: try page.map { found in
                switch found.result {
                case .person(let account, let byPhone):
                    let contact = try snapshot.contact(account, of: caller.userID)
                    return PublicResult(
                        contact: contact.user(showingPhone: byPhone),
                        highlights: highlights
                    )
                case .chat(let card): return PublicResult(chat: card.chat, highlights: highlights)
                }
            },
            total: Int64(search.cursor.people + search.cursor.chats),
            marker: page.count < search.found.count
                ? page.last?.next.marker : search.isCut ? search.cursor.marker : nil
        )
    }

    private func pageSize(_ count: Int64?) throws -> Int {
        guard let count else { return limits.searchPageSize }
        guard count >= 0 else { throw RequestError.protoPayload("/count: negative") }
        return Int(clamping: min(max(1, count), Int64(limits.maxSearchPage)))
    }
}

extension SearchQuery {
    fileprivate init?(_ text: Text, _ limits: Limits) {
        self.init(text, maxWords: limits.maxSearchWords)
    }

    /// The words that clients may highlight in the results.
    fileprivate var highlights: [Text] { words.map { Text(unchecked: Bytes($0)) } }
}
