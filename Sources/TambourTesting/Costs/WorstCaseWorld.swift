import Synchronization
package import TambourProtocol
import TambourSQL
import TambourServer
package import TambourStore

/// A server whose store is as dear as users can make it for the requests of one of them.
///
/// Alice asks. She has two sessions, many dialogs, contacts, settings, folders and drafts, and owns a
/// crowd with a long history. Bob is a member of it and online.
package final class WorstCaseWorld {
    /// How large the store is.
    package struct Size: Sendable {
        package var members: Int
        package var messages: Int

        package static let small = Size(members: 60, messages: 1_200)
        package static let large = Size(members: 2_000, messages: 60_000)
    }

    package let server: TestServer
    package let size: Size
    package let alice: WireClient
    /// Alice's other session.
    package let tablet: WireClient
    package let bob: WireClient
    package private(set) var users: [UserID] = []
    /// A group of all users, owned by Alice; above the fan-out threshold.
    package private(set) var crowd = ChatID(0)
    /// The ids of its messages, oldest first.
    package private(set) var messages: [MessageID] = []
    /// A group of as many as get change rows of their own.
    package private(set) var circle = ChatID(0)
    package private(set) var dialogs: [ChatID] = []
    /// A poll of the crowd in which everybody voted, and its id.
    package private(set) var poll: (message: MessageID, id: Int64) = (MessageID(0), 0)
    /// The words that each message of the crowd has.
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

    package var newest: [MessageID] { Array(messages.suffix(1_000)) }

    /// Runs something on the engine, and waits for it.
    package func run(_ body: @escaping @Sendable (WriteTransaction) throws -> Void) throws {
        try LiveAdminBackend(server.server).write(body)
    }

    package func advance(ms: Int64) { clock.advance(ms) }

    /// A fresh message of Alice's in a chat.
    package func send(to chat: ChatID, _ text: Text = "a") throws -> MessageID {
        try alice.call(
            MsgSendRequest(chatID: chat, message: NewMessage(cid: nextCID(), text: text))
        ).message.id
    }

    // MARK: - Measuring

    /// What a request cost.
    package struct Measured: Sendable {
        package var store = StoreCost()
        /// By how much the file has grown.
        package var bytesStored = 0
        /// Bytes of pushes that one session of each got.
        package var toldOwn = 0
        package var toldMember = 0
        /// The refusal, if the request was refused.
        package var refusal: String?
    }

    /// Plays a request and counts what comes of it, but not what the engine does in its spare time.
    package func measure(_ play: WorstCase) throws -> Measured {
        try settle()
        for client in [alice, tablet, bob] { _ = try client.takePushes() }
        let file = try usedBytes()
        let before = [tablet, bob].map(\.receivedBytes)
        _ = meter.take()
        let packet = try play.client.reply(
            to: play.client.send(play.opcode, payload: play.payload)
        )
        // The fence itself is a transaction without rows.
        try run { _ in }
        var measured = Measured()
        measured.store = meter.take()
        measured.bytesStored = try usedBytes() - file
        for client in [tablet, bob] { _ = try? client.takePushes() }
        // The answer to the PING of the fence.
        measured.toldOwn = tablet.receivedBytes - before[0] - Self.pong
        measured.toldMember = bob.receivedBytes - before[1] - Self.pong
        if packet.header.command == PacketCommand.error.rawValue {
            let error = try ErrorReply.decode(packet.payload, limits: .standard)
            measured.refusal = "\(error.error): \(error.message)"
        }
        return measured
    }

    private static let pong = PacketHeader.size + 1

    /// Lets the engine do what it does in its spare time.
    private func settle() throws {
        try run { tx in
            while tx.hasWordsToIndex { try tx.indexWords() }
        }
    }

    private func usedBytes() throws -> Int {
        let file = try SQLiteConnection(
            path: "\(server.dataDirectory)/tambour.db",
            mode: .readOnly
        )
        let statement = try file.prepare(
            """
            SELECT (p.page_count - f.freelist_count) * s.page_size
            FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s
            """
        )
        defer { statement.reset() }
        return try statement.step() ? Int(statement.int(0)) : 0
    }

    // MARK: - Filling

    private func fill() throws {
        var ids: [UserID] = []
        _ = try AdminClient(dataDirectory: server.dataDirectory).run(
            .createUsers(count: size.members, firstPhone: 79_000_000_000)
        ) { line in
            ids.append(UserID(Int64(String(line.split(separator: " ")[1])) ?? 0))
        }
        users = ids
        let everybody = ids
        let (me, him) = (alice.userID, bob.userID)
        crowd = try alice.createGroup("Crowd", with: [bob], cid: nextCID())
        circle = try alice.createGroup("Circle", with: [bob], cid: nextCID())
        let (crowd, circle) = (crowd, circle)
        try run { tx in
            guard let many = try tx.chat(crowd, visibleTo: me),
                let few = try tx.chat(circle, visibleTo: me)
            else { return }
            try tx.add(everybody, to: many, showingHistory: true)
            try tx.add(Array(everybody.prefix(28)), to: few, showingHistory: true)
        }
        try fillCrowd(by: [me, him])
        for user in users.prefix(500) {
            _ = try alice.call(ContactUpdateRequest(contactID: user, action: .add))
        }
        let own = users.prefix(500)
        try run { tx in
            for user in own {
                let chat = try tx.createPairChat(me, user, by: user)
                let draft = MessageDraft(cid: user.rawValue, text: "hello there")
                _ = try tx.append(draft, to: chat, from: user, on: DeviceID(1))
            }
        }
        dialogs = own.map { .dialog(me, $0) }
        try fillPoll()
    }

    private func fillCrowd(by senders: [UserID]) throws {
        let (crowd, me) = (crowd, alice.userID)
        let found = Mutex<[MessageID]>([])
        for chunk in stride(from: 0, to: size.messages, by: 1_000) {
            let count = min(1_000, size.messages - chunk)
            try run { [words = Self.words] tx in
                guard let chat = try tx.chat(crowd, visibleTo: me) else { return }
                var ids: [MessageID] = []
                for index in 0..<count {
                    // Half of them have an attachment, none of a kind that a list of media shows.
                    let event = index % 2 == 0 ? Packed([Attach(type: .control)]) : nil
                    let draft = MessageDraft(
                        cid: Int64(1_000_000 + chunk + index),
                        text: Text("\(words) \(chunk + index)"),
                        attaches: event
                    )
                    let sender = senders[index % senders.count]
                    ids.append(
                        try tx.append(draft, to: chat, from: sender, on: DeviceID(1)).record.id
                    )
                }
                found.withLock { $0 += ids }
            }
            clock.advance(1_001)
        }
        messages = found.withLock { $0 }
    }

    private func fillPoll() throws {
        let answers = (1...12).map { NewPollAnswer(text: Text("Answer \($0)")) }
        let attach = NewAttach(type: .poll, title: "Who?", answers: answers, settings: 2)
        let message = try alice.call(
            MsgSendRequest(
                chatID: crowd,
                message: NewMessage(cid: nextCID(), attaches: [attach])
            )
        ).message
        guard let id = message.attaches.stored?.first?.pollID else { return }
        poll = (message.id, id)
        let (crowd, me, voters) = (crowd, alice.userID, users)
        try run { tx in
            guard let chat = try tx.chat(crowd, visibleTo: me),
                var record = try tx.record(message.id, in: chat)
            else { return }
            for voter in voters {
                record = try tx.setChoices([1], insteadOf: [], of: voter, in: record, of: chat)
            }
        }
    }
}

/// The wall clock of a world: it stands unless it is told to move.
private final class WorldClock: Sendable {
    private let time = Mutex<Int64>(1_790_000_000_000)

    var now: Int64 { time.withLock { $0 } }
    func advance(_ ms: Int64) { time.withLock { $0 += ms } }
}

/// A request at its largest permitted size, by somebody for whom it is dearest.
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
}
