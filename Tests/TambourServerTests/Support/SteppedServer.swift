import Glibc
import Logging
import Synchronization
import TambourFraming
import TambourNet
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourGateway
@testable import TambourMessenger
@testable import TambourServer

/// A whole server without listeners. At each step of the test, the server does one piece of work.
/// So a test can count the pieces before an event, and need not measure time.
final class SteppedServer {
    let scheduler = StepScheduler()
    let server: Server
    let lines = Lines()
    private let directory: String
    private var tokens: [String]

    /// The server's log.
    final class Lines: Sendable {
        private let lines = Mutex<[String]>([])

        var all: [String] { lines.withLock { $0 } }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private struct Handler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.notice

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: Logging.LogEvent) {
            lines.add("\(event.message) \(event.metadata ?? [:])")
        }
    }

    /// - Parameter users: The number of accounts to create.
    init(limits overrides: [String: Int] = [:], users: Int = 0) throws {
        directory = try TestServer.temporaryDirectory()
        tokens = try Self.makeUsers(users, in: directory)
        let scheduler = scheduler
        let lines = lines
        server = try Server(
            ServerConfiguration(
                listen: [],
                dataDirectory: directory,
                loginCodes: LoginCodeSource { _, _ in },
                lanes: 1,
                limits: try Limits(overrides: Unhurried.limits.merging(overrides) { $1 }),
                environment: Environment(
                    wallMs: { 1_800_000_000_000 + Int64(scheduler.now / .milliseconds(1)) },
                    randomBytes: Environment.live.randomBytes,
                    scheduler: scheduler
                ),
                logger: Logger(label: "test") { _ in Handler(lines: lines) },
                poisonsBuffers: true
            )
        )
        server.startWithoutDoors()
        scheduler.runAll()
    }

    /// Creates accounts before the server starts. Then releases the lock of the data directory.
    private static func makeUsers(_ count: Int, in directory: String) throws -> [String] {
        var tokens: [String] = []
        let admin = AdminService(try OfflineAdminBackend(dataDirectory: directory))
        guard count > 0 else { return [] }
        try admin.run(.createUsers(count: count, firstPhone: 79_990_000_001)) { line in
            tokens.append(String(line.split(separator: " ")[2]))
        }
        return tokens.reversed()
    }

    /// Stops the server and removes its directory.
    func remove() {
        for lane in server.gateway.lanes { lane.stop() }
        scheduler.runAll()
        server.messenger.router.disconnect()
        server.messenger.router.connect(timer: nil)
        TestServer.removeDirectory(directory)
    }

    /// Makes the lanes check their sockets for new data.
    func poke() {
        for lane in server.gateway.lanes {
            scheduler.run(on: lane.queue, after: .zero) { lane.serve() }
        }
    }

    /// Runs everything until no work is left.
    func settle() {
        for _ in 0..<3 {
            poke()
            scheduler.runAll()
        }
    }

    func connect(from address: String = "10.0.0.1", saysHello: Bool = true) throws -> SteppedClient
    {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        let host = address.contains(":") ? "[\(address)]" : address
        server.accept(ends[1], "\(host):4321")
        scheduler.runAll()
        let client = SteppedClient(socket: ends[0], server: self)
        if saysHello { _ = try client.call(SessionInitRequest(deviceID: "test")) }
        return client
    }

    /// Connects and logs in as the next user.
    func logIn(from address: String = "10.0.0.1") throws -> SteppedClient {
        let next = tokens.popLast()
        let token = try #require(next)
        return try logIn(token: token, from: address)
    }

    func logIn(token: String, from address: String = "10.0.0.1") throws -> SteppedClient {
        let client = try connect(from: address)
        client.token = token
        let reply = try client.call(
            LoginRequest(token: token, interactive: true, chatsSync: -1, contactsSync: -1)
        )
        client.userID = reply.profile.contact.id
        return client
    }
}

/// A client of a `SteppedServer`.
final class SteppedClient {
    private let socket: Int32
    private unowned let server: SteppedServer
    private var bytes: [UInt8] = []
    private var decoder = FrameDecoder(limits: .standard)
    private var sequence: UInt16 = 0
    private var packets: [Packet] = []
    /// Whether the server has closed the connection.
    private(set) var isClosed = false
    var token = ""
    var userID = UserID(0)

    init(socket: Int32, server: SteppedServer) {
        self.socket = socket
        self.server = server
        decoder.authenticated = true
    }

    deinit { close(socket) }

    static func packet(_ request: some WireRequest, _ sequence: UInt16 = 0) -> [UInt8] {
        var packet: [UInt8] = []
        encodePacket(
            command: .request,
            sequence: sequence,
            opcode: type(of: request).opcode.rawValue,
            payload: request.encoded(),
            into: &packet
        )
        return packet
    }

    func send(raw bytes: [UInt8]) throws {
        let count = bytes.withUnsafeBytes {
            Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        try #require(count == bytes.count)
    }

    @discardableResult
    func send(_ request: some WireRequest) throws -> UInt16 {
        sequence += 1
        try send(raw: Self.packet(request, sequence))
        return sequence
    }

    /// Returns whether the reply has arrived. Does not make the server work.
    func hasReply(to number: UInt16) -> Bool {
        look()
        return packets.contains { Self.isReply($0, to: number) }
    }

    @discardableResult
    func call<Request: WireRequest>(_ request: Request) throws -> Request.Reply {
        let number = try send(request)
        server.settle()
        look()
        let reply = try #require(packets.first { Self.isReply($0, to: number) })
        try #require(reply.header.command == PacketCommand.ok.rawValue, "\(reply.payload)")
        return try Request.Reply.decode(reply.payload, limits: .standard)
    }

    private static func isReply(_ packet: Packet, to number: UInt16) -> Bool {
        packet.header.sequence == number
            && packet.header.command != PacketCommand.request.rawValue
    }

    /// Reads all bytes that have arrived.
    func look() {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(socket, &chunk, chunk.count, Int32(MSG_DONTWAIT))
            if count < 0 { break }
            if count == 0 {
                isClosed = true
                break
            }
            bytes += chunk[..<count]
        }
        var offset = 0
        bytes.withUnsafeBytes { bytes in
            while let frame = try? decoder.next(in: bytes, from: &offset) {
                guard let packet = try? frame.packet(limits: .standard) else { return }
                packets.append(packet)
            }
        }
        bytes.removeFirst(offset)
    }
}
