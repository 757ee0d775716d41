import TambourEvents
import TambourProtocol
import TambourStore

/// Handles comments on posts of channels. The comments on a post are messages in a chat of the kind
/// `comments`, which has no members. `docs/decisions/0026-comments.md` lists the users who are
/// notified about comments.
extension MessagesHandler {
    /// Stores a comment once, and pushes it to the connections that have opened the comments.
    ///
    /// - Throws: `chat.not.found`, `not.found` for a post that is unknown or hidden from the
    ///   caller, `not.allowed`, `error.message.invalid`, `user.not.found`, `proto.payload`.
    func comment(
        _ request: MsgSendRequest,
        on post: MessageID,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgSendReply {
        guard let channel = request.chatID else {
            throw RequestError.protoPayload("/chatId: missing")
        }
        let message = request.message
        // Answer a retry before all checks. Otherwise a check could refuse a message that the
        // server has already acknowledged.
        let known = try tx.knownChat(channel, to: caller.userID)
        if let comments = try tx.storedComments(on: post, of: known),
            let first = try tx.sent(
                cid: message.cid,
                from: caller.userID,
                on: caller.deviceID,
                in: comments
            )
        {
            return try reply(to: first, in: comments, for: caller, in: tx)
        }
        let chat = try tx.known(channel, post, to: caller.userID)
        try ChatRules.require(.send, of: caller.userID, in: chat, tx)
        guard message.delayedAttributes == nil else {
            throw RequestError.errorMessageInvalid(
                "/message/delayedAttributes: comments are sent at once"
            )
        }
        let content = try content(of: message, in: chat, from: caller, in: tx)
        try requireNoPoll(content.poll, in: chat)
        let (record, previous) = try tx.append(
            content,
            to: chat,
            from: caller.userID,
            on: caller.deviceID
        )
        let stored = try tx.tell(
            new: try tx.message(record, in: chat),
            of: record,
            previous: previous,
            in: chat,
            except: caller.connectionID
        )
        return try reply(
            stored,
            previous: previous,
            in: chat,
            created: false,
            for: caller,
            in: tx
        )
    }

    /// Refuses polls in comments, because a request to vote cannot name a post.
    ///
    /// - Throws: `error.message.invalid` for a poll in comments.
    func requireNoPoll(_ poll: PollMark?, in chat: ChatState) throws {
        guard poll == nil || chat.kind != .comments else {
            throw RequestError.errorMessageInvalid("/message/attaches: a comment has no poll")
        }
    }

    /// Returns the event "the caller is typing a comment". Connections that have opened the
    /// comments receive it.
    ///
    /// - Returns: nil if the caller may not comment. Also nil if the channel has more than
    ///   `maxGroupMembers` members, because it takes too long to look up the receivers.
    func typing(
        _ request: MsgTypingRequest,
        under post: MessageID,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> Event? {
        let view = try snapshot.known(request.chatID, post, of: caller.userID)
        guard view.memberCount <= limits.maxGroupMembers, let channel = view.post?.channel,
            try ChatRules.may(.send, in: view, snapshot)
        else { return nil }
        let push = NotifTyping(
            chatID: view.wireID,
            userID: caller.userID,
            postID: post,
            type: request.type
        )
        let outsiders = try snapshot.outsiders(of: post, in: channel)
        let readers = try snapshot.memberIDs(of: channel).filter { !outsiders.contains($0) }
        return .push(.notifTyping(push), to: readers, except: caller.connectionID)
    }

    /// Answers `MSG_GET_COMMENTS_INFO` (91): returns the number of comments on each requested post.
    /// Omits posts that are unknown or hidden from the caller.
    ///
    /// - Throws: `chat.not.found`.
    /// - Note: A query.
    func msgGetCommentsInfo(
        _ request: MsgGetCommentsInfoRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> MsgGetCommentsInfoReply {
        let view = try snapshot.knownView(request.chatID, of: caller.userID)
        return MsgGetCommentsInfoReply(
            commentsInfoUpdates: try Set(request.postIDs).sorted().compactMap { post in
                try snapshot.commentCount(of: post, in: view).map {
                    CommentsInfoUpdate(postID: post, commentsInfo: CommentsInfo(totalCount: $0))
                }
            }
        )
    }

    /// Answers `MSG_DELETE_USER_COMMENTS` (94): deletes a user's comments on a post, or a user's
    /// messages in a chat. The handler deletes the newest ones at once, and the server deletes the
    /// rest in later steps.
    ///
    /// - Throws: `chat.not.found`, `not.found`, `not.allowed`.
    /// - Note: A command.
    func msgDeleteUserComments(
        _ request: MsgDeleteUserCommentsRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgDeleteUserCommentsReply {
        let chat = try tx.known(request.chatID, request.postID, to: caller.userID)
        if request.userID != caller.userID {
            try ChatRules.require(.deleteOthers, of: caller.userID, in: chat, tx)
        } else if chat.post == nil {
            try ChatRules.require(.send, of: caller.userID, in: chat, tx)
        }
        try tx.deleteMessages(of: [request.userID], in: chat, by: caller, limits: limits)
        return MsgDeleteUserCommentsReply()
    }
}

extension WriteTransaction {
    /// Deletes the messages of some users in a chat or on a post, for everybody. Deletes the newest
    /// messages at once. The server deletes the rest in later steps.
    ///
    /// Skips users who have never commented on the post, because the server would search all the
    /// comments on the post in vain.
    func deleteMessages(
        of users: [UserID],
        in chat: ChatState,
        by caller: Caller,
        limits: Limits
    ) throws {
        let users = try users.filter { try chat.post == nil || isCommenter($0, in: chat) }
        guard !users.isEmpty else { return }
        let deleted = try remove(upTo: chat.head.id, sentBy: users, in: chat)
        try tellDeleted(deleted, in: chat, except: caller.connectionID, limits: limits)
    }
}
