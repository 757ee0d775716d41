import TambourEvents
import TambourProtocol
import TambourStore

/// Helpers for handlers that change a chat. They find the chat that the caller sees, and push the
/// changes to its members.
extension WriteTransaction {
    /// - Throws: `chat.not.found`, also for a chat the user is not in.
    func knownChat(_ id: ChatID, to user: UserID) throws -> ChatState {
        guard let chat = try chat(id, visibleTo: user) else { throw RequestError.chatNotFound }
        return chat
    }

    /// - Parameter post: the post whose comments are meant; nil for the chat itself.
    /// - Throws: `chat.not.found`, also for a chat the user is not in; `not.found` for a post that
    ///   is unknown or hidden from the user.
    func known(_ id: ChatID, _ post: MessageID?, to user: UserID) throws -> ChatState {
        let chat = try knownChat(id, to: user)
        guard let post else { return chat }
        guard let comments = try comments(on: post, in: chat, visibleTo: user) else {
            throw RequestError.notFound
        }
        return comments
    }

    /// - Parameter sight: the caller's sight, which decides whom the caller can see. A new member
    ///   becomes visible to all members of a group. The caller must therefore see a user before
    ///   adding the user.
    /// - Throws: `user.not.found` for a user whom the caller cannot reach or see. Throws
    ///   `not.allowed` for a user who does not allow the caller to add them to groups.
    func requireInvitable(_ user: UserID, by caller: UserID, _ sight: inout Sight) throws {
        guard let standing = try reader.standing(of: caller, with: user), standing.isReachable,
            try sight.sees(user, in: self)
        else {
            throw RequestError.userNotFound
        }
        guard standing.isInvitable else { throw RequestError.notAllowed }
    }

    /// Returns the chat in the form that one of its members receives.
    func seen(_ chat: ChatState, by member: UserID) throws -> Chat {
        let reader = try flushedReader()
        guard let view = try reader.view(chat.key, for: member) else {
            throw ImpossibleRow("member of chat \(chat.key.rawValue): user_id", member.rawValue)
        }
        return try reader.chat(view)
    }

    /// Pushes a new or changed message to the members.
    ///
    /// All recipients share one encoded push. There is one exception: members who cannot see the
    /// answered message get a separate push without the link to that message.
    /// - Parameters:
    ///   - original: the message that `message` answers; nil if it answers none.
    ///   - readers: the recipients; nil for all members. For an edited message, these are the users
    ///     who can see it.
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

    /// Pushes a new message to the members.
    ///
    /// - Returns: the message in the form that its author's devices see. In a channel, only these
    ///   devices see the message's `cid`.
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

    /// Pushes the reaction counters of a message to all users who see the message, except `user`.
    /// The push omits each receiver's own reaction.
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

    /// Pushes the votes in a poll to all users who see the poll's message, except `user`. The push
    /// omits each receiver's own vote.
    func tellPoll(of record: MessageRecord, in chat: ChatState, but user: UserID) throws {
        let others = try readers(of: record.id, in: chat, but: user)
        guard !others.isEmpty else { return }
        try tellPoll(of: record, in: chat, seenBy: nil, to: others, except: nil)
    }

    /// Pushes the poll's message with the status "edited". A stock client would treat a message
    /// without a status as new.
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

    /// Pushes the deletion of messages to the members, at most `maxIDsPerRequest` ids in a push.
    ///
    /// A member whose visible history begins at a later point receives only the ids after this
    /// point. An id would otherwise reveal the time of a message that the member cannot see. To
    /// limit the number of pushes, neighbouring points share a push when there are more than
    /// `fanOutMembers` points. Such a push contains the ids after the earliest of its points.
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

    /// Pushes a chat that is new to `users` or has changed. All receivers get the same object, with
    /// one exception. Members who hide their read mark receive their own mark in it.
    ///
    /// - Parameters:
    ///   - users: nil for every member.
    ///   - last: the newest message; nil to omit it.
    func announce(
        _ chat: ChatState,
        to users: [UserID]? = nil,
        last: Message?,
        except connection: ConnectionID?
    ) throws {
        let members =
            chat.isBig ? [] : try chat.memberIDs.compactMap { try member($0, of: chat) }
        var news = ChatObject(
            id: chat.wireID,
            kind: chat.kind,
            owner: chat.owner,
            created: chat.created,
            joined: chat.created,
            modified: ct,
            lastEvent: chat.head.number == 0 ? chat.created : chat.head.id.timeMs,
            participants: IDMap(members.map { ($0.userID, $0.shownTime) }),
            details: ChatObject.Details(
                title: chat.title,
                description: chat.details.description,
                memberCount: chat.memberCount,
                options: chat.details.options,
                // Omit an invitation link, because only some members may see it.
                link: chat.details.isPublic ? chat.details.link : nil,
                isPublic: chat.details.isPublic,
                reactions: chat.details.reactions
            ),
            admins: chat.kind.isJoined ? try admins(of: chat) : nil,
            // Omit the unread counter, because the read position is different for each member.
            messages: ChatObject.Messages(last: last, previous: nil, pinned: nil, unread: nil)
        ).wire
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

    /// Creates a group or channel. Its first message is the event `new`. Then notifies its members.
    ///
    /// - Returns: the chat, the event in the form that its author sees, and the id of the previous
    ///   message.
    func startChat(
        _ kind: ChatKind,
        title: Text,
        owner: UserID,
        on device: DeviceID,
        invited: [UserID] = [],
        link: Text,
        cid: Int64,
        limits: Limits,
        except connection: ConnectionID?
    ) throws -> (chat: ChatState, message: Message, previous: MessageID?) {
        let chat = try createGroup(kind, title: title, owner: owner, members: [owner] + invited)
        var details = chat.details
        details.link = link
        try set(details, of: chat)
        let created = Attach(
            type: .control,
            title: title,
            event: "new",
            userID: owner,
            // Do not reveal the members of a channel. A group may have more members than a message
            // can name.
            userIDs: kind == .channel ? nil : Array(invited.prefix(limits.maxIDsPerRequest)),
            chatType: kind.onWire
        )
        let (record, previous) = try append(
            MessageContent(cid: cid, text: .empty, attaches: Packed([created])),
            to: chat,
            from: owner,
            on: device
        )
        let stored = try message(record, in: chat)
        try announce(chat, last: stored, except: connection)
        let own = try tell(
            new: stored,
            of: record,
            previous: previous,
            in: chat,
            except: connection
        )
        return (chat, own, previous)
    }

    /// Notifies all members of a group about new members. In a channel, notifies only the new
    /// members, because the members of a channel must not learn about each other.
    func tellArrival(
        of added: [UserID],
        _ event: Attach,
        in chat: ChatState,
        by user: UserID,
        except connection: ConnectionID?
    ) throws {
        if chat.kind == .channel {
            return try announce(chat, to: added, last: nil, except: connection)
        }
        let (message, previous) = try appendEvent(event, to: chat, by: user)
        try announce(chat, last: message, except: connection)
        try tell(message, previous: previous, in: chat, except: connection)
    }

    /// Stores an event of a chat as a message. Its sender is the user who caused the event.
    func appendEvent(
        _ event: Attach,
        to chat: ChatState,
        by user: UserID
    ) throws -> (message: Message, previous: MessageID?) {
        var event = event
        // A channel does not reveal which administrator caused an event.
        if chat.kind == .channel { event.userID = nil }
        let content = MessageContent(cid: 0, text: .empty, attaches: Packed([event]))
        let (record, previous) = try append(content, to: chat, from: user, on: .server)
        return (try message(record, in: chat), previous)
    }
}

extension ReadTransaction {
    /// - Throws: `chat.not.found`, also for a chat the user is not in.
    func knownView(_ id: ChatID, of user: UserID) throws -> ChatView {
        guard let view = try view(id, for: user) else { throw RequestError.chatNotFound }
        return view
    }

    /// - Parameter post: the post whose comments are meant; nil for the chat itself.
    /// - Throws: `chat.not.found`, also for a chat the user is not in; `not.found` for a post that
    ///   is unknown or hidden from the user.
    func known(_ id: ChatID, _ post: MessageID?, of user: UserID) throws -> ChatView {
        let view = try knownView(id, of: user)
        guard let post else { return view }
        guard let comments = try comments(on: post, in: view) else { throw RequestError.notFound }
        return comments
    }

    /// Returns the chat in the form that the member sees; nil for a dialog that has not begun.
    ///
    /// - Throws: `chat.not.found`, also for a chat the user is not in.
    func begunView(_ id: ChatID, of user: UserID) throws -> ChatView? {
        if let view = try view(id, for: user) { return view }
        try requireDialog(id, of: user)
        return nil
    }

    /// Returns the same as `begunView`. If `post` is not nil, returns the chat of the comments on
    /// this post instead.
    func begun(_ id: ChatID, _ post: MessageID?, of user: UserID) throws -> ChatView? {
        try post == nil ? begunView(id, of: user) : known(id, post, of: user)
    }

    /// Checks that `id` is a dialog with a reachable user. The dialog may be without messages.
    ///
    /// - Throws: `chat.not.found` for all other chats.
    func requireDialog(_ id: ChatID, of user: UserID) throws {
        guard let partner = id.partner(of: user), try isReachable(partner, for: user) else {
            throw RequestError.chatNotFound
        }
    }
}
