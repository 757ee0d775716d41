import TambourEvents
import TambourProtocol
import TambourStore

/// Makes an announcement in small steps. Requests run between the steps.
///
/// Each step adds some accounts to the channel of announcements, and stores its progress in the
/// same transaction. The last step posts the text. The text is therefore posted exactly once, when
/// everybody is a member. After a restart, the server continues where it stopped.
struct Announcer: Sendable {
    /// The result of a step.
    enum Step: Equatable, Sendable {
        /// No announcement waits.
        case nothing
        case more
        /// This step posted the text.
        case posted
        /// The owner of the channel is being erased. The next owner posts the text.
        case hasNoOwner
        /// The channel was deleted, so this step deleted the announcement.
        case hasNoChannel
    }

    let limits: Limits

    func step(in tx: WriteTransaction) throws -> Step {
        guard let waiting = try tx.reader.announcement(), waiting.message == nil else {
            return .nothing
        }
        guard let chat = try tx.livingChat(waiting.chat) else {
            try tx.drop(waiting)
            _ = try tx.removeDefaultChat(waiting.chat)
            return .hasNoChannel
        }
        let page = try tx.reader.accounts(after: waiting.upTo, limit: limits.announcedPerStep)
        let users = page.filter { !$0.isErased }.map(\.id)
        let added = tx.outsiders(among: users, of: chat)
        if !added.isEmpty {
            try tx.add(added, to: chat, showingHistory: true)
            try tx.announce(chat, to: added, last: nil, except: nil)
        }
        if page.count == limits.announcedPerStep, let last = page.last {
            try tx.setAnnounced(upTo: last.id, waiting)
            return .more
        }
        return try post(waiting, in: chat, tx)
    }

    private func post(
        _ waiting: Announcement,
        in chat: ChatState,
        _ tx: WriteTransaction
    ) throws -> Step {
        guard try tx.reader.account(chat.owner)?.isErased == false else {
            return .hasNoOwner
        }
        let (record, previous) = try tx.append(
            MessageContent(cid: waiting.id, text: waiting.text),
            to: chat,
            from: chat.owner,
            on: tx.serverDevice(of: chat.owner)
        )
        _ = try tx.tell(
            new: tx.message(record, in: chat),
            of: record,
            previous: previous,
            in: chat,
            except: nil
        )
        try tx.finish(waiting, as: record.id)
        return .posted
    }
}

extension WriteTransaction {
    /// Adds new accounts to the default chats that exist and have room.
    ///
    /// If a group is full, the registration succeeds without it. `admin default-chats list` shows
    /// which groups are full.
    func joinDefaultChats(_ users: [UserID], limits: Limits) throws {
        for key in try reader.defaultChats() {
            guard let chat = try livingChat(key) else { continue }
            let room =
                chat.kind == .channel
                ? users.count : max(0, limits.maxGroupMembers - chat.memberCount)
            let added = users.prefix(room).sorted()
            guard let first = added.first else { continue }
            try add(added, to: chat, showingHistory: true)
            // If there is one account, the event says that its user joined. Several accounts at
            // once are created by an administrator. The event then says that the owner of the chat
            // added them.
            let (event, user) =
                added.count == 1
                ? (Attach(type: .control, event: "joinByLink", userID: first), first)
                : (
                    Attach(
                        type: .control,
                        event: "add",
                        userID: chat.owner,
                        userIDs: Array(added.prefix(limits.maxIDsPerRequest))
                    ),
                    chat.owner
                )
            try tellArrival(of: added, event, in: chat, by: user, except: nil)
        }
    }
}
