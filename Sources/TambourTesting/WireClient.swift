import Glibc
package import TambourFraming
package import TambourNet
package import TambourProtocol

/// A client that does exactly what a test requests. Its functions block, and only one thread at a
/// time may use it.
///
/// No function waits longer than `deadline`. When the deadline expires, the function throws an
/// error.
package final class WireClient {
    package enum Failure: Error, CustomStringConvertible {
        case refused(RequestError)
        case timedOut(String)
        case closed
        case unexpected(String)

        package var description: String {
            switch self {
            case .refused(let error): "refused: \(error)"
            case .timedOut(let what): "timed out waiting for \(what)"
            case .closed: "the server closed the connection"
            case .unexpected(let what): what
            }
        }
    }

    /// A push as the client received it.
    package struct Push: Sendable {
        package let opcode: Opcode
        package let sequence: UInt16
        package let payload: [UInt8]

        package func decode<Payload: WirePayload>(as type: Payload.Type) throws -> Payload {
            try Payload.decode(payload, limits: .standard)
        }
    }

    private let socket: Int32
    /// The layer between the socket and the packets; nil for plain TCP.
    private let layer: (any ConnectionLayer)?
    /// Whether the server has ended its stream in the layer, for example by TLS close_notify.
    package private(set) var hasLayerEnded = false
    private let decoder: FrameDecoder
    private var received: [UInt8] = []
    private var sequence: UInt16 = 0
    /// The received replies that the test has not taken, by sequence number.
    private var replies: [UInt16: Packet] = [:]
    /// The received pushes that the test has not taken, the oldest first.
    package private(set) var pushes: [Push] = []
    /// The number of complete packets received. Replies and pushes both count.
    package private(set) var receivedPackets = 0
    package private(set) var receivedBytes = 0
    package var deadline: Duration = .seconds(120)
    /// The user who is logged in. The function that logs in sets this property.
    package var userID = UserID(0)
    package var token = ""

    /// Connects to `HOST:PORT`, an IPv4 address.
    ///
    /// - Parameters:
    ///   - source: the local address of the connection; nil for any.
    ///   - layer: the client's side of a layer such as TLS; nil for plain TCP.
    package init(
        address: String,
        source: String? = nil,
        layer: (any ConnectionLayer)? = nil
    ) throws {
        self.layer = layer
        let parts = address.split(separator: ":")
        guard parts.count == 2, let port = UInt16(parts[1]) else {
            throw Failure.unexpected("no address: \(address)")
        }
        decoder = {
            var decoder = FrameDecoder(limits: .standard)
            decoder.authenticated = true
            return decoder
        }()
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        target.sin_port = port.bigEndian
        inet_pton(AF_INET, String(parts[0]), &target.sin_addr)
        if let source { try Self.bind(socket, to: source) }
        let connected = withUnsafePointer(to: &target) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            // Do not close the socket here, because `deinit` will close it. After a first close,
            // another thread could open a socket with the same number, and a second close would
            // close this socket.
            throw Failure.closed
        }
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(4))
        if let layer {
            var opening: [UInt8] = []
            layer.open(into: &opening)
            try sendAll(opening)
        }
    }

    private static func bind(_ socket: Int32, to source: String) throws {
        var local = sockaddr_in()
        local.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, source, &local.sin_addr)
        let bound = withUnsafePointer(to: &local) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0 else { throw Failure.unexpected("cannot connect from \(source)") }
    }

    deinit {
        close()
    }

    private var isClosed = false
    /// Whether the server closed the stream without a reset and after a complete packet.
    package private(set) var hasEndedCleanly = false

    /// Closes the connection without notifying the server.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        Glibc.close(socket)
    }

    /// Closes the sending side of the connection. The client can still read.
    package func finishSending() {
        shutdown(socket, Int32(SHUT_WR))
    }

    // MARK: - Sending

    /// Sends bytes through the layer. Without a layer, sends them unchanged.
    package func send(raw bytes: [UInt8]) throws {
        guard let layer else { return try sendAll(bytes) }
        var enclosed: [UInt8] = []
        bytes.withUnsafeBytes { layer.enclose($0, into: &enclosed) }
        try sendAll(enclosed)
    }

    private func sendAll(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Failure.closed }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends a request without waiting for the reply.
    ///
    /// - Returns: the request's sequence number, for `reply(to:)`.
    @discardableResult
    package func send(_ opcode: Opcode, payload: [UInt8], version: UInt8 = 10) throws -> UInt16 {
        let number = sequence
        sequence &+= 1
        var packet: [UInt8] = []
        encodePacket(
            version: version,
            command: .request,
            sequence: number,
            opcode: opcode.rawValue,
            payload: payload,
            into: &packet
        )
        try send(raw: packet)
        return number
    }

    @discardableResult
    package func send(_ request: some WireRequest) throws -> UInt16 {
        try send(type(of: request).opcode, payload: request.encoded())
    }

    // MARK: - Calling

    /// Sends a request and waits for its reply.
    ///
    /// - Throws: `Failure.refused` with the server's error.
    @discardableResult
    package func call<Request: WireRequest>(_ request: Request) throws -> Request.Reply {
        let number = try send(request)
        return try reply(to: number, as: Request.Reply.self)
    }

    package func reply<Reply: WirePayload>(to number: UInt16, as type: Reply.Type) throws -> Reply {
        let packet = try reply(to: number)
        guard packet.header.command == PacketCommand.ok.rawValue else {
            let error = try ErrorReply.decode(packet.payload, limits: .standard)
            let code = RequestError.Code(rawValue: String(describing: error.error))
            guard let code else { throw Failure.unexpected("unknown error code \(error.error)") }
            throw Failure.refused(
                RequestError(code: code, message: String(describing: error.message))
            )
        }
        return try Reply.decode(packet.payload, limits: .standard)
    }

    /// Waits for the reply with this sequence number. The reply may be an error.
    package func reply(to number: UInt16) throws -> Packet {
        while true {
            if let packet = replies.removeValue(forKey: number) { return packet }
            try receive("the reply to \(number)")
        }
    }

    /// Waits for any reply that the test has not taken, and takes it. The reply may be an error.
    package func nextReply() throws -> Packet {
        while true {
            if let packet = replies.popFirst()?.value { return packet }
            try receive("any reply")
        }
    }

    /// Returns the error with which the server rejects a request. If the error is about the
    /// payload, it must name a field of the request.
    package func refusal(of request: some WireRequest) throws -> RequestError {
        do {
            _ = try call(request)
        } catch Failure.refused(let error) {
            if error.code == .protoPayload, !Self.namesField(error, of: request) {
                throw Failure.unexpected("no field of \(type(of: request)): \(error)")
            }
            return error
        }
        throw Failure.unexpected("\(type(of: request)) was not refused")
    }

    /// Returns whether the error's message starts with the path of a field of the request, or with
    /// `/:`, which means the whole request.
    private static func namesField(_ error: RequestError, of request: some WireRequest) -> Bool {
        guard error.message.hasPrefix("/") else { return false }
        let name = error.message.dropFirst().prefix { $0 != "/" && $0 != ":" }.lowercased()
        return name.isEmpty
            || Mirror(reflecting: request).children.contains { $0.label?.lowercased() == name }
    }

    // MARK: - Pushes

    /// Takes the next push with this opcode. Waits for it if necessary. Other pushes stay
    /// available.
    package func next<Payload: WirePayload>(
        _ opcode: Opcode,
        as type: Payload.Type
    ) throws -> Payload {
        while true {
            if let index = pushes.firstIndex(where: { $0.opcode == opcode }) {
                return try pushes.remove(at: index).decode(as: type)
            }
            try receive("a push \(opcode)")
        }
    }

    /// Takes all pushes that the server sent before this call. To receive them without a sleep, the
    /// function sends a PING. The earlier pushes arrive before the reply to the PING.
    package func takePushes() throws -> [Push] {
        _ = try call(PingRequest())
        defer { pushes = [] }
        return pushes
    }

    /// Takes the pushes that have been received so far, without waiting for more.
    package func takePushesAtHand() -> [Push] {
        defer { pushes = [] }
        return pushes
    }

    /// Reads until the server closes the connection.
    package func waitForClose() throws {
        do {
            while true { try receive("the end of the connection") }
        } catch Failure.closed {}
    }

    // MARK: - Receiving

    /// Waits for the next bytes and passes them to the layer.
    package func waitForLayer() throws { try fill("the layer") }

    private func receive(_ what: String) throws {
        try fill(what)
        var offset = 0
        try received.withUnsafeBytes { bytes in
            while let frame = try decoder.next(in: bytes, from: &offset) {
                let packet = try frame.packet(limits: .standard)
                receivedPackets += 1
                if packet.header.command == PacketCommand.request.rawValue {
                    pushes.append(
                        Push(
                            opcode: Opcode(rawValue: packet.header.opcode),
                            sequence: packet.header.sequence,
                            payload: packet.payload
                        )
                    )
                } else {
                    replies[packet.header.sequence] = packet
                }
            }
        }
        received.removeFirst(offset)
    }

    private func fill(_ what: String) throws {
        var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        let milliseconds = Int32(deadline.components.seconds * 1000)
        var ready = poll(&descriptor, 1, milliseconds)
        while ready < 0, errno == EINTR { ready = poll(&descriptor, 1, milliseconds) }
        guard ready > 0 else { throw Failure.timedOut(what) }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(socket, &chunk, chunk.count, 0)
        if count == 0 { hasEndedCleanly = received.isEmpty }
        guard count > 0 else { throw Failure.closed }
        receivedBytes += count
        guard let layer else {
            received += chunk[..<count]
            return
        }
        var answer: [UInt8] = []
        do {
            hasLayerEnded = try chunk[..<count].withUnsafeBytes { bytes throws(LayerError) in
                try layer.received(bytes, into: &received, answering: &answer)
            }
        } catch let error as LayerError {
            throw Failure.unexpected(error.reason)
        }
        try sendAll(answer)
    }
}
