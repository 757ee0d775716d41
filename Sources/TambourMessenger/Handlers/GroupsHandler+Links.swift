import TambourProtocol
import TambourStore

/// Handles invitation links and public names. Wire: protocol-spec/opcodes/groups.yaml
extension GroupsHandler {
    /// Answers `CHAT_JOIN` (57): makes the caller a member of the linked chat, or records the
    /// caller's request to join it.
    ///
    /// - Throws: `not.found` if no chat has this link, `not.allowed` for a full group,
    ///   `proto.payload` for too many pending requests to join.
    /// - Note: A command.
    func chatJoin(
        _ request: ChatJoinRequest,
        from caller: Caller,
        in tx: WriteTransaction
    ) throws -> ChatJoinReply {
        guard let link = ChatLink.key(in: request.link, limits: limits),
            let chat = try tx.chat(linkedBy: link)
        else { throw RequestError.notFound }
        if try tx.member(caller.userID, of: chat) == nil {
            guard chat.kind == .channel || chat.memberCount < limits.maxGroupMembers else {
                throw RequestError.notAllowed
            }
            if chat.details.options.contains(.joinRequest) {
                if try !tx.hasRequest(of: caller.userID, in: chat),
                    try tx.requestCount(of: caller.userID) >= limits.maxJoinRequests
                {
                    throw RequestError.protoPayload(
                        "/link: limit \(limits.maxJoinRequests) chats to wait for; leave one first"
                    )
                }
                try tx.addRequest(of: caller.userID, in: chat)
                guard let card = try tx.flushedReader().card(linkedBy: link) else {
                    throw ImpossibleRow("chat", chat.key.rawValue)
                }
                found.note([card.chat.owner], by: caller.userID)
                return ChatJoinReply(chat: card.chat)
            }
            try tx.add([caller.userID], to: chat, showingHistory: true)
            try tx.tellArrival(
                of: [caller.userID],
                Attach(type: .control, event: "joinByLink", userID: caller.userID),
                in: chat,
                by: caller.userID,
                except: caller.connectionID
            )
        }
        return ChatJoinReply(chat: try tx.seen(chat, by: caller.userID))
    }

    /// Answers `CHAT_CHECK_LINK` (56).
    ///
    /// - Throws: `not.found` if no chat has this link.
    /// - Note: A query.
    func chatCheckLink(
        _ request: ChatCheckLinkRequest,
        from _: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatCheckLinkReply {
        guard let link = ChatLink.key(in: request.link, limits: limits),
            try snapshot.card(linkedBy: link) != nil
        else { throw RequestError.notFound }
        return ChatCheckLinkReply()
    }

    /// Answers `LINK_INFO` (89): returns the linked chat. Non-members get only its public details.
    ///
    /// - Note: A query.
    func linkInfo(
        _ request: LinkInfoRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> LinkInfoReply {
        guard let link = ChatLink.key(in: request.link, limits: limits),
            let card = try snapshot.card(linkedBy: link)
        else { return LinkInfoReply() }
        guard let view = try snapshot.view(card.key, for: caller.userID) else {
            found.note([card.chat.owner], by: caller.userID)
            return LinkInfoReply(chat: card.chat)
        }
        return LinkInfoReply(chat: try snapshot.chat(view))
    }

    /// Answers `CHAT_SUGGEST` (300): returns public chats that the caller has not joined, the
    /// largest first.
    ///
    /// - Note: A query.
    func chatSuggest(
        _ request: ChatSuggestRequest,
        from caller: Caller,
        in snapshot: ReadTransaction
    ) throws -> ChatSuggestReply {
        let asked = request.count ?? Int64(limits.searchPageSize)
        let cards = try snapshot.largestPublicChats(
            but: caller.userID,
            limit: Int(clamping: min(max(1, asked), Int64(limits.maxSearchPage)))
        )
        return ChatSuggestReply(chats: cards.map(\.chat))
    }

    /// Makes a chat public under a name, or makes it private. A chat that becomes private has no
    /// link until an administrator creates an invitation link.
    ///
    /// - Throws: `link.taken`, `proto.payload` for contradictory fields.
    func setAccess(
        _ access: ChatAccess?,
        _ link: Text?,
        of chat: ChatState,
        in details: inout ChatDetails,
        _ tx: WriteTransaction
    ) throws {
        let link = link.flatMap { $0.isEmpty ? nil : $0 }
        switch access {
        case nil, .public:
            guard let link else {
                guard details.isPublic else {
                    throw RequestError.protoPayload("/link: missing, a public chat has a name")
                }
                return
            }
            let name = try ChatLink.publicName(in: link, limits: limits)
            if let other = try tx.chat(linkedBy: name), other.key != chat.key {
                throw RequestError.linkTaken
            }
            details.link = name
            details.isPublic = true
        case .private:
            guard link == nil else {
                throw RequestError.protoPayload("/link: a private chat has no name")
            }
            if details.isPublic { details.link = nil }
            details.isPublic = false
        default:
            throw RequestError.protoPayload("/access: neither PUBLIC nor PRIVATE")
        }
    }
}
