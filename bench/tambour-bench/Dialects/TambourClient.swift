import Glibc
import TambourFraming
import TambourProtocol

/// Speaks Tambour's own protocol: SESSION_INIT, LOGIN, then MSG_SEND and pushes.
final class TambourClient: LoadClient {
    private enum Step { case hello, login, meet, prepare, chatting }

    /// The client decodes one in this number of deliveries and compares it with the sent text.
    private static let checkedEvery: UInt32 = 256

    /// The maximum number of other members in the request that creates a group; later requests add
    /// the rest.
    private static let createdWith = 10_000

    private let account: Account
    private let corpus: Corpus
    /// The chat that `send` sends to. A client that creates the chat sets this in `prepare`.
    private var chat: ChatID?
    /// The other members of the group that this client creates after its login.
    private let creates: [Account]
    /// The members that are not yet contacts of this client. The server does not let a client add a
    /// user whom the client knows only by id.
    private var toMeet: ArraySlice<Account>
    /// The members that are not in the group yet.
    private var toAdd: ArraySlice<UserID>
    /// Whether the created group is a channel.
    private let createsChannel: Bool

    private var step = Step.hello
    private var packets = TambourPackets()
    private var output: [UInt8] = []
    private let firstCid: Int64

    /// - Parameters:
    /// - chat: The chat to send to, unless the client first creates one.
    ///   - creates: The other members of a group to create first.
    ///   - asChannel: Whether that group is a channel.
    init(
        index: Int,
        sink: any LoadSink,
        account: Account,
        corpus: Corpus,
        chat: ChatID? = nil,
        creates: [Account] = [],
        asChannel: Bool = false
    ) {
        self.account = account
        self.corpus = corpus
        self.chat = chat
        self.creates = creates
        toMeet = creates[...]
        toAdd = creates.map(\.userID)[...]
        createsChannel = asChannel
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        firstCid = Int64(now.tv_sec) * 1_000_000
        super.init(index: index, sink: sink)
    }

    override func opened() {
        request(.sessionInit, account.hello)
    }

    override func send(_ text: Bytes100, number: UInt32) {
        let message = NewMessage(
            cid: firstCid + Int64(number),
            text: Text(unchecked: Bytes(text))
        )
        request(.msgSend, MsgSendRequest(chatID: chat, message: message))
    }

    override func keepAlive() {
        request(.ping, PingRequest())
    }

    private func meet() {
        let next = toMeet.prefix(TambourPackets.limits.maxIDsPerRequest)
        toMeet = toMeet.dropFirst(next.count)
        let book = next.map { (Text($0.phone), PhoneBookEntry()) }
        request(.sync, SyncRequest(contactList: NameMap(book)))
    }

    private func nextToAdd(_ count: Int) -> ArraySlice<UserID> {
        defer { toAdd = toAdd.dropFirst(count) }
        return toAdd.prefix(count)
    }

    private func request(_ opcode: Opcode, _ payload: some WirePayload) {
        output.removeAll(keepingCapacity: true)
        packets.append(opcode, payload, to: &output)
        write(output)
    }

    override func consume(_ bytes: UnsafeRawBufferPointer) throws -> Int {
        var offset = 0
        while let packet = try packets.next(in: bytes, from: &offset) {
            switch packet {
            case .pushed(let frame): try pushed(frame)
            case .answered(let frame): try answered(frame)
            }
        }
        return offset
    }

    private func answered(_ frame: Frame) throws {
        switch step {
        case .hello:
            step = .login
            request(.login, account.loginRequest())
        case .login:
            if creates.isEmpty {
                step = .chatting
                sink.ready(self)
            } else {
                step = .meet
                meet()
            }
        case .meet:
            if !toMeet.isEmpty {
                meet()
            } else {
                step = .prepare
                let control = NewAttach(
                    type: .control,
                    title: "bench",
                    event: "new",
                    chatType: createsChannel ? "CHANNEL" : "CHAT",
                    userIDs: Array(nextToAdd(Self.createdWith))
                )
                request(
                    .msgSend,
                    MsgSendRequest(message: NewMessage(cid: firstCid - 1, attaches: [control]))
                )
            }
        case .prepare:
            if chat == nil { chat = try frame.decode(MsgSendReply.self).chatID }
            if let chat, !toAdd.isEmpty {
                let ids = Array(nextToAdd(TambourPackets.limits.maxIDsPerRequest))
                request(
                    .chatMembersUpdate,
                    ChatMembersUpdateRequest(chatID: chat, userIDs: ids, operation: .add)
                )
                return
            }
            step = .chatting
            sink.ready(self)
        case .chatting:
            if frame.header.opcode == Opcode.msgSend.rawValue { sink.acknowledged(self) }
        }
    }

    private func pushed(_ frame: Frame) throws {
        guard frame.header.opcode == Opcode.notifMessage.rawValue else { return }
        if frame.header.flags == 0 {
            try arrived(frame.wirePayload)
        } else {
            try frame.payload(limits: TambourPackets.limits).withUnsafeBytes { try arrived($0) }
        }
    }

    /// Searches the payload for the text instead of decoding the payload. A driver that decodes
    /// everything would measure its own speed.
    private func arrived(_ payload: UnsafeRawBufferPointer) throws {
        guard let number = Self.number(in: payload) else { return }
        if number % Self.checkedEvery == 0 {
            let push = try NotifMessage.decode([UInt8](payload), limits: TambourPackets.limits)
            let expected = Text(unchecked: Bytes(corpus.message(number)))
            guard push.message.text == expected else {
                throw BenchError("message \(number) arrived changed")
            }
        }
        sink.delivered(number, to: self)
    }

    private static func number(in payload: UnsafeRawBufferPointer) -> UInt32? {
        guard let base = payload.baseAddress else { return nil }
        var from = 0
        while let hit = memchr(base + from, Int32(UInt8(ascii: "#")), payload.count - from) {
            let at = UnsafeRawPointer(hit) - base
            if let number = Corpus.number(in: UnsafeRawBufferPointer(rebasing: payload[at...])) {
                return number
            }
            from = at + 1
        }
        return nil
    }
}
