import TambourProtocol

/// Which comments were requested on this connection.
struct CommentReading {
    /// Threads for which a subscription was requested.
    fileprivate(set) var asked: Set<ChatID> = []
    /// Threads that the server does not show to this account.
    fileprivate var refused: Set<ChatID> = []
    /// The time of the last request for the number of comments, by post.
    private var countedAtMs: [MessageID: Int64] = [:]

    /// The server does not push the number of comments. After this time, the client requests the
    /// number for a visible post again.
    private static let staleAfterMs: Int64 = 60_000
    private static let most = 1_000

    mutating func disconnected() { self = CommentReading() }

    /// Returns the posts whose number of comments is unknown or old. Records that the client
    /// requests these numbers now.
    fileprivate mutating func postsToCount(among posts: [MessageID], nowMs: Int64) -> [MessageID] {
        if countedAtMs.count > Self.most { countedAtMs = [:] }
        let due = posts.filter { post in
            countedAtMs[post].map { nowMs - $0 >= Self.staleAfterMs } ?? true
        }
        for post in due { countedAtMs[post] = nowMs }
        return due
    }
}

/// Comments on posts of channels. They are messages of a chat of this device, whose history is read
/// like any other: docs/client-sync.md, section 6.7.
extension ClientCore {
    // MARK: - Opening

    /// Subscribes to comments, then requests their newest page. In this order the client misses no
    /// new comment: either the page contains the comment, or the server pushes it.
    func openComments(_ thread: CommentThread, _ tx: StoreTransaction) throws {
        guard !wire.requests.isOpen(.comments(thread.id)), !comments.refused.contains(thread.id)
        else { return }
        comments.asked.insert(thread.id)
        // If the client exceeded the limit of subscriptions, the server would end the oldest
        // subscription without notice.
        let open = try tx.openCommentThreads().filter { $0.id != thread.id }
        for oldest in open.prefix(max(0, open.count + 1 - Limits.standard.maxOpenThreads)) {
            screens.forget(oldest.id)
            try unsubscribe(from: oldest, tx)
        }
        let request = ChatSubscribeRequest(
            chatID: thread.channel,
            subscribe: true,
            postID: thread.post
        )
        call(request, as: .comments(thread.id)) { [self] answer, tx in
            switch answer {
            case .success: try readNewest(of: thread, tx)
            case .failure(let error): try notOpened(thread, error, tx)
            }
        }
    }

    private func readNewest(of thread: CommentThread, _ tx: StoreTransaction) throws {
        // Changes since the last subscription are unknown, so discard the knowledge of which
        // intervals are complete.
        try change(thread.id, with: [], isPushed: false, tx) { $0.resync() }
        try tx.forgetNewestComment(of: thread)
        let generation = try histories.history(of: thread.id, tx).generation
        let revision = try tx.nextRevision()
        let safe: Int64 = try tx.value(of: .chatsMark) ?? 0
        histories.countRequest()
        let request = ChatHistoryRequest(
            chatID: thread.channel,
            backward: Int64(options.historyPage),
            postID: thread.post
        )
        call(request, as: .comments(thread.id)) { [self] answer, tx in
            let reply: ChatHistoryReply
            switch answer {
            case .success(let success): reply = success
            case .failure(let error): return try notOpened(thread, error, tx)
            }
            // If the post or its channel is gone, ignore the reply.
            guard try tx.commentThread(thread.id) != nil else { return }
            let messages = reply.messages ?? []
            let found = messages.map { Position($0.id.rawValue) }
            let evidence = Evidence.backwardPage(
                upTo: .max,
                found: found,
                more: reply.more,
                closed: .last(at: safe),
                generation: generation
            )
            if let evidence {
                try change(thread.id, with: messages, revision: revision, isPushed: false, tx) {
                    $0.apply(evidence)
                }
            }
            if let newest = found.max() {
                try tx.note(newestComment: MessageID(newest.rawValue), of: thread)
            }
            try tx.open(thread)
            askCommentCounts(on: [thread.post], of: thread.channel)
            for looker in screens.lookers where looker.chat == thread.id {
                try readHistory(for: looker, tx)
            }
        }
    }

    private func notOpened(
        _ thread: CommentThread,
        _ error: ClientError,
        _ tx: StoreTransaction
    ) throws {
        for looker in screens.lookers where looker.chat == thread.id { forgetOther(looker) }
        guard case .refused(_, _, let pause) = error else { return }
        // The pause that the server requests ends with a login, after which the comments are opened
        // again.
        if pause != nil { return try syncFailed(error, tx) }
        comments.refused.insert(thread.id)
        publish(.refused(try tx.words(for: error, on: thread.channel)))
    }

    /// Ends the subscription to comments, if no screen shows them.
    func closeComments(_ chat: ChatID, _ tx: StoreTransaction) throws {
        comments.refused.remove(chat)
        guard isLive, !screens.lookers.contains(where: { $0.chat == chat }),
            let thread = try tx.commentThread(chat), thread.isOpen
        else { return }
        try unsubscribe(from: thread, tx)
    }

    private func unsubscribe(from thread: CommentThread, _ tx: StoreTransaction) throws {
        let request = ChatSubscribeRequest(
            chatID: thread.channel,
            subscribe: false,
            postID: thread.post
        )
        call(request) { _, _ in }
        try tx.close(thread)
    }

    // MARK: - Pushes and replies

    func comment(_ push: NotifMessage, on post: MessageID, _ tx: StoreTransaction) throws {
        guard let thread = try tx.commentThread(.comments(on: post)) else { return }
        let comment = push.message
        switch comment.status {
        case .removed: try forgetComments([comment.id], on: post, tx)
        case .edited:
            // A page in flight may contain the old version.
            try change(thread.id, with: [comment], isPushed: true, tx) {
                $0.edit([Position(comment.id.rawValue)], isReading: true)
            }
        default: try learn(comment, after: push.prevMessageID, in: thread, isPushed: true, tx)
        }
    }

    /// Stores a new comment. No visible comment lies between it and `previous`.
    func learn(
        _ comment: Message,
        after previous: MessageID?,
        in thread: CommentThread,
        isPushed: Bool = false,
        _ tx: StoreTransaction
    ) throws {
        let isNew = try learn(
            comment,
            after: .known(previous),
            in: thread.id,
            isPushed: isPushed,
            tx
        )
        try tx.note(newestComment: comment.id, of: thread)
        // A retried comment may have been deleted in the meantime.
        let isHeld = try tx.holds(comment.id, in: thread.id)
        if isNew, isHeld { try tx.change(commentCountBy: 1, of: thread) }
    }

    func forgetComments(
        _ comments: [MessageID],
        on post: MessageID,
        _ tx: StoreTransaction
    ) throws {
        guard let thread = try tx.commentThread(.comments(on: post)) else { return }
        try forget(comments, in: thread.id, tx)
        try tx.change(commentCountBy: -comments.count, of: thread)
    }

    // MARK: - Numbers

    /// Requests the numbers of comments on the posts on a screen.
    func askCommentCounts(
        on visible: [MessageID],
        in chat: ChatID,
        _ tx: StoreTransaction
    ) throws {
        guard isLive, chat.isGroup, !visible.isEmpty, try tx.allowsComments(chat) else { return }
        let newest = Array(visible.suffix(Self.mostCounts))
        let posts = comments.postsToCount(among: newest, nowMs: environment.nowMs())
        guard !posts.isEmpty else { return }
        askCommentCounts(on: posts, of: chat)
    }

    /// The maximum number of posts per request, more than a screen shows.
    private static let mostCounts = 100

    private func askCommentCounts(on posts: [MessageID], of channel: ChatID) {
        call(MsgGetCommentsInfoRequest(chatID: channel, postIDs: posts)) { answer, tx in
            // After a failure, the known numbers stay.
            guard case .success(let reply) = answer else { return }
            for update in reply.commentsInfoUpdates {
                let count = update.commentsInfo.totalCount
                try tx.put(commentCount: count, on: update.postID, of: channel)
            }
        }
    }
}

extension StoreReading {
    /// Returns the reason of a refusal about comments, as text for the user.
    func words(for error: ClientError, on channel: ChatID) throws -> String {
        switch error.code {
        case .notAllowed:
            try allowsComments(channel)
                ? "you are banned from commenting in this channel; its administrators can lift that"
                : "comments are closed in this channel; its administrators can open them"
        case .notFound: "this post or comment was deleted, so nothing can be done with it"
        case .chatNotFound: "you are no longer in this channel, so you cannot see its comments"
        default: error.description
        }
    }
}
