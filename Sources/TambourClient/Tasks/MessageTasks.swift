import Foundation
import TambourProtocol

/// Sends a message that the server has not stored yet.
struct SendTask: MessageTask {
    static let kind = "message.send"
    static let commentKind: String? = "comment.send"

    let chat: Int64
    var post: Int64?
    /// The idempotency key, by which the server recognises a retry.
    let cid: Int64
    var text: String
    var elements: Data?
    var replyTo: Int64?
    var forwardOf: Int64?
    var forwardFrom: Int64?
    var isSilent = false
    var poll: NewPoll?
    /// Set if the text was changed when the server might already have received the earlier text.
    var hadOtherText: Bool?

    var staysWhenRefused: Bool { true }

    /// The part of a message that this device shows before the server has the message.
    struct Shown: Codable {
        let text: String
        let elements: Data?
        let replyTo: Int64?
        var forwardOf: Int64?
        var forwardFrom: Int64?
        var hasPhoto: Bool?
        var poll: NewPoll?
    }

    var shown: Shown {
        Shown(
            text: text,
            elements: elements,
            replyTo: replyTo,
            forwardOf: forwardOf,
            forwardFrom: forwardFrom,
            poll: poll
        )
    }

    /// Returns the same message with another text and formatting.
    func saying(_ text: String, _ elements: Data?, mayBeSentAlready: Bool) -> SendTask {
        var task = self
        task.text = text
        task.elements = elements
        if mayBeSentAlready { task.hadOtherText = true }
        return task
    }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        let now = core.environment.wallMs()
        try tx.addOverlay(.send, of: task, chat: place, cid: cid, atHereMs: now, shown)
    }

    func request(_ tx: StoreTransaction) throws -> MsgSendRequest {
        var link: NewLink?
        if let replyTo { link = NewLink(type: .reply, messageID: MessageID(replyTo)) }
        if let forwardOf {
            link = NewLink(
                type: .forward,
                messageID: MessageID(forwardOf),
                chatID: forwardFrom.map(ChatID.init)
            )
        }
        return MsgSendRequest(
            chatID: ChatID(chat),
            notify: !isSilent,
            postID: post.map(MessageID.init),
            message: NewMessage(
                cid: cid,
                text: text.isEmpty ? nil : Text(text),
                elements: elements.flatMap { [Element](stored: $0) } ?? [],
                attaches: poll.map { [$0.attach] } ?? [],
                link: link
            )
        )
    }

    func succeeded(_ reply: MsgSendReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        if let thread = try tx.commentThread(place) {
            try core.learnSent(reply.message, after: reply.prevMessageID, in: thread, tx)
        } else if post == nil {
            try core.learnSent(reply, tx)
        }
        // The server keeps the first text that it received under a `cid`. If that text differs,
        // edit the message.
        guard hadOtherText == true, reply.message.status != .removed,
            "\(reply.message.text)" != text
        else { return }
        try core.queue(
            EditTask(
                chat: reply.chatID.rawValue,
                post: post,
                message: reply.message.id.rawValue,
                text: text,
                elements: elements
            ),
            tx
        )
    }
}

extension ClientCore {
    /// Stores the server's reply to a sent comment.
    fileprivate func learnSent(
        _ comment: Message,
        after previous: MessageID?,
        in thread: CommentThread,
        _ tx: StoreTransaction
    ) throws {
        guard comment.status != .removed else { return }
        let asked = tasks.asked.revision
        let isCurrent = try isCurrent(comment.id, in: thread.id, since: asked, tx)
        try learn(comment, after: previous, in: thread, tx)
        if !isCurrent { try askReactions(to: comment.id, in: thread.id, tx) }
    }

    /// Stores the server's reply to a sent message.
    func learnSent(_ reply: MsgSendReply, _ tx: StoreTransaction) throws {
        guard let me = try tx.userID() else { return }
        if let described = reply.chat {
            try learn(described, tx)
        } else {
            try noteMoved(reply.chatID, tx)
        }
        guard reply.message.status != .removed else { return }
        let (chat, id) = (reply.chatID, reply.message.id)
        // After a retry, the message may already be stored with reactions that the reply lacks.
        let isCurrent = try isCurrent(id, in: chat, since: tasks.asked.revision, tx)
        try learn(reply.message, after: .known(reply.prevMessageID), in: chat, tx)
        if !isCurrent { try askReactions(to: id, in: chat, tx) }
        // The reply to a retry may arrive after the message was deleted.
        let isNewest = try tx.holds(id, in: chat) && !tx.noteNew(reply.message, in: chat, me: me)
        if let mark = reply.mark {
            _ = try tx.put(mark: mark, of: me, in: chat, isLowered: false, me: me)
        }
        guard let unread = reply.unread else { return }
        // If pushes of later messages arrived before the reply, the unread count in the reply omits
        // these messages.
        guard isNewest else { return try refresh(chat, tx) }
        try tx.put(unread: unread, in: chat)
    }
}

/// Replaces the text of an own message.
struct EditTask: MessageTask {
    static let kind = "message.edit"
    static let commentKind: String? = "comment.edit"

    let chat: Int64
    var post: Int64?
    let message: Int64
    let text: String
    var elements: Data?

    var coalescingKey: String? { "edit:\(message)" }

    struct Shown: Codable {
        let text: String
        let elements: Data?
    }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        let now = core.environment.wallMs()
        let (chat, message) = (place, MessageID(message))
        let shown = Shown(text: text, elements: elements)
        try tx.addOverlay(.edit, of: task, chat: chat, message: message, atHereMs: now, shown)
    }

    func request(_ tx: StoreTransaction) throws -> MsgEditRequest {
        MsgEditRequest(
            chatID: ChatID(chat),
            messageID: MessageID(message),
            text: Text(text),
            elements: elements.flatMap { [Element](stored: $0) } ?? [],
            postID: post.map(MessageID.init)
        )
    }

    func succeeded(_ reply: MsgEditReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        let (chat, message) = (place, MessageID(message))
        let isCurrent = try core.isCurrent(message, in: chat, since: core.tasks.asked.revision, tx)
        try core.learnEdit(of: reply.message, in: chat, isPushed: false, tx)
        // The reply contains the reactions at the time of the edit, so request newer reactions.
        if !isCurrent { try core.askReactions(to: message, in: chat, tx) }
    }
}

/// Deletes messages, for everybody or for this account only.
struct DeleteTask: MessageTask {
    static let kind = "message.delete"
    static let commentKind: String? = "comment.delete"

    let chat: Int64
    var post: Int64?
    let messages: [Int64]
    let isForMe: Bool

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        let now = core.environment.wallMs()
        // The table allows one row of this kind per task, so the value lists all messages.
        try tx.addOverlay(.delete, of: task, chat: place, atHereMs: now, messages)
    }

    func request(_ tx: StoreTransaction) throws -> MsgDeleteRequest {
        MsgDeleteRequest(
            chatID: ChatID(chat),
            messageIDs: messages.map(MessageID.init),
            forMe: isForMe,
            postID: post.map(MessageID.init)
        )
    }

    func succeeded(_ reply: MsgDeleteReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        if let post, !isForMe {
            try core.forgetComments(reply.messageIDs, on: MessageID(post), tx)
        } else {
            try core.forget(reply.messageIDs, in: place, tx)
        }
        if reply.failedMessageIDs?.isEmpty == false {
            core.publish(.refused("Messages of others can be deleted only for yourself here"))
        }
    }
}

/// Sets the account's read mark in a chat.
struct MarkTask: ClientTask {
    static let kind = "chat.mark"

    let chat: Int64
    let message: Int64
    /// Whether the mark is lowered, so that the message and all later messages become unread again.
    let isUnread: Bool

    var lane: String? { "mark:\(chat)" }
    var changedChat: ChatID? { ChatID(chat) }
    /// The newest mark replaces all queued marks.
    var coalescingKey: String? { "mark" }
    // Messages are marked as read automatically, so a refusal is not reported. Marking as unread is
    // a command of the user.
    var tellsRefusal: Bool { isUnread }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        guard let me = try tx.userID() else { return }
        let time = MessageID(message).timeMs
        _ = try tx.put(
            mark: isUnread ? time - 1 : time,
            of: me,
            in: ChatID(chat),
            isLowered: isUnread,
            me: me
        )
    }

    func request(_ tx: StoreTransaction) throws -> ChatMarkRequest {
        ChatMarkRequest(
            type: isUnread ? .setAsUnread : .readMessage,
            chatID: ChatID(chat),
            messageID: MessageID(message),
            mark: MessageID(message).timeMs
        )
    }

    func succeeded(_ reply: ChatMarkReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        let id = ChatID(chat)
        // The count omits messages after the mark whose pushes arrived before the reply.
        let isCurrent = core.isCurrent(.chat(id), since: core.tasks.asked.transactions, tx)
        try tx.put(unread: reply.unread, readMark: reply.mark, in: id)
        let newest = try tx.chatRow(id)?.newest
        let hasNewer = newest.map { $0.timeMs > reply.mark } ?? false
        if !isCurrent, hasNewer || reply.unread > 0 { try core.refresh(id, tx) }
    }

    func refused(in core: ClientCore, _ tx: StoreTransaction) throws {
        try core.refresh(ChatID(chat), tx)
    }
}

/// Reacts to a message.
struct ReactTask: MessageTask {
    static let kind = "message.react"
    static let commentKind: String? = "comment.react"

    let chat: Int64
    var post: Int64?
    let message: Int64
    let emoji: String

    var coalescingKey: String? { "react:\(message)" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        let now = core.environment.wallMs()
        let (chat, message) = (place, MessageID(message))
        try tx.addOverlay(.react, of: task, chat: chat, message: message, atHereMs: now, [emoji])
    }

    func request(_ tx: StoreTransaction) throws -> MsgReactionRequest {
        MsgReactionRequest(
            chatID: ChatID(chat),
            messageID: MessageID(message),
            reaction: NewReaction(id: Text(emoji)),
            postID: post.map(MessageID.init)
        )
    }

    func succeeded(_ reply: MsgReactionReply, in core: ClientCore, _ tx: StoreTransaction) throws {
        let (chat, message) = (place, MessageID(message))
        let asked = core.tasks.asked.revision
        try core.learn(reply.reactionInfo, to: message, in: chat, since: asked, tx)
    }
}

/// Removes a reaction.
struct CancelReactionTask: MessageTask {
    static let kind = "message.react.cancel"
    static let commentKind: String? = "comment.react.cancel"

    let chat: Int64
    var post: Int64?
    let message: Int64

    var coalescingKey: String? { "react:\(message)" }

    func prepare(_ task: TaskID, in core: ClientCore, _ tx: StoreTransaction) throws {
        let now = core.environment.wallMs()
        let (chat, message) = (place, MessageID(message))
        try tx.addOverlay(.react, of: task, chat: chat, message: message, atHereMs: now, [String]())
    }

    func request(_ tx: StoreTransaction) throws -> MsgCancelReactionRequest {
        MsgCancelReactionRequest(
            chatID: ChatID(chat),
            messageID: MessageID(message),
            postID: post.map(MessageID.init)
        )
    }

    func succeeded(_ reply: MsgCancelReactionReply, in core: ClientCore, _ tx: StoreTransaction)
        throws
    {
        let (chat, message) = (place, MessageID(message))
        let asked = core.tasks.asked.revision
        try core.learn(reply.reactionInfo, to: message, in: chat, since: asked, tx)
    }
}
