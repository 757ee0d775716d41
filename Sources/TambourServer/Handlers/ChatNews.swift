import TambourProtocol
import TambourStore

/// What every handler that changes a chat needs: the chat as its caller knows it, and what members
/// hear of it.
extension WriteTransaction {
    /// - Throws: `chat.not.found`, also for a chat of others.
    func knownChat(_ id: ChatID, to user: UserID) throws -> ChatState {
        guard let chat = try chat(id, visibleTo: user) else { throw RequestError.chatNotFound }
        return chat
    }

    /// - Parameter post: whose comments are meant instead of the chat.
    /// - Throws: `chat.not.found`, also for a chat of others; `not.found` for a post that is unknown or hidden from
    ///   the user.
    func known(_ id: ChatID, _ post: MessageID?, to user: UserID) throws -> ChatState {
        let chat = try knownChat(id, to: user)
        guard let post else { return chat }
        guard let comments = try comments(on: post, in: chat, visibleTo: user) else {
            throw RequestError.notFound
        }
        return comments
    }

    /// - Parameter sight: the caller's: whoever is put into a group is seen by all in it, so an id alone
    ///   puts nobody there.
    /// - Throws: `user.not.found` for who cannot be reached or seen, `not.allowed` for who does not let
    ///   `caller` put them into a group.
    func requireInvitable(_ user: UserID, by caller: UserID, _ sight: inout Sight) throws {
        guard let standing = try reader.standing(of: caller, with: user), standing.isReachable,
            try sight.sees(user, in: self)
        else {
            throw RequestError.userNotFound
        }
        guard standing.isInvitable else { throw RequestError.notAllowed }
    }

    /// The chat as it travels to one of its members.
    func seen(_ chat: ChatState, by member: UserID) throws -> Chat {
        let reader = try flushedReader()
        guard let view = try reader.view(chat.key, for: member) else {
            throw ImpossibleRow("member of chat \(chat.key.rawValue): user_id", member.rawValue)
        }
        return try reader.chat(view)
    }

    /// Tells the members of a message that is new or has changed.
    ///
    /// A push is encoded once for all who get it. Those for whom the answered message is not there
    /// get a second push, without the link.
    /// - Parameters:
    ///   - original: the message that it answers.
    ///   - readers: who can see an edited message; nil for a new one, which goes to all members.
    func tell(
        _ message: Message,
        answering original: MessageID? = nil,
        previous: MessageID?,
        in chat: ChatState,
        to readers: [UserID]? = nil,
        except connection: ConnectionID?
    ) throws {
        var message = message
        func emit(to users: [UserID]) {
            guard !users.isEmpty else { return }
            noteTold(chat)
            let push = NotifMessage(
                chatID: chat.wireID,
                message: message,
                postID: chat.post?.id,
                prevMessageID: previous
            )
            self.emit(.push(.notifMessage(push), to: users, except: connection))
        }
        let readers = try readers ?? audience(of: chat)
        guard message.link != nil, let original else { return emit(to: readers) }
        let outsiders = try outsiders(of: original, in: chat)
        guard !outsiders.isEmpty else { return emit(to: readers) }
        emit(to: readers.filter { !outsiders.contains($0) })
        message.link = nil
        emit(to: readers.filter { outsiders.contains($0) })
    }

    /// Tells the members of what somebody has written.
    ///
    /// - Returns: the message as its author's devices have it: of a post the `cid` is for them alone.
    func tell(
        new message: Message,
        of record: MessageRecord,
        previous: MessageID?,
        in chat: ChatState,
        except connection: ConnectionID?
    ) throws -> Message {
        func tell(_ message: Message, to users: [UserID]?) throws {
            try self.tell(
                message,
                answering: record.replyTo,
                previous: previous,
                in: chat,
                to: users,
                except: connection
            )
        }
        guard chat.kind == .channel else {
            try tell(message, to: nil)
            return message
        }
        var own = message
        own.cid = record.cid
        var others = chat.memberIDs
        if let index = others.firstIndex(of: record.sender) { others.remove(at: index) }
        try tell(message, to: others)
        try tell(own, to: [record.sender])
        return own
    }

    /// Tells those who see a message of its reactions, without anybody's own.
    func tell(
        _ counters: ReactionInfo,
        of record: MessageRecord,
        in chat: ChatState,
        but user: UserID
    ) throws {
        let changed = NotifMsgReactionsChanged(
            chatID: chat.wireID,
            messageID: record.id,
            postID: chat.post?.id,
            counters: counters.counters,
            totalCount: counters.totalCount
        )
        let others = try readers(of: record.id, in: chat, but: user)
        emit(.push(.notifMsgReactionsChanged(changed), to: others, except: nil))
    }

    /// Tells those who see a message of the votes in its poll, without anybody's own.
    func tellPoll(of record: MessageRecord, in chat: ChatState, but user: UserID) throws {
        let others = try readers(of: record.id, in: chat, but: user)
        guard !others.isEmpty else { return }
        try tellPoll(of: record, in: chat, seenBy: nil, to: others, except: nil)
    }

    /// A stock client takes a message without a status for a new one, so it goes out as an edited one.
    func tellPoll(
        of record: MessageRecord,
        in chat: ChatState,
        seenBy viewer: UserID?,
        to users: [UserID],
        except connection: ConnectionID?
    ) throws {
        var message = try message(record, in: chat, for: viewer)
        message.status = .edited
        try tell(
            message,
            answering: record.replyTo,
            previous: previousID(of: record, in: chat),
            in: chat,
            to: users,
            except: connection
        )
    }

    private func readers(
        of message: MessageID,
        in chat: ChatState,
        but user: UserID
    ) throws -> [UserID] {
        var others = try readers(of: message, in: chat)
        if let index = others.firstIndex(of: user) { others.remove(at: index) }
        return others
    }

    /// Tells the members of messages that are gone, some thousand in a push. A member for whom the chat
    /// begins later is told of those after that: an id says when something was written. Where members
    /// begin at more than `fanOutMembers` places, neighbours are told the same, which bounds the pushes.
    func tellDeleted(
        _ deleted: [MessageID],
        in chat: ChatState,
        except connection: ConnectionID?,
        limits: Limits
    ) throws {
        guard let first = deleted.min() else { return }
        func emit(_ deleted: [MessageID], to users: [UserID]) {
            for start in stride(from: 0, to: deleted.count, by: limits.maxIDsPerRequest) {
                let ids = Array(deleted[start...].prefix(limits.maxIDsPerRequest))
                let push = NotifMsgDelete(
                    chatID: chat.wireID,
                    postID: chat.post?.id,
                    messageIDs: ids
                )
                self.emit(.push(.notifMsgDelete(push), to: users, except: connection))
            }
        }
        let floors = try floors(from: first, in: chat)
        guard !floors.isEmpty else { return emit(deleted, to: try audience(of: chat)) }
        emit(deleted, to: chat.memberIDs.filter { floors[$0] == nil })
        let rising = deleted.sorted()
        let byFloor = Dictionary(grouping: floors.keys) { floors[$0] ?? first }
        let cuts = byFloor.keys.sorted()
        let cutsPerPush = (cuts.count - 1) / limits.fanOutMembers + 1
        for start in stride(from: 0, to: cuts.count, by: cutsPerPush) {
            let together = cuts[start...].prefix(cutsPerPush)
            guard let next = rising.firstIndex(where: { $0 > cuts[start] }) else { break }
            emit(Array(rising[next...]), to: together.flatMap { byFloor[$0] ?? [] }.sorted())
        }
    }

    /// Tells of a chat that is new to `users` or has changed; nothing in it differs between them but the
    /// own read mark of who does not show it.
    ///
    /// - Parameters:
    ///   - users: nil for every member.
    ///   - last: its newest message, nil to leave that out.
    func announce(
        _ chat: ChatState,
        to users: [UserID]? = nil,
        last: Message?,
        except connection: ConnectionID?
    ) throws {
        let isGroup = chat.kind.isJoined
        let admins = isGroup ? try admins(of: chat) : []
        let members =
            chat.isBig ? [] : try chat.memberIDs.compactMap { try member($0, of: chat) }
        var news = Chat(
            id: chat.wireID,
            type: chat.kind.onWire,
            status: .active,
            owner: chat.owner,
            participants: IDMap(members.map { ($0.userID, $0.shownTime) }),
            title: chat.title,
            lastMessage: last,
            lastEventTime: chat.head.number == 0 ? chat.created : chat.head.id.timeMs,
            created: chat.created,
            joinTime: chat.created,
            modified: ct,
            participantsCount: isGroup ? Int64(chat.memberCount) : nil,
            access: isGroup ? chat.details.isPublic ? .public : .private : nil,
            link: chat.details.isPublic ? chat.details.link : nil,
            description: chat.details.description,
            options: isGroup ? chat.details.options.onWire : nil,
            admins: isGroup ? [chat.owner] + admins.map(\.id) : nil,
            adminParticipants: isGroup ? .admins(admins, owner: chat.owner) : nil,
            reactions: chat.details.reactions
        )
        func tell(_ users: [UserID]) {
            guard !users.isEmpty else { return }
            emit(.push(.notifChat(NotifChat(chat: news)), to: users, except: connection))
        }
        let users = users ?? chat.memberIDs
        let apart = members.filter { $0.readTime != $0.shownTime && users.contains($0.userID) }
        tell(apart.isEmpty ? users : users.filter { id in !apart.contains { $0.userID == id } })
        for viewer in apart {
            news.participants = IDMap(
                members.map { ($0.userID, $0 === viewer ? $0.readTime : $0.shownTime) }
            )
            tell([viewer.userID])
        }
    }

    /// Stores what happened to a chat as a message of whoever did it.
    func appendEvent(
        _ event: Attach,
        to chat: ChatState,
        by user: UserID
    ) throws -> (message: Message, previous: MessageID?) {
        var event = event
        // A channel does not say which of its administrators did it.
        if chat.kind == .channel { event.userID = nil }
        let draft = MessageDraft(cid: 0, text: .empty, attaches: Packed([event]))
        let (record, previous) = try append(draft, to: chat, from: user, on: .server)
        return (try message(record, in: chat), previous)
    }
}

extension ReadTransaction {
    /// - Throws: `chat.not.found`, also for a chat of others.
    func knownView(_ id: ChatID, of user: UserID) throws -> ChatView {
        guard let view = try view(id, for: user) else { throw RequestError.chatNotFound }
        return view
    }

    /// - Parameter post: whose comments are meant instead of the chat.
    /// - Throws: `chat.not.found`, also for a chat of others; `not.found` for a post that is unknown or hidden from
    ///   the user.
    func known(_ id: ChatID, _ post: MessageID?, of user: UserID) throws -> ChatView {
        let view = try knownView(id, of: user)
        guard let post else { return view }
        guard let comments = try comments(on: post, in: view) else { throw RequestError.notFound }
        return comments
    }

    /// The chat as its member has it; nil for a dialog that has not begun.
    ///
    /// - Throws: `chat.not.found`, also for a chat of others.
    func begunView(_ id: ChatID, of user: UserID) throws -> ChatView? {
        if let view = try view(id, for: user) { return view }
        try requireDialog(id, of: user)
        return nil
    }

    /// The same, or with `post` the comments on it.
    func begun(_ id: ChatID, _ post: MessageID?, of user: UserID) throws -> ChatView? {
        try post == nil ? begunView(id, of: user) : known(id, post, of: user)
    }

    /// A dialog with somebody that the user can reach is there before its first message.
    ///
    /// - Throws: `chat.not.found` for every other chat.
    func requireDialog(_ id: ChatID, of user: UserID) throws {
        guard let partner = id.partner(of: user), try isReachable(partner, for: user) else {
            throw RequestError.chatNotFound
        }
    }
}
