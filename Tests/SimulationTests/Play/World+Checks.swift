import Foundation
import GRDB
import TambourProtocol
import TambourSQL
import TambourStore

@testable import TambourClient
@testable import TambourMessenger
@testable import TambourServer

/// Properties that must hold at any time, and properties that must hold at rest.
extension World {
    private static let patienceMs: Int64 = 45 * 60 * 1000
    /// More events than any play needs. This limit stops a client that sends requests endlessly.
    private static let patienceEvents = 100_000

    // MARK: - At any time

    /// Checks what the screens show.
    func checkScreens() {
        for device in devices where device.isAlive {
            for chat in chats(on: device) { checkScreen(of: chat, on: device) }
        }
    }

    private func checkScreen(of chat: ChatID, on device: Device) {
        let page = device.read { try $0.history(of: chat, .newest, count: 1000) }
        guard let rows = page?.rows else { return }
        let ids = rows.map(\.id)
        if Set(ids).count != ids.count {
            violated("\(device.name) shows a row of \(chat) twice: \(rows.map(\.text))")
        }
        let messages = rows.compactMap(\.message)
        if messages != messages.sorted() {
            violated("\(device.name) shows \(chat) out of order: \(messages)")
        }
        let own = rows.map(\.text).filter { $0.hasPrefix("\(device.name)#") && !$0.hasSuffix("'") }
        if Set(own).count != own.count {
            let quoted = Set(own.filter { text in own.filter { $0 == text }.count > 1 })
            if rows.filter({ quoted.contains($0.text) && $0.forwardedFrom == nil }).count
                > quoted.count
            {
                violated("\(device.name) shows what it sent twice in \(chat): \(own)")
            }
        }
    }

    // MARK: - At rest

    /// Ends all faults. The devices discover losses in the ordinary way.
    func heal() {
        atNextPage = []
        atNextLogin = []
        behindNext = [:]
        server?.life.death = nil
        if server == nil { loop.run(forMs: 4000) }
        for device in devices {
            device.isOffline = false
            device.fillDisk(for: 0)
        }
        loop.run(forMs: 3000)
        startServer()
        for device in devices {
            device.start()
            _ = device.call { $0.networkChanged() }
        }
    }

    /// Runs events until every device is up to date and idle.
    func settle() {
        let end = loop.nowMs + Self.patienceMs
        var quiet = 0
        let enough = loop.trace.count + Self.patienceEvents
        while quiet < 3, loop.nowMs < end, loop.trace.count < enough, violations.isEmpty {
            loop.run(forMs: 4000)
            quiet = devices.allSatisfy(isSettled) ? quiet + 1 : 0
        }
        if quiet < 3, violations.isEmpty {
            for device in devices where !isSettled(device) {
                let tasks = device.read { reader in
                    try Row.fetchAll(
                        reader.store.db,
                        sql: "SELECT kind, lane, state, attempts, lastError, nextAtHere FROM task"
                    ).map { "\($0)" }
                }
                let ranges = device.read { reader in
                    try reader.store.rows("SELECT * FROM sync_range").map { "\($0)" }
                }
                let asked = device.link?.traffic.open.values.map { "\($0.opcode)" }
                let isLost = device.link?.isLost
                violated(
                    """
                    \(device.name) never rests: tasks \(tasks ?? []), ranges \(ranges ?? []), \
                    asked \(asked ?? []), \(device.core.map { "\($0.state)" } ?? "dead"), \
                    link \(isLost.map { $0 ? "lost" : "up" } ?? "none")
                    """
                )
            }
        }
    }

    private func isSettled(_ device: Device) -> Bool {
        guard device.isOnline, let link = device.link, !link.isLost, link.traffic.open.isEmpty
        else { return false }
        let waiting = device.read { reader in
            try Int.fetchOne(
                reader.store.db,
                sql: """
                    SELECT (SELECT count(*) FROM task
                            WHERE state IN ('blocked', 'ready', 'running', 'waiting'))
                      + (SELECT count(*) FROM sync_range)
                    """
            ) ?? 0
        }
        return waiting == 0 && hasSettledEntities(device)
    }

    /// Scrolls through every chat of every device until nothing is missing.
    func scrollEverything() {
        var missing: [String] = []
        for _ in 0..<300 {
            guard violations.isEmpty else { return }
            missing = []
            for device in devices {
                for chat in chats(on: device) {
                    if let what = scroll(chat, on: device) {
                        missing.append("\(device.name) \(chat): \(what)")
                    }
                }
            }
            guard !missing.isEmpty else { return }
            loop.run(forMs: 1500)
        }
        violated("scrolling to the top never ends: \(missing)")
    }

    /// - Returns: A description of what is still missing; nil when the chat is complete.
    private func scroll(_ chat: ChatID, on device: Device) -> String? {
        guard let page = device.read({ try $0.history(of: chat, .newest, count: 100_000) }) else {
            return nil
        }
        let shown = page.rows.compactMap(\.message)
        let hasGap = page.rows.contains { $0.isGapAfter }
        // The client asks for changes of stored messages only when the user looks at the chat.
        let isUnsure = device.read { reader in
            try Bool.fetchOne(
                reader.store.db,
                sql: "SELECT changesWanted AND changesMark > 0 FROM chat WHERE id = ?",
                arguments: [chat.rawValue]
            )
        }
        guard page.isGapBefore || hasGap || isUnsure == true else {
            _ = device.call { $0.lookAway(from: chat) }
            return nil
        }
        _ = device.wish { core, tx in
            try core.look(
                at: chat,
                position: page.isGapBefore ? shown.first : nil,
                isGoingBack: true,
                rowsOnScreen: 20,
                visible: shown,
                tx
            )
        }
        if isUnsure == true { return "what became of its messages" }
        return page.isGapBefore ? "what is older" : "what is between"
    }

    /// Makes every device log in once more, because a login reports some changes that no push
    /// reports.
    func logInAgain() {
        for device in devices {
            device.link?.lose(Link.Loss(serverAfterUs: 1000, deviceAfterUs: 1000))
        }
    }

    /// Compares every device with the server.
    ///
    /// - Parameter isFresh: Whether all devices have just logged in. If not, changes that no push
    ///   reports are not compared.
    func checkAll(isFresh: Bool) {
        guard violations.isEmpty, let server else { return }
        noteSlowReaders()
        checkScreens()
        do {
            let store = try server.server.messenger.openStore()
            try checkSends(store)
            try checkComments(store)
            checkPhotos()
            try checkEntities { try Truth.ask($0, of: 0, self, store) }
            for user in Set(plan.devices.map(\.user)).sorted() {
                let truth = try Truth(of: user, self, store)
                for device in devices where device.user == user {
                    let moment = isFresh ? "after a login" : "by pushes"
                    try truth.compare(with: device, isFresh: isFresh) {
                        violated("\(device.name) \(moment): \($0)")
                    }
                }
            }
        } catch {
            violated("the server cannot be asked: \(error)")
        }
    }

    /// Checks that each message is stored once, that no acknowledged message is lost, and that each
    /// device's messages are in order.
    private func checkSends(_ store: StoreConnection) throws {
        let statement = try store.sql.prepare(
            "SELECT id, chat FROM message WHERE sender = $1 AND cid = $2"
        )
        var newest: [String: (id: Int64, text: String)] = [:]
        for (number, sent) in sends.enumerated() {
            let device = devices[sent.device]
            statement.bind(1, device.me.rawValue)
            statement.bind(2, sent.cid)
            var ids: [Int64] = []
            while try statement.step() { ids.append(statement.int(0)) }
            statement.reset()
            if ids.count > 1 { violated("\(sent.text) is stored \(ids.count) times") }
            guard let id = ids.first else {
                try checkUnsent(sent, number, device)
                continue
            }
            guard !sent.wasRetried, !sent.isCancelled else { continue }
            let lane = "\(device.name) \(sent.chat)"
            if let last = newest[lane], last.id > id {
                violated("\(sent.text) is stored before \(last.text)")
            }
            newest[lane] = (id, sent.text)
        }
    }

    private func checkUnsent(_ sent: Sent, _ number: Int, _ device: Device) throws {
        if number < forgotten || sent.isCancelled || emptied.contains(sent.chat) { return }
        let state = device.read { reader in
            try String.fetchOne(
                reader.store.db,
                sql: "SELECT state FROM task WHERE id = ?",
                arguments: [sent.task.rawValue]
            )
        }
        guard let state = state ?? nil, state.hasPrefix("failed") else {
            return violated("\(sent.text) is lost: its task is \(String(describing: state))")
        }
    }
}

/// The state that the server would report to a new device of a user.
struct Truth {
    private struct Line: Equatable {
        var type: String
        var status: String
        var title: String?
        var lastMessage: Int64?
        var readMark: Int64
        var unread: Int64
    }

    private struct Shown: Equatable {
        var id: Int64
        var text: String
        var isEdited: Bool
        var reactions: [String]
    }

    private let me: UserID
    private var lines: [ChatID: Line] = [:]
    private var histories: [ChatID: [Shown]] = [:]
    private var drafts: [ChatID: String] = [:]
    private var name = ""
    private var contacts: [Int64: String] = [:]
    /// Contacts that the user has added.
    private var added: Set<Int64> = []
    private var muted: [ChatID: Int64] = [:]
    /// The partner's read mark in each dialog.
    private var partnerMarks: [ChatID: Int64] = [:]

    init(of user: Int, _ world: World, _ store: StoreConnection) throws {
        guard let server = world.server?.server else { throw ClientError.disconnected }
        let messenger = server.messenger
        let requester = world.requester(user)
        me = Templates.shared.user(user)
        let time = messenger.clock.safeTime(wall: messenger.environment.wallMs())
        let request = LoginRequest(
            token: Templates.token(user: user, device: 0),
            interactive: false,
            chatsSync: 0,
            contactsSync: 0,
            draftsSync: 0,
            presenceSync: 0,
            chatsCount: 1000
        )
        let login: LoginReply = try Self.decoded(
            messenger.dispatcher.login(request, from: requester, time: time, on: store)
        )
        var chats = login.chats
        var marker = login.chatMarker ?? 0
        while marker > 0 {
            let more: ChatsListReply = try Self.decoded(
                messenger.dispatcher.query(
                    .chatsList(ChatsListRequest(marker: marker, count: 100)),
                    from: requester,
                    time: time,
                    on: store
                )
            )
            chats += more.chats
            marker = more.marker
        }
        for chat in chats where chat.status != .removed && chat.status != .left {
            lines[chat.id] = Line(
                type: chat.type.name.description,
                status: chat.status.name.description,
                title: chat.title?.description,
                lastMessage: chat.lastMessage?.id.rawValue,
                readMark: chat.participants[me] ?? 0,
                unread: chat.newMessages ?? 0
            )
            if let partner = chat.id.partner(of: me), partner != me,
                !world.cleared.contains(chat.id)
            {
                partnerMarks[chat.id] = chat.participants[partner]
            }
            histories[chat.id] = try Self.history(of: chat.id) { request in
                try Self.decoded(
                    messenger.dispatcher.query(
                        .chatHistory(request),
                        from: requester,
                        time: time,
                        on: store
                    )
                )
            }
        }
        for (chat, draft) in login.drafts?.chats?.saved.pairs ?? [] {
            drafts[chat] = "\(draft.text)"
        }
        for (user, draft) in login.drafts?.users?.saved.pairs ?? [] {
            drafts[.dialog(me, user)] = "\(draft.text)"
        }
        name = login.profile.contact.shownName
        let added = try store.sql.prepare(
            "SELECT user_id FROM contact WHERE owner = $1 AND added = 1"
        )
        added.bind(1, me.rawValue)
        while try added.step() { self.added.insert(added.int(0)) }
        added.reset()
        for user in login.contacts where user.status.map({ "\($0)" }) != "REMOVED" {
            contacts[user.id.rawValue] = user.shownName
        }
        for (chat, settings) in login.config?.chats?.pairs ?? [] {
            let names = NameMap<AnyValue>(stored: Data(settings.bytes.array))
            muted[chat] = names?["dontDisturbUntil"]?.int
        }
    }

    /// Returns the server's reply to an entity pull.
    static func ask(
        _ request: ObjPullRequest,
        of user: Int,
        _ world: World,
        _ store: StoreConnection
    ) throws -> ObjPullReply {
        guard let messenger = world.server?.server.messenger else { throw ClientError.disconnected }
        return try decoded(
            messenger.dispatcher.query(
                .objPull(request),
                from: world.requester(user),
                time: messenger.clock.safeTime(wall: messenger.environment.wallMs()),
                on: store
            )
        )
    }

    /// Returns the ids of the comments on a post; nil if the user cannot see the post.
    static func comments(
        on post: MessageID,
        in channel: ChatID,
        of user: Int,
        _ world: World,
        _ store: StoreConnection
    ) throws -> [Int64]? {
        guard let messenger = world.server?.server.messenger else { throw ClientError.disconnected }
        func ask(_ request: QueryRequest) -> Answer {
            messenger.dispatcher.query(
                request,
                from: world.requester(user),
                time: messenger.clock.safeTime(wall: messenger.environment.wallMs()),
                on: store
            )
        }
        let info = MsgGetCommentsInfoRequest(chatID: channel, postIDs: [post])
        let answer = ask(.msgGetCommentsInfo(info))
        if case .refusal = answer.outcome { return nil }
        let counted: MsgGetCommentsInfoReply = try decoded(answer)
        guard let count = counted.commentsInfoUpdates.first?.commentsInfo.totalCount else {
            return nil
        }
        let page = ChatHistoryRequest(chatID: channel, from: -1, backward: 100, postID: post)
        let reply: ChatHistoryReply = try decoded(ask(.chatHistory(page)))
        let ids = (reply.messages ?? []).map(\.id.rawValue)
        if ids.count != count { world.violated("post \(post) counts \(count) comments: \(ids)") }
        return ids
    }

    private static func decoded<Reply: WirePayload>(_ answer: Answer) throws -> Reply {
        guard case .encoded(let bytes) = answer.outcome else {
            throw ClientError.unreadable(reason: "\(answer.outcome)")
        }
        return try Reply.decode(bytes, limits: .standard)
    }

    private static func history(
        of chat: ChatID,
        _ ask: (ChatHistoryRequest) throws -> ChatHistoryReply
    ) throws -> [Shown] {
        var found: [MessageID: Message] = [:]
        var from: Int64?
        while true {
            let page = try ask(ChatHistoryRequest(chatID: chat, from: from, backward: 100))
            let messages = page.messages ?? []
            let fresh = messages.filter { found[$0.id] == nil }
            for message in messages { found[message.id] = message }
            guard !fresh.isEmpty, let oldest = messages.map(\.time).min() else { break }
            from = oldest
        }
        return found.values.sorted { $0.id < $1.id }.map(shown)
    }

    private static func shown(_ message: Message) -> Shown {
        let info = message.reactionInfo?.stored
        var reactions = (info?.counters ?? []).map { "\($0.reaction) \($0.count)" }.sorted()
        if let own = info?.yourReaction { reactions.append("own \(own)") }
        return Shown(
            id: message.id.rawValue,
            text: "\(message.text)",
            isEdited: message.status == .edited,
            reactions: reactions
        )
    }

    /// Reports every difference between this state and a device's store.
    func compare(
        with device: Device,
        isFresh: Bool,
        _ differs: (String) -> Void
    ) throws {
        guard let store = device.store else { return differs("it has no store") }
        try store.read { db in
            let rows = try Row.fetchAll(
                db,
                sql: "SELECT * FROM chat WHERE status NOT IN ('REMOVED', 'LEFT') ORDER BY id"
            )
            var held: [ChatID: Line] = [:]
            var heldMuted: [ChatID: Int64] = [:]
            for row in rows {
                let chat = ChatID(row["id"])
                held[chat] = Line(
                    type: row["type"],
                    status: row["status"],
                    title: row["title"],
                    lastMessage: row["lastMessage"],
                    readMark: row["readMark"],
                    unread: row["unread"]
                )
                if row["mutedUntil"] != 0 { heldMuted[chat] = row["mutedUntil"] }
                if let mark = partnerMarks[chat], row["othersReadMark"] < mark {
                    differs("\(chat) is read up to \(mark), not \(row["othersReadMark"] as Int64)")
                }
            }
            for chat in Set(lines.keys).union(held.keys).sorted(by: { $0.rawValue < $1.rawValue })
            where lines[chat] != held[chat] {
                differs("chat \(chat) is \(text(held[chat])), should be \(text(lines[chat]))")
            }
            for (chat, wanted) in histories.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                let messages = try Data.fetchAll(
                    db,
                    sql: "SELECT data FROM message WHERE chat = ? ORDER BY id",
                    arguments: [chat.rawValue]
                ).compactMap { Message(stored: $0) }.map(Self.shown)
                if messages != wanted { differs(difference(in: chat, messages, wanted)) }
            }
            for chat in lines.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
                let (held, wanted) = (heldMuted[chat] ?? 0, muted[chat] ?? 0)
                if held != wanted {
                    differs("chat \(chat) is muted until \(held), should be \(wanted)")
                }
            }
            try compareDrafts(db, differs)
            try comparePeople(db, isFresh: isFresh, differs)
        }
    }

    private func compareDrafts(_ db: Database, _ differs: (String) -> Void) throws {
        var heldDrafts: [ChatID: String] = [:]
        // Drafts in groups that the user has left exist only on the device.
        let lost = "(SELECT id FROM chat WHERE status = 'REMOVED')"
        let shared = "SELECT chat, text FROM draft WHERE chat NOT IN \(lost)"
        for row in try Row.fetchAll(db, sql: shared) {
            heldDrafts[ChatID(row[0])] = row[1]
        }
        let saved = "SELECT chat FROM draft_saved WHERE chat IN \(lost)"
        let savedInLost = try Int64.fetchAll(db, sql: saved)
        if !savedInLost.isEmpty { differs("drafts of lost groups are saved: \(savedInLost)") }
        if heldDrafts != drafts { differs("drafts are \(heldDrafts), should be \(drafts)") }
    }

    private func comparePeople(
        _ db: Database,
        isFresh: Bool,
        _ differs: (String) -> Void
    ) throws {
        var heldContacts: [Int64: String] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT id, name, isContact FROM person") {
            if row["isContact"] { heldContacts[row["id"]] = row["name"] }
            if row["id"] == me.rawValue, row["name"] != name {
                differs("its name is \(row["name"] as String), should be \(name)")
            }
        }
        // A full contact list also contains dialog partners who are not contacts.
        var partners = Set(lines.keys.compactMap { $0.partner(of: me)?.rawValue })
        // No push reports a contact that exists only because of a dialog, and the dialog may be
        // deleted.
        if !isFresh { partners.formUnion(Set(contacts.keys).subtracting(added)) }
        for partner in partners { heldContacts[partner] = contacts[partner] }
        if heldContacts != contacts {
            differs("contacts are \(heldContacts), should be \(contacts)")
        }
    }

    private func text(_ line: Line?) -> String { line.map { "\($0)" } ?? "not there" }

    private func difference(in chat: ChatID, _ held: [Shown], _ wanted: [Shown]) -> String {
        let ids = Set(held.map(\.id))
        let wantedIDs = Set(wanted.map(\.id))
        let missing = wanted.filter { !ids.contains($0.id) }.map { "\($0.id) \($0.text)" }
        let extra = held.filter { !wantedIDs.contains($0.id) }.map { "\($0.id) \($0.text)" }
        let others = zip(
            held.filter { wantedIDs.contains($0.id) },
            wanted.filter { ids.contains($0.id) }
        ).filter { $0 != $1 }.map { "\($0) should be \($1)" }
        return "chat \(chat) lacks \(missing), has \(extra) too much, and differs in \(others)"
    }
}
