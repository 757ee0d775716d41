/// Speaks XMPP to a server with message archives: PLAIN login, then chat or room messages.
///
/// Core XMPP does not acknowledge messages to their sender. The client therefore counts a message
/// as acknowledged when it is written, and as complete when it is delivered. `Contestant.unfair`
/// states this difference.
final class XMPPClient: LoadClient {
    enum Target {
        case nobody
        /// The client's messages go to another user.
        case user(String)
        /// The client enters the room; `writes` is true if it also sends to the room.
        case room(String, writes: Bool)
    }

    private static let checkedEvery: UInt32 = 256

    private let target: Target
    private let corpus: Corpus
    private var cutter = StanzaCutter()
    private var login: XMPPLogin
    private var isReady = false
    private let envelope: (before: [UInt8], after: [UInt8])
    private var output: [UInt8] = []

    init(index: Int, sink: any LoadSink, user: String, target: Target, corpus: Corpus) {
        self.target = target
        self.corpus = corpus
        login = XMPPLogin(user: user)
        envelope =
            switch target {
            case .nobody: ([], [])
            case .user(let user): XMPP.envelope(to: XMPP.address(user), type: "chat")
            case .room(let room, _): XMPP.envelope(to: room, type: "groupchat")
            }
        super.init(index: index, sink: sink)
    }

    override func opened() { write(XMPP.header) }

    override func send(_ text: Bytes100, number: UInt32) {
        output.removeAll(keepingCapacity: true)
        output.append(contentsOf: envelope.before)
        output.append(contentsOf: XMPP.escape(text))
        output.append(contentsOf: envelope.after)
        write(output)
        sink.acknowledged(self)
    }

    override func consume(_ bytes: UnsafeRawBufferPointer) throws -> Int {
        var offset = 0
        while let stanza = cutter.next(in: bytes, from: &offset) {
            if isReady { try received(stanza) } else { try prepare(stanza) }
        }
        return offset
    }

    private func prepare(_ stanza: Stanza) throws {
        guard login.isDone else {
            let answer = try login.received(stanza)
            if !answer.isEmpty { write(answer) }
            guard login.isDone else { return }
            if case .room(let room, _) = target {
                write(XMPP.join(room, as: login.user))
            } else {
                // The server delivers messages only to present users. The reply to the ping shows
                // that the server has processed the presence.
                write(XMPP.present + XMPP.ping("ready"))
            }
            return
        }
        let isIn: Bool
        if case .room = target {
            guard stanza.begins(with: "<presence") else { return }
            if stanza.attribute("type") == "error" { throw BenchError(stanza.text) }
            // Code 110 marks the client's own presence. It is the last stanza that a client
            // receives when it enters a room.
            isIn = stanza.contains("'110'") || stanza.contains("\"110\"")
        } else {
            isIn = stanza.begins(with: "<iq") && stanza.attribute("id") == "ready"
        }
        if isIn {
            isReady = true
            sink.ready(self)
        }
    }

    private func received(_ stanza: Stanza) throws {
        if stanza.begins(with: "<stream:error") { throw BenchError(stanza.text) }
        guard stanza.begins(with: "<message"), let body = stanza.body,
            let number = Corpus.number(in: body)
        else { return }
        // A room sends each message back to its author.
        if case .room(_, writes: true) = target { return }
        if number % Self.checkedEvery == 0 {
            guard XMPP.unescape(body) == XMPP.arriving(corpus.message(number)) else {
                throw BenchError("message \(number) arrived changed")
            }
        }
        sink.delivered(number, to: self)
    }
}
