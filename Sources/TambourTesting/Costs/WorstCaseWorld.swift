import Glibc
import Synchronization
import TambourEvents
import TambourFraming
import TambourMessenger
package import TambourProtocol
import TambourSQL
import TambourServer
package import TambourStore

/// A server with a prepared store. The store makes requests of the user Alice as expensive as users
/// can make them.
///
/// Alice has two sessions, many dialogs, small groups, contacts, settings, folders and drafts. She
/// owns the crowd, a group with a long history. All members have read this history. Bob is a member
/// of the crowd and is online.
package final class WorstCaseWorld {
    /// The size of the store.
    package struct Size: Sendable {
        package var members: Int
        package var messages: Int
        /// The number of circles. A circle is the largest group in which a change updates the row
        /// of each member.
        package var circles: Int

        package static let small = Size(members: 120, messages: 1_200, circles: 220)
        package static let large = Size(members: 2_000, messages: 60_000, circles: 1_000)
    }

    package let server: TestServer
    package let size: Size
    package let alice: WireClient
    /// Alice's other session.
    package let tablet: WireClient
    package let bob: WireClient
    package private(set) var users: [UserID] = []
    /// A group of all users, which Alice owns. It has more members than the fan-out threshold.
    package private(set) var crowd = ChatID(0)
    /// The ids of the crowd's messages, the oldest first.
    package private(set) var messages: [MessageID] = []
    /// The circles (see `Size.circles`), the newest first.
    package private(set) var circles: [ChatID] = []
    package var circle: ChatID { circles[0] }
    package private(set) var dialogs: [ChatID] = []
    /// Polls in the crowd. All members have voted in the first poll.
    package private(set) var polls: [PollReference] = []
    /// A message in a group. Only Alice and Bob can see it, because the other members joined the
    /// group later.
    package private(set) var veiled: (chat: ChatID, message: MessageID) = (ChatID(0), MessageID(0))
    /// A channel of all users, which Alice owns. It has as many posts as a request may name. Each
    /// post has comments.
    package private(set) var channel = ChatID(0)
    package private(set) var posts: [MessageID] = []
    /// A user who is a member of many groups. The `strangers` are also members of many groups, but
    /// of none of these groups.
    package let wanderer: WireClient
    package private(set) var strangers: [UserID] = []
    /// The largest message of the crowd.
    package private(set) var large = MessageID(0)
    /// The words in each message of the crowd.
    package static let words = "lorem ipsum dolor sit amet consectetur"

    private let meter = CostMeter()
    private let clock = WorldClock()
    private var lastCID: Int64 = 0

    package init(_ size: Size) throws {
        self.size = size
        let clock = clock
        var environment = Environment.live
        environment.wallMs = { clock.now }
        environment.disk = meter.disk
        environment.doesSpareWork = false
        let quiet = ["housekeepingIntervalMs": 3_600_000, "idleTimeoutMs": 3_600_000]
        server = try TestServer(overrides: quiet, environment: environment)
        alice = try server.signUp("Alice", capabilities: ["objects"])
        tablet = try server.signIn(
            phoneOf: alice,
            device: "tablet",
            capabilities: ["objects"]
        )
        bob = try server.signUp("Bob")
        wanderer = try server.signUp("Wanderer")
        try fill()
        try settle()
        _ = meter.take()
    }

    package func remove() { server.remove() }

    // MARK: - For cases

    package func nextCID() -> Int64 {
        lastCID += 1
        return lastCID
    }

    package var newest: [MessageID] {
        Array(messages.suffix(Limits.standard.maxIDsPerRequest))
    }

    /// Alice's chats, the most expensive first: the circles, the crowd, the dialogs.
    package var chats: [ChatID] { circles + [crowd] + dialogs }

    /// Runs `body` on the engine and waits until it returns.
    package func run(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        try LiveAdminBackend(server.server).write(body)
    }

    package func advance(ms: Int64) { clock.advance(ms) }

    /// Sends a new message from Alice to a chat.
    package func send(to chat: ChatID) throws -> MessageID {
        try send(NewMessage(cid: nextCID(), text: "a"), to: chat)
    }

    package func send(_ message: NewMessage, to chat: ChatID) throws -> MessageID {
        try alice.call(MsgSendRequest(chatID: chat, message: message)).message.id
    }

    /// Returns a message whose size is just below `maxMessageContentBytes`.
    package func largest(embedding link: NewLink?) -> NewMessage {
        let limits = Limits.standard
        // In UTF-8, a text has at most three bytes for each UTF-16 unit.
        let text = Text.longest(units: limits.maxTextUnits)
        let url = AnyValue(Text("https://a.example/" + String(repeating: "u", count: 2_000)))
        let attributes = AnyValue(NameMap([(Text("url"), url)]))
        let room = limits.maxMessageContentBytes - text.bytes.count
        let elements = (0..<Int64(room / 2_100)).map {
            Element(type: "LINK", from: $0 * 4, length: 3, attributes: attributes)
        }
        return NewMessage(cid: nextCID(), text: text, elements: elements, link: link)
    }

    // MARK: - Measuring

    /// The cost of a request.
    package struct Measured: Sendable {
        package var store = StoreCost()
        /// The number of bytes by which rows and indexes grew in the database file.
        package var bytesStored = 0
        /// The sizes of the pushes before compression, in bytes. `toldOwn` counts pushes to Alice's
        /// other session, `toldMember` counts pushes to one session of a member.
        package var toldOwn = 0
        package var toldMember = 0
        /// The error, if the request was refused.
        package var refusal: String?
    }

    /// Sends a request and measures its costs. The engine's background work does not count.
    package func measure(_ play: WorstCase) throws -> Measured {
        try waitForClosing(besides: play.client)
        try settle()
        for client in [alice, tablet, bob] { _ = try client.takePushes() }
        let stored = play.isCommand ? try usedBytes() : 0
        _ = meter.take()
        let packet = try play.client.reply(
            to: play.client.send(play.opcode, payload: play.payload)
        )
        // Wait until the engine has finished. The meter also counts this empty transaction.
        try run { _ in }
        var measured = Measured()
        measured.store = meter.take()
        measured.bytesStored = play.isCommand ? try usedBytes() - stored : 0
        measured.toldOwn = Self.bytes(of: (try? tablet.takePushes()) ?? [])
        measured.toldMember = Self.bytes(of: (try? bob.takePushes()) ?? [])
        if packet.header.command == PacketCommand.error.rawValue {
            let error = try ErrorReply.decode(packet.payload, limits: .standard)
            measured.refusal = "\(error.error): \(error.message)"
        }
        return measured
    }

    private static func bytes(of pushes: [WireClient.Push]) -> Int {
        pushes.reduce(0) { $0 + PacketHeader.size + $1.payload.count }
    }

    /// Waits until the connections of earlier cases are closed. When a connection closes, the
    /// server stores a last-seen time. This work must not count as work of the next request.
    private func waitForClosing(besides player: WireClient) throws {
        let staying = [alice, tablet, bob, wanderer]
        let most = staying.count + (staying.contains { $0 === player } ? 0 : 1)
        let deadline = ContinuousClock.now + .seconds(60)
        while server.server.connectionCount > most {
            guard ContinuousClock.now < deadline else { throw StillConnected() }
            sched_yield()
        }
    }

    private struct StillConnected: Error {}

    /// Indexes all pending words now. Otherwise the engine would index them during the measurement.
    private func settle() throws {
        try run { tx in
            while tx.hasWordsToIndex { try tx.indexWords() }
        }
    }

    /// Returns the size of all rows and indexes in bytes. Free space in pages does not count. The
    /// size therefore does not grow when a page is only split.
    private func usedBytes() throws -> Int {
        let file = try SQLiteConnection(
            path: "\(server.dataDirectory)/tambour.db",
            mode: .readOnly
        )
        let statement = try file.prepare(
            "SELECT sum(pgsize - unused) FROM dbstat WHERE aggregate = TRUE"
        )
        defer { statement.reset() }
        return try statement.step() ? Int(statement.int(0)) : 0
    }

    // MARK: - Filling

    private func fill() throws {
        users = try accounts(size.members, firstPhone: 79_000_000_000)
        let everybody = users
        let (me, him) = (alice.userID, bob.userID)
        crowd = try alice.createGroup("Crowd", with: [bob], cid: nextCID())
        let crowd = crowd
        try run { tx in
            guard let chat = try tx.chat(crowd, visibleTo: me) else { return }
            try tx.add(everybody, to: chat, showingHistory: true)
        }
        try fillCrowd(by: [me, him] + everybody)
        for user in users.prefix(500) {
            _ = try alice.call(ContactUpdateRequest(contactID: user, action: .add))
        }
        let own = users.prefix(500)
        try run { tx in
            for user in own {
                let chat = try tx.createPairChat(me, user, by: user)
                let content = MessageContent(cid: user.rawValue, text: "hello there")
                _ = try tx.append(content, to: chat, from: user, on: DeviceID(1))
            }
        }
        dialogs = own.map { .dialog(me, $0) }
        for index in 0..<Limits.standard.maxPollsPerRequest {
            try fillPoll(votedIn: index == 0 ? users : Array(users.prefix(20)))
        }
        try fillVeiled()
        (channel, posts) = try commentedChannel(posts: Limits.standard.maxIDsPerRequest)
        try fillPublicChats()
        try fillCircles()
        try fillStrangers()
        large = try send(largest(embedding: nil), to: crowd)
        let last = large
        try run { tx in
            guard let chat = try tx.chat(crowd, visibleTo: me) else { return }
            for user in everybody { try tx.raiseRead(to: last.timeMs, of: user, in: chat) }
        }
    }

    private func accounts(_ count: Int, firstPhone: Int64) throws -> [UserID] {
        var ids: [UserID] = []
        _ = try AdminClient(dataDirectory: server.dataDirectory).run(
            .createUsers(count: count, firstPhone: firstPhone)
        ) { line in
            ids.append(UserID(Int64(String(line.split(separator: " ")[1])) ?? 0))
        }
        return ids
    }

    /// Stores the messages of the crowd. Each message is a reply to the previous message and has a
    /// reaction by Alice.
    private func fillCrowd(by senders: [UserID]) throws {
        let (crowd, me) = (crowd, alice.userID)
        let found = Mutex<[MessageID]>([])
        for chunk in stride(from: 0, to: size.messages, by: 1_000) {
            let count = min(1_000, size.messages - chunk)
            try run { [words = Self.words] tx in
                guard let chat = try tx.chat(crowd, visibleTo: me) else { return }
                var ids: [MessageID] = []
                for index in 0..<count {
                    // Half of the messages have an attachment. No media list shows attachments of
                    // this type.
                    let event = index % 2 == 0 ? Packed([Attach(type: .control)]) : nil
                    var content = MessageContent(
                        cid: Int64(1_000_000 + chunk + index),
                        text: Text("\(words) \(chunk + index)"),
                        attaches: event
                    )
                    content.replyTo = ids.last
                    let sender = senders[index % senders.count]
                    ids.append(
                        try tx.append(content, to: chat, from: sender, on: DeviceID(1)).record.id
                    )
                }
                found.withLock { $0 += ids }
            }
            clock.advance(1_001)
        }
        messages = found.withLock { $0 }
        try react(to: newest, by: [me], in: crowd)
    }

    /// Stores a reaction of each user to each message.
    package func react(to ids: [MessageID], by users: [UserID], in chat: ChatID) throws {
        let me = alice.userID
        try run { tx in
            guard let chat = try tx.chat(chat, visibleTo: me) else { return }
            for id in ids {
                guard let record = try tx.record(id, in: chat) else { continue }
                for (place, user) in users.enumerated() {
                    let count = Int64(place + 1)
                    try tx.setReaction(
                        "👍",
                        of: user,
                        to: record,
                        in: chat,
                        leaving: ReactionInfo(
                            totalCount: count,
                            counters: [ReactionCounter(count: count, reaction: "👍")]
                        )
                    )
                }
            }
        }
    }

    private func fillPoll(votedIn voters: [UserID]) throws {
        let answers = (1...Limits.standard.maxPollAnswers).map { number in
            NewPollAnswer(text: Text(String(repeating: "\(number % 10)", count: 500)))
        }
        let attach = NewAttach(type: .poll, title: "Who?", answers: answers, settings: 2)
        let message = try alice.call(
            MsgSendRequest(
                chatID: crowd,
                message: NewMessage(cid: nextCID(), attaches: [attach])
            )
        ).message
        guard let id = message.attaches.stored?.first?.pollID else { return }
        polls.append(PollReference(messageID: message.id, pollID: id))
        let (crowd, me) = (crowd, alice.userID)
        try run { tx in
            guard let chat = try tx.chat(crowd, visibleTo: me),
                var record = try tx.record(message.id, in: chat)
            else { return }
            for voter in voters {
                record = try tx.setChoices([1], insteadOf: [], of: voter, in: record, of: chat)
            }
        }
    }

    /// Creates a channel of all users. Alice writes the posts, and each post has a comment by Bob.
    package func commentedChannel(posts count: Int) throws -> (chat: ChatID, posts: [MessageID]) {
        let channel = try alice.channel("Posts", with: [bob], cid: nextCID())
        let (me, members, first) = (alice.userID, users, nextCID())
        lastCID += Int64(count)
        let found = Mutex<[MessageID]>([])
        try run { tx in
            guard let chat = try tx.chat(channel, visibleTo: me) else { return }
            try tx.add(members, to: chat, showingHistory: true)
            for place in 0..<count {
                let content = MessageContent(cid: first + Int64(place), text: "post")
                let post = try tx.append(content, to: chat, from: me, on: DeviceID(1)).record.id
                found.withLock { $0.append(post) }
            }
        }
        let posts = found.withLock { $0 }
        try comment(on: posts, of: channel, count: 1)
        return (channel, posts)
    }

    /// Creates a post in `channel` and a comment on it.
    package func freshComment() throws -> (post: MessageID, comment: MessageID) {
        let post = try send(to: channel)
        return (post, try alice.comment("a", on: post, in: channel, cid: nextCID()).id)
    }

    /// Creates a post in `channel` with `count` comments by Bob.
    package func commentedPost(with count: Int) throws -> MessageID {
        let post = try send(to: channel)
        try comment(on: [post], of: channel, count: count)
        return post
    }

    private func comment(on posts: [MessageID], of channel: ChatID, count: Int) throws {
        let (author, first) = (bob.userID, nextCID())
        lastCID += Int64(posts.count * count)
        try run { tx in
            guard let chat = try tx.chat(channel, visibleTo: author) else { return }
            var cid = first
            for post in posts {
                let comments = try tx.comments(on: post, in: chat, visibleTo: author)
                guard let comments else { continue }
                for _ in 0..<count {
                    cid += 1
                    let content = MessageContent(cid: cid, text: "comment")
                    _ = try tx.append(content, to: comments, from: author, on: DeviceID(1))
                }
            }
        }
    }

    private func fillVeiled() throws {
        let group = try alice.createGroup("Veiled", with: [bob], cid: nextCID())
        veiled = (group, try send(to: group))
        let (me, everybody) = (alice.userID, users)
        try run { tx in
            guard let chat = try tx.chat(group, visibleTo: me) else { return }
            try tx.add(everybody, to: chat, showingHistory: false)
        }
    }

    private func fillPublicChats() throws {
        try makeGroups(2 * Limits.standard.maxSearchPage) { [users] tx, index in
            let owner = users[index % users.count]
            let chat = try tx.createGroup(
                .channel,
                title: Text("User club \(index)"),
                owner: owner,
                members: [owner]
            )
            var details = chat.details
            details.isPublic = true
            details.link = Text("user_club_\(index)")
            try tx.set(details, of: chat)
            return chat.key
        }
    }

    private func fillCircles() throws {
        let members = [alice.userID, bob.userID] + users.prefix(Limits.standard.fanOutMembers - 2)
        let keys = try makeGroups(size.circles) { [me = alice.userID] tx, index in
            let title = Text("Circle \(index)")
            let chat = try tx.createGroup(.group, title: title, owner: me, members: members)
            var content = MessageContent(cid: Int64(3_000_000 + index), text: "hello there")
            let first = try tx.append(content, to: chat, from: members[1], on: DeviceID(1))
            content.cid += 1_000_000
            content.replyTo = first.record.id
            _ = try tx.append(content, to: chat, from: members[1], on: DeviceID(1))
            return chat.key
        }
        circles = keys.reversed().map { ChatID($0.rawValue) }
    }

    private func fillStrangers() throws {
        strangers = try accounts(
            min(size.members, Limits.standard.maxIDsPerRequest),
            firstPhone: 79_100_000_000
        )
        // With this number of groups, a request reaches the limit of compared rows.
        let count = Limits.standard.maxComparedRows / Limits.standard.maxIDsPerRequest
        try makeGroups(count) { [strangers] tx, index in
            try tx.createGroup(
                title: Text("Elsewhere \(index)"),
                owner: strangers[0],
                members: strangers
            ).key
        }
        try makeGroups(count + 1) { [her = wanderer.userID] tx, index in
            try tx.createGroup(title: Text("Alone \(index)"), owner: her, members: [her]).key
        }
    }

    /// Creates groups. Several groups are created at the same time of the clock.
    @discardableResult
    package func makeGroups(
        _ count: Int,
        _ make: @escaping @Sendable (WriteTransaction, _ index: Int) throws -> ChatKey
    ) throws -> [ChatKey] {
        let made = Mutex<[ChatKey]>([])
        for first in stride(from: 0, to: count, by: 10) {
            try run { tx in
                for index in first..<min(first + 10, count) {
                    let key = try make(tx, index)
                    made.withLock { $0.append(key) }
                }
            }
            clock.advance(5)
        }
        return made.withLock { $0 }
    }
}

/// The wall clock of a world. It advances only when a test advances it.
private final class WorldClock: Sendable {
    private let time = Mutex<Int64>(1_790_000_000_000)

    var now: Int64 { time.withLock { $0 } }
    func advance(_ ms: Int64) { time.withLock { $0 += ms } }
}

/// A request of the largest permitted size, sent by the user for whom it is most expensive.
package struct WorstCase {
    package let client: WireClient
    package let opcode: Opcode
    package let payload: [UInt8]

    package init(_ request: some WireRequest, by client: WireClient) {
        self.init(type(of: request).opcode, request.encoded(), by: client)
    }

    package init(_ opcode: Opcode, _ payload: [UInt8], by client: WireClient) {
        self.client = client
        self.opcode = opcode
        self.payload = payload
    }

    var isCommand: Bool { opcode.info?.kind == .command }
}

extension Text {
    /// Returns a text of `units` UTF-16 units that has the maximum number of bytes.
    static func longest(units: Int) -> Text { Text(String(repeating: "語", count: units)) }
}
