import TambourEvents
import TambourProtocol
import TambourStore

/// An administrator's request for an announcement.
package struct AnnouncementRequest: Equatable, Sendable {
    package let text: String
    /// The owner of the channel that the first announcement creates, as a phone or a user id.
    package let owner: String?
    /// The title of that channel.
    package let title: String
    /// Whether the text may be the same as in the last announcement.
    package let isRepeated: Bool

    package static let usualTitle = "Announcements"

    package init(
        _ text: String,
        owner: String? = nil,
        title: String = usualTitle,
        isRepeated: Bool = false
    ) {
        self.text = text
        self.owner = owner
        self.title = title
        self.isRepeated = isRepeated
    }
}

extension AdminService {
    // MARK: - Announcements

    /// Adds everybody to the channel of announcements and posts a text there.
    ///
    /// The method first stores the request, so the server can finish it after a crash. If the
    /// administrator then repeats the same request, it continues the stored one.
    func announce(_ request: AnnouncementRequest, _ output: (String) throws -> Void) throws {
        let text = Text(request.text)
        try requireFits(request)
        let channel = Box<ChatKey?>(nil)
        let (environment, limits) = (backend.environment, backend.limits)
        try backend.write { tx in
            channel.value = try Self.store(text, request, environment, limits, in: tx)
        }
        let announcer = Announcer(limits: limits)
        let step = Box(Announcer.Step.more)
        while step.value == .more {
            try backend.write { tx in step.value = try announcer.step(in: tx) }
        }
        if step.value == .hasNoOwner {
            throw Failure(
                description: "the owner of the channel is being erased; the server posts the "
                    + "announcement when that is done"
            )
        }
        let count = Box<Int64>(0)
        let post = Box<MessageID?>(nil)
        try backend.read { store in
            try store.read { snapshot in
                post.value = try snapshot.announcement()?.message
                guard let key = channel.value else { return }
                count.value = try snapshot.inspectedChat(key)?.memberCount ?? 0
            }
        }
        guard let post = post.value, let channel = channel.value else {
            throw Failure(
                description: "the channel was deleted before the announcement was posted; "
                    + "run the command again with --from"
            )
        }
        try output("posted as \(post.rawValue) in \(channel.rawValue) to \(count.value) members")
    }

    private func requireFits(_ request: AnnouncementRequest) throws {
        let (text, title, limits) = (request.text.utf16, request.title.utf16, backend.limits)
        guard !text.isEmpty else { throw Failure(description: "the text is empty") }
        guard text.count <= limits.maxTextUnits, request.text.utf8.count <= limits.maxTextBytes
        else {
            throw Failure(
                description: "the text has \(text.count) characters, the limit is "
                    + "\(limits.maxTextUnits); shorten it or announce it in parts"
            )
        }
        guard (1...limits.maxTitleUnits).contains(title.count) else {
            throw Failure(description: "the title has 1 to \(limits.maxTitleUnits) characters")
        }
    }

    /// Stores the announcement. If an announcement with the same text is already waiting, stores
    /// nothing.
    ///
    /// - Returns: the channel of announcements. The first announcement creates it.
    private static func store(
        _ text: Text,
        _ request: AnnouncementRequest,
        _ environment: Environment,
        _ limits: Limits,
        in tx: WriteTransaction
    ) throws -> ChatKey {
        let last = try tx.reader.announcement()
        if let last, last.message == nil {
            guard last.text == text else {
                throw Failure(
                    description: "the announcement of \(AdminText.time(last.created)) is still on "
                        + "its way; try again when it is posted"
                )
            }
            return last.chat
        }
        let owner = try request.owner.map { user in
            guard let account = try account(user, in: tx.reader), !account.isBlocked else {
                throw unknown(user: user)
            }
            return account.id
        }
        let living = try last.flatMap { try tx.livingChat($0.chat) }
        if let last, let id = last.message, let living, !request.isRepeated,
            let post = try tx.record(id, in: living), post.text == text
        {
            throw Failure(
                description: "the last announcement, of \(AdminText.time(last.created)), has the "
                    + "same text; --again announces it once more"
            )
        }
        let chat = try living ?? create(request.title, owner, environment, limits, in: tx)
        guard owner ?? chat.owner == chat.owner else {
            let channel = chat.key.rawValue
            throw Failure(
                description: "announcements are posted by \(chat.owner), the owner of channel "
                    + "\(channel); leave --from out"
            )
        }
        if let last, last.chat != chat.key { _ = try tx.removeDefaultChat(last.chat) }
        try tx.addDefaultChat(chat)
        try tx.addAnnouncement(text, in: chat, after: last)
        try tx.record(.announce, about: nil, "channel \(chat.key.rawValue)")
        return chat.key
    }

    private static func create(
        _ title: String,
        _ owner: UserID?,
        _ environment: Environment,
        _ limits: Limits,
        in tx: WriteTransaction
    ) throws -> ChatState {
        guard let owner else {
            throw Failure(
                description: "there is no channel of announcements yet; name its owner with "
                    + "--from, for example --from=+79990000001"
            )
        }
        return try tx.startChat(
            .channel,
            title: Text(title),
            owner: owner,
            on: tx.serverDevice(of: owner),
            link: ChatLink.newInvitation(environment),
            cid: tx.ct - 1,
            limits: limits,
            except: nil
        ).chat
    }

    // MARK: - Default chats

    /// Prints a line `ID KIND MEMBERS STATE "TITLE"` for each chat that new accounts join.
    func listDefaultChats(_ output: (String) throws -> Void) throws {
        let lines = Box<[String]>([])
        let most = backend.limits.maxGroupMembers
        try backend.read { store in
            lines.value = try store.read { snapshot in
                let announces = try snapshot.announcement()?.chat
                return try snapshot.defaultChats().map { key in
                    guard let chat = try snapshot.inspectedChat(key), chat.memberCount > 0
                    else { return "\(key.rawValue) - 0 deleted" }
                    let state =
                        key == announces
                        ? "announcements"
                        : chat.kind == .group && chat.memberCount >= most ? "full" : "open"
                    return "\(key.rawValue) \(chat.kind) \(chat.memberCount) \(state) "
                        + AdminText.quoted(chat.title ?? .empty)
                }
            }
        }
        for line in lines.value { try output(line) }
    }

    func addDefaultChat(_ id: String, _ output: (String) throws -> Void) throws {
        let most = backend.limits.maxDefaultChats
        try backend.write { tx in
            guard let key = Int64(id).map({ ChatKey($0) }), let chat = try tx.livingChat(key) else {
                throw Failure("there is no group or channel with this id", typed: id)
            }
            let known = try tx.reader.defaultChats()
            guard !known.contains(key) else {
                throw Failure(description: "new accounts join \(key.rawValue) already")
            }
            guard known.count < most else {
                throw Failure(
                    description: "new accounts join \(known.count) chats already, the limit is "
                        + "\(most); remove one first"
                )
            }
            try tx.addDefaultChat(chat)
            try tx.record(.addDefaultChat, about: nil, "chat \(key.rawValue)")
        }
        try output("\(id) added: new accounts join it")
    }

    func removeDefaultChat(_ id: String, _ output: (String) throws -> Void) throws {
        try backend.write { tx in
            guard let key = Int64(id).map({ ChatKey($0) }), try tx.removeDefaultChat(key) else {
                throw Failure("new accounts do not join this chat", typed: id)
            }
            try tx.record(.removeDefaultChat, about: nil, "chat \(key.rawValue)")
        }
        try output("\(id) removed: new accounts do not join it, its members stay")
    }
}
