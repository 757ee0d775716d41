import TambourEvents
import TambourProtocol
import TambourStore

extension MessagesHandler {
    /// Answers `MSG_EDIT` (67): replaces text, formatting or attachments of the caller's own
    /// message. The role table says which roles may edit messages of other users.
    ///
    /// If the request has no text, the old text stays. An empty text clears it. An empty list of
    /// attachments does not remove attachments, because three known clients send one with every
    /// edit of a text.
    /// - Throws: `chat.not.found`, `not.found`. Throws `not.allowed` for events, and for messages
    ///   of other users that the caller may not edit. Throws `error.message.invalid` if the message
    ///   would be empty.
    /// - Note: A command.
    func msgEdit(
        _ request: MsgEditRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> MsgEditReply {
        if request.postID == nil,
            let delayed = try tx.reader.delayed(
                request.messageID,
                of: caller.userID,
                for: ChatPlace(request.chatID, for: caller.userID)
            )
        {
            return try edit(delayed, as: request, from: caller, in: tx)
        }
        let chat = try tx.known(request.chatID, request.postID, to: caller.userID)
        try ChatRules.requireOpen(chat, for: caller.userID)
        guard let old = try tx.message(request.messageID, in: chat, visibleTo: caller.userID)
        else { throw RequestError.notFound }
        guard !isEvent(old, in: chat) else { throw RequestError.notAllowed }
        let action: RoleTable.Action = old.sender == caller.userID ? .send : .editOthers
        try ChatRules.require(action, of: caller.userID, in: chat, tx)
        // The request changes the time of a message, but only scheduled messages have a time.
        guard request.delayedAttributes == nil else { throw RequestError.notFound }
        var record = old
        let content = try content(
            after: request,
            before: old.content,
            instead: old,
            by: caller,
            in: tx
        )
        try requireNoPoll(content.poll, in: chat)
        (record.text, record.elements) = (content.text, content.elements)
        (record.attaches, record.poll) = (content.attaches, content.poll)
        let edited = try tx.edit(old, to: record, in: chat)
        let message = try tx.message(edited, in: chat)
        try tx.tell(
            message,
            answering: edited.replyTo,
            previous: try tx.previousID(of: edited, in: chat),
            in: chat,
            to: try tx.readers(of: edited.id, in: chat),
            except: caller.connectionID
        )
        return MsgEditReply(
            message: try tx.message(edited, in: chat, for: caller.userID),
            chatID: chat.wireID,
            postID: chat.post?.id
        )
    }

    /// Returns the content of a message after an edit. The edit may change text, formatting,
    /// attachments and poll.
    ///
    /// - Parameter old: the sent message that is edited; nil for a scheduled message.
    func content(
        after request: MsgEditRequest,
        before: MessageContent,
        instead old: MessageRecord?,
        by caller: Caller,
        in tx: WriteTransaction
    ) throws -> MessageContent {
        func packed(_ elements: [Element], for text: Text) throws -> Packed<[Element]>? {
            try ElementRules.packed(elements, for: text, limits: limits, at: "/elements")
        }
        var content = before
        if let text = request.text {
            content.text = text
            content.elements = try packed(request.elements ?? [], for: text)
        } else if let elements = request.elements, !elements.isEmpty {
            content.elements = try packed(elements, for: content.text)
        }
        var sight = sight(of: caller)
        let lists = [("/attachments", request.attachments), ("/attaches", request.attaches)]
        for (path, list) in lists {
            guard let list, !list.isEmpty else { continue }
            (content.attaches, content.poll) = try AttachRules.stored(
                list,
                at: path,
                pollID: tx.newPollID(),
                instead: old,
                preview: preview
            ) {
                try sight.sees($0, in: tx) ? tx.reader.listedAccount($0) : nil
            }
        }
        guard !content.text.isEmpty || content.attaches != nil || content.forward != nil else {
            throw RequestError.errorMessageInvalid
        }
        try MessageSizeRules.requireFits(
            text: content.text,
            elements: content.elements,
            attaches: content.attaches,
            poll: content.poll,
            limits: limits,
            at: "/"
        )
        return content
    }
}
