import TambourEvents
import TambourProtocol
import TambourStore

/// Family `messages`: sending, editing, deleting, typing.
/// Wire: protocol-spec/opcodes/messages.yaml
struct MessagesHandler: Sendable {
    let limits: Limits
    let environment: Environment
    let found: FoundPeople
    /// Returns the preview of a link. Its parameter is the id of the preview, which the client has
    /// received.
    let preview: @Sendable (Int64) -> Attach?

    /// Answers `MSG_SEND` (64): stores the message once and pushes it to every other connection of
    /// every member. If the request names no chat and no user, it creates a group or channel. The
    /// message's CONTROL attachment describes it.
    ///
    /// A repeated `cid` from the same device is a retry after a lost reply. The handler then
    /// returns the first result again. If the caller no longer sees that message, the result
    /// contains only the message's id.
    /// - Throws: `chat.not.found`, also for non-members, who must not learn that the chat exists.
    ///   Throws `not.found` for a link to an unknown message, `not.allowed` for a poll that may not
    ///   be forwarded, `user.not.found`, `error.message.invalid`, `proto.payload`.
    /// - Note: A command.
    func msgSend(
        _ request: MsgSendRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        let message = request.message
        if let post = request.postID {
            return try comment(request, on: post, from: caller, in: tx)
        }
        if request.chatID == nil, request.userID == nil {
            guard message.delayedAttributes == nil else {
                throw RequestError.errorMessageInvalid(
                    "/message/delayedAttributes: a chat is made at once"
                )
            }
            return try createChat(message, from: caller, in: tx)
        }
        let attributes = try schedule(message.delayedAttributes, in: tx)
        let target =
            try request.chatID.map { try self.target($0, of: caller.userID, in: tx) }
            ?? self.target(with: request.userID ?? caller.userID, of: caller.userID, in: tx)
        // Answer a retry before all checks. Otherwise a check could refuse a message that the
        // server has already acknowledged.
        if let chat = target.chat,
            let first = try tx.sent(
                cid: message.cid,
                from: caller.userID,
                on: caller.deviceID,
                in: chat
            )
        {
            return try reply(to: first, in: chat, for: caller, in: tx)
        }
        if attributes != nil,
            let first = try tx.reader.delayed(
                cid: message.cid,
                of: caller.userID,
                on: caller.deviceID,
                for: target.place
            )
        {
            return try reply(with: first, in: target.chat, in: tx)
        }
        // The request may be a retry for a scheduled message that was deleted. This is so even if
        // the scheduled time has passed. A request without a time is no such retry, and sends the
        // message now.
        if message.delayedAttributes != nil,
            let id = try tx.reader.deletedDelayed(
                cid: message.cid,
                of: caller.userID,
                on: caller.deviceID,
                for: target.place
            )
        {
            return try reply(
                withDeleted: id,
                cid: message.cid,
                for: target,
                from: caller,
                in: tx
            )
        }

        // All checks precede the first write.
        try requireSendable(target, from: caller.userID, in: tx)
        let content = try content(of: message, in: target.chat, from: caller, in: tx)
        if let attributes {
            return try schedule(content, attributes, for: target, from: caller, in: tx)
        }
        let (chat, stored, previous) = try deliver(
            content,
            to: target,
            from: caller.userID,
            on: caller.deviceID,
            except: caller.connectionID,
            in: tx
        )
        return try reply(
            stored,
            previous: previous,
            in: chat,
            created: target.chat == nil,
            for: caller,
            in: tx
        )
    }

    /// Converts a request to the message that is stored.
    ///
    /// - Parameter chat: the target chat; nil for a dialog that the message begins.
    /// - Throws: `error.message.invalid`, `not.allowed`, `not.found`, `user.not.found`,
    ///   `proto.payload`.
    func content(
        of message: NewMessage,
        in chat: ChatState?,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MessageContent {
        let text = message.text ?? .empty
        var sight = sight(of: caller)
        let (attaches, poll) = try AttachRules.stored(
            message.attaches,
            at: "/message/attaches",
            pollID: tx.newPollID(),
            preview: preview
        ) {
            try sight.sees($0, in: tx) ? tx.reader.listedAccount($0) : nil
        }
        var content = MessageContent(
            cid: message.cid,
            text: text,
            elements: try ElementRules.packed(
                message.elements,
                for: text,
                limits: limits,
                at: "/message/elements"
            ),
            attaches: attaches,
            poll: poll
        )
        try MessageSizeRules.requireFits(
            text: text,
            elements: content.elements,
            attaches: attaches,
            poll: poll,
            limits: limits,
            at: "/message"
        )
        try resolve(message.link, into: &content, target: chat, for: caller, in: tx)
        if let forward = content.forward {
            try MessageSizeRules.requireFits(forward: forward, limits: limits)
        }
        guard !text.isEmpty || attaches != nil || content.forward != nil else {
            throw RequestError.errorMessageInvalid
        }
        return content
    }

    func sight(of caller: Caller) -> Sight {
        Sight(of: caller.userID, found: found, limits: limits)
    }

    /// Checks that the sender may write to the target now.
    ///
    /// - Throws: `chat.not.found`, `not.allowed`, `too.many.requests`.
    func requireSendable(
        _ target: Target,
        from sender: UserID,
        in tx: WriteTransaction
    ) throws {
        guard try target.partner == sender || tx.isListed(target.partner) else {
            throw RequestError.chatNotFound
        }
        if let chat = target.chat {
            try ChatRules.requireOpen(chat, for: sender)
            try ChatRules.require(.send, of: sender, in: chat, tx)
        } else if target.partner != sender {
            let blockers = try tx.reader.blockers(sender, target.partner)
            if blockers.contains(target.partner) { throw RequestError.chatNotFound }
            if blockers.contains(sender) { throw RequestError.notAllowed }
            try requireRoom(forDialogOf: sender, with: target.partner, in: tx)
        }
    }

    /// Stores a message and notifies the members. If the dialog does not exist, creates it first.
    ///
    /// - Returns: the chat, the message in the form that its author sees, and the id of the
    ///   previous message.
    func deliver(
        _ content: MessageContent,
        to target: Target,
        from sender: UserID,
        on device: DeviceID,
        except connection: ConnectionID?,
        in tx: WriteTransaction
    ) throws -> (chat: ChatState, message: Message, previous: MessageID?) {
        let chat = try target.chat ?? tx.createPairChat(sender, target.partner, by: sender)
        let (record, previous) = try tx.append(content, to: chat, from: sender, on: device)
        let stored = try tx.message(record, in: chat)
        if target.chat == nil { try tx.announce(chat, last: stored, except: connection) }
        let own = try tx.tell(
            new: stored,
            of: record,
            previous: previous,
            in: chat,
            except: connection
        )
        return (chat, own, previous)
    }

    /// Limits the number of dialogs that a user begins. The limit does not apply if the partner has
    /// the user as a contact.
    ///
    /// - Throws: `too.many.requests` after `maxNewDialogsPerHour` new dialogs within an hour.
    private func requireRoom(
        forDialogOf user: UserID,
        with partner: UserID,
        in tx: WriteTransaction
    ) throws {
        let hour: Int64 = 3_600_000
        let last = try tx.reader.dialog(
            begunBy: user,
            after: tx.ct - hour,
            place: limits.maxNewDialogsPerHour
        )
        guard let last, try !tx.reader.hasAdded(partner, user) else { return }
        throw RequestError.tooManyRequests.retrying(afterMs: last + hour - tx.ct)
    }

    /// The target of a message: an existing chat, or a dialog that the message begins. The account
    /// of the dialog's partner may be missing.
    struct Target {
        let chat: ChatState?
        /// The partner in a dialog. In any other chat, this is the sender.
        let partner: UserID

        var place: ChatPlace {
            if let chat, chat.kind.isJoined { return .group(chat.key) }
            return .user(partner)
        }
    }

    /// - Throws: `chat.not.found`.
    func target(
        _ id: ChatID,
        of sender: UserID,
        in tx: WriteTransaction
    ) throws -> Target {
        if let partner = id.partner(of: sender) {
            return try target(with: partner, of: sender, in: tx)
        }
        return Target(chat: try tx.knownChat(id, to: sender), partner: sender)
    }

    private func target(
        with partner: UserID,
        of sender: UserID,
        in tx: WriteTransaction
    ) throws -> Target {
        Target(chat: try tx.chat(of: sender, and: partner), partner: partner)
    }

    /// Resolves the link of a request. For an answer, the result is the id of the answered message.
    /// For a forward, it is a snapshot of the forwarded message.
    private func resolve(
        _ link: NewLink?,
        into content: inout MessageContent,
        target: ChatState?,
        for caller: Caller,
        in tx: WriteTransaction
    ) throws {
        guard let link else { return }
        switch link.type {
        case .reply:
            guard let target,
                link.chatID == nil || link.chatID == target.wireID,
                let original = try tx.message(link.messageID, in: target, visibleTo: caller.userID)
            else { throw RequestError.notFound }
            content.replyTo = original.id
        case .forward:
            let source: ChatState?
            if let id = link.chatID {
                source = try tx.chat(id, visibleTo: caller.userID)
            } else {
                source = target
            }
            guard let source,
                let original = try tx.message(link.messageID, in: source, visibleTo: caller.userID)
            else { throw RequestError.notFound }
            content.forward = try snapshot(of: original, in: source, in: tx)
        case .other:
            throw RequestError.protoPayload("/message/link/type: unknown value")
        }
    }

    /// Returns the snapshot for a forward of `original`. If `original` is itself a forward without
    /// text and attachments, returns the snapshot in `original`.
    ///
    /// For a message of a dialog, the snapshot has the chat id 0, because the real id would reveal
    /// the author's partner. For a group, it has the real id, which gives non-members no access.
    private func snapshot(
        of original: MessageRecord,
        in source: ChatState,
        in tx: WriteTransaction
    ) throws -> Packed<MessageLink> {
        if let carried = original.forward, original.text.isEmpty, original.attaches == nil {
            return carried
        }
        let chatID = source.kind.isPair ? ChatID(0) : source.wireID
        let original = try PollRules.copy(of: original)
        return Packed(
            MessageLink(
                type: .forward,
                chatID: chatID,
                message: original.message(
                    at: MessageAddress(chatID: chatID, postID: source.post?.id),
                    link: nil,
                    previous: nil
                ),
                messageID: original.id
            )
        )
    }

    // MARK: - Groups and channels

    private func createChat(
        _ message: NewMessage,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        guard message.attaches.count == 1, let control = message.attaches.first,
            control.type == .control, control.event == "new"
        else {
            throw RequestError.protoPayload(
                "/chatId: missing, and no CONTROL attachment creates a chat"
            )
        }
        if let first = try tx.sent(
            cid: message.cid,
            from: caller.userID,
            on: caller.deviceID,
            in: nil
        ), let chat = try tx.chat(holding: first) {
            return try reply(to: first, in: chat, for: caller, in: tx)
        }
        let kind: ChatKind
        switch control.chatType {
        case nil, "CHAT": kind = .group
        case "CHANNEL": kind = .channel
        default:
            throw RequestError.errorMessageInvalid(
                "/message/attaches/0/chatType: only CHAT and CHANNEL can be created"
            )
        }
        guard let title = control.title, !title.isEmpty else {
            throw RequestError.protoPayload("/message/attaches/0/title: missing")
        }
        var members: Set<UserID> = [caller.userID]
        var invited: [UserID] = []
        var sight = sight(of: caller)
        for id in control.userIDs ?? [] where members.insert(id).inserted {
            try tx.requireInvitable(id, by: caller.userID, &sight)
            invited.append(id)
        }
        guard kind == .channel || members.count <= limits.maxGroupMembers else {
            throw RequestError.protoPayload(
                "/message/attaches/0/userIds: \(members.count) members, "
                    + "limit \(limits.maxGroupMembers)"
            )
        }

        let (chat, own, previous) = try tx.startChat(
            kind,
            title: title,
            owner: caller.userID,
            on: caller.deviceID,
            invited: invited,
            link: ChatLink.newInvitation(environment),
            cid: message.cid,
            limits: limits,
            except: caller.connectionID
        )
        return try reply(
            own,
            previous: previous,
            in: chat,
            created: true,
            for: caller,
            in: tx
        )
    }

    // MARK: - Replies and pushes

    /// Repeats the first result of a `cid`. If the caller no longer sees the message, the reply
    /// contains only the message's id.
    func reply(
        to first: MessageRecord,
        in chat: ChatState,
        for caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        var message = try tx.message(first, in: chat, for: caller.userID)
        func isSeen() throws -> Bool {
            // If a user does not see a post, the user does not see its comments either.
            if let post = chat.post,
                try tx.comments(on: post.id, in: post.channel, visibleTo: caller.userID) == nil
            {
                return false
            }
            return try tx.message(first.id, in: chat, visibleTo: caller.userID) != nil
        }
        if try !isSeen() { message.remove() }
        return try reply(
            message,
            previous: tx.previousID(of: first, in: chat),
            in: chat,
            // If the message is the first of a chat, it created the chat.
            created: first.number == 1 && chat.kind != .comments,
            for: caller,
            in: tx
        )
    }

    func reply(
        _ message: Message,
        previous: MessageID?,
        in chat: ChatState,
        created: Bool,
        for caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        // There may be no member, because a retry may come from a user who has left the chat in the
        // meantime.
        let member = try tx.member(caller.userID, of: chat)
        return MsgSendReply(
            chatID: chat.wireID,
            postID: chat.post?.id,
            message: message,
            unread: chat.post == nil ? try tx.unread(of: caller.userID, in: chat) : nil,
            mark: chat.post == nil ? member?.readTime : nil,
            chat: created && member != nil ? try tx.seen(chat, by: caller.userID) : nil,
            prevMessageID: previous
        )
    }

    // MARK: - Reading

    /// Answers `MSG_GET` (71): returns the requested messages. Omits deleted, hidden and unknown
    /// messages, and messages that do not fit the reply.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func msgGet(
        _ request: MsgGetRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Progress<ReadTransaction, MsgGetReply> {
        let ids = Set(request.messageIDs).sorted()
        let state = (
            view: try snapshot.known(request.chatID, request.postID, of: caller.userID),
            budget: caller.replyBudget, messages: [Message]()
        )
        return try snapshot.inSteps(ids[...], state) { state, snapshot in
            // Look up the chat again. Since the previous step, it may have been cleared, or the
            // caller may have been removed.
            state.view = try snapshot.known(request.chatID, request.postID, of: caller.userID)
        } take: { id, state, snapshot in
            let view = state.view
            guard
                let record = try snapshot.visibleRecord(
                    id,
                    in: view.key,
                    for: caller.userID,
                    above: view.floor
                )
            else { return true }
            let message = try snapshot.message(
                record,
                at: view.address,
                for: view.viewpoint
            )
            state.budget -= message.wireSizeEstimate
            if state.budget < 0, !state.messages.isEmpty { return false }
            state.messages.append(message)
            return true
        } finish: { state, _ in
            MsgGetReply(messages: state.messages, chatID: state.view.wireID)
        }
    }

    /// Answers `MSG_TYPING` (65): tells the other members that the caller is typing. Changes
    /// nothing in the store.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func msgTyping(
        _ request: MsgTypingRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Answer {
        var answer = Answer.reply(MsgTypingReply())
        if let push = try typing(request, from: caller, in: snapshot) { answer.events = [push] }
        return answer
    }

    /// - Returns: the event to push; nil in a channel, in a dialog that has not begun, and in a
    ///   dialog whose partner the caller has blocked.
    private func typing(
        _ request: MsgTypingRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Event? {
        if let post = request.postID {
            return try typing(request, under: post, from: caller, in: snapshot)
        }
        guard let view = try snapshot.begunView(request.chatID, of: caller.userID) else {
            return nil
        }
        if let partner = view.partner {
            let blockers = try snapshot.blockers(caller.userID, partner)
            if blockers.contains(partner) { throw RequestError.chatNotFound }
            if !blockers.isEmpty { return nil }
        }
        guard view.kind != .channel else { return nil }
        let push = NotifTyping(chatID: view.wireID, userID: caller.userID, type: request.type)
        let others = try snapshot.memberIDs(of: view.key).filter { $0 != caller.userID }
        return .push(.notifTyping(push), to: others, except: caller.connectionID)
    }
}

extension Message {
    /// Removes the content of the message, for a user who no longer sees it.
    fileprivate mutating func remove() {
        status = .removed
        text = .empty
        elements = nil
        attaches = .emptyList
        link = nil
        reactionInfo = nil
    }
}
