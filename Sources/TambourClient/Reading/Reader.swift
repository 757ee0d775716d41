import TambourProtocol

/// Reads chats for display, from one snapshot of the store.
struct Reader {
    let store: any StoreReading
    let me: UserID
    private let names = Names()

    init(_ store: any StoreReading) throws {
        self.store = store
        me = try store.userID() ?? UserID(0)
    }

    /// A cache of names.
    private final class Names {
        var known: [UserID: String] = [:]
    }

    /// Returns the name of a person, or the id if no name is stored.
    func name(_ user: UserID) -> String {
        if let known = names.known[user] { return known }
        let found = try? store.name(of: user)
        let name = found.flatMap { $0.isEmpty ? nil : $0 } ?? "user \(user)"
        names.known[user] = name
        return name
    }

    /// Returns the list of chats: first pinned chats, then the other chats by time, newest first.
    func chats(includingHidden: Bool, limit: Int? = nil) throws -> [ChatSummary] {
        try store.chatList(includingHidden: includingHidden, limit: limit).map(summary)
    }

    func chat(_ chat: ChatID) throws -> ChatSummary? {
        try store.listedChat(chat).map(summary)
    }

    private func summary(_ chat: ListedChat) throws -> ChatSummary {
        let kind = kind(of: chat.id, type: chat.type)
        let muted = chat.mutedUntil
        var isOnline = false
        if case .dialog(let partner) = kind { isOnline = try store.isOnline(partner) }
        return ChatSummary(
            id: chat.id,
            kind: kind,
            title: title(of: kind, chat.title),
            unread: Int(count: chat.unread),
            isMentioned: try chat.id.isGroup && chat.unread > 0
                && store.hasUnread(in: chat.id, concerning: me),
            isMuted: muted != 0 && (muted < 0 || muted > chat.lastEventMs),
            isPinned: chat.favourite != 0,
            isHidden: chat.status == .hidden,
            isGone: chat.status == .removed,
            isOnline: isOnline,
            lastEventMs: chat.lastEventMs,
            preview: preview(of: chat),
            draft: chat.draft,
            failedCount: Int(count: chat.failed)
        )
    }

    private func kind(of chat: ChatID, type: String) -> ChatSummary.Kind {
        if chat.isGroup { return type == "CHANNEL" ? .channel : .group }
        guard let partner = chat.partner(of: me), partner != me else { return .savedMessages }
        return .dialog(partner: partner)
    }

    private func title(of kind: ChatSummary.Kind, _ title: String?) -> String {
        switch kind {
        case .dialog(let partner): name(partner)
        case .savedMessages: "Saved messages"
        case .group, .channel: title ?? ""
        }
    }

    private func preview(of chat: ListedChat) -> ChatSummary.Preview? {
        if let (shown, isRefused) = chat.unsent {
            return ChatSummary.Preview(
                sender: name(me),
                isOwn: true,
                text: shown.line,
                state: isRefused ? .failed(reason: "") : .waiting
            )
        }
        guard let message = chat.message else { return nil }
        let isEvent = message.eventText(name: name) != nil
        return ChatSummary.Preview(
            sender: isEvent ? nil : message.sender.map(name),
            isOwn: message.sender == me,
            text: message.line(name: name),
            state: state(of: message, readMark: chat.othersReadMark)
        )
    }

    func state(of message: Message, readMark: Int64) -> MessageState {
        guard message.sender == me else { return .received }
        return message.time <= readMark ? .read : .sent
    }
}
