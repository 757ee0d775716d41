import Foundation
import TambourFraming
import TambourMessenger
import TambourProtocol
import TambourServer
import TambourTesting
import Testing

/// A server in a separate process, and peers that send invalid bytes. Whatever they send, the
/// server stays up, stays small, and keeps serving other clients.
@Suite("Hostile bytes")
struct HostileBytesTests {
    @Test("mutations of every example's packet are answered or end their own connection")
    func mutations() async throws {
        var run = RandomRun("hostile mutations", count: 1_500, soak: 10_000)
        let examples = try ExamplePackets.requests()
        try await Victim.run { victim in
            var session: WireClient?
            for round in 0..<run.count {
                let example = examples[run.random.below(examples.count)]
                if run.random.below(4) == 0 {
                    // Mutate the whole packet, header included, so the stream may become
                    // unreadable.
                    let bytes = run.random.mutate(example)
                    let client = try victim.stranger()
                    try? client.send(raw: bytes)
                    client.finishSending()
                    try client.waitForClose()
                } else {
                    // Mutate only the payload, so the server must send exactly one known reply.
                    let client = try session ?? victim.loggedIn()
                    session = client
                    let opcode = Opcode(rawValue: UInt16(example[4]) << 8 | UInt16(example[5]))
                    let payload = run.random.mutate(Array(example[PacketHeader.size...]))
                    let reply = try client.reply(to: client.send(opcode, payload: payload))
                    #expect(reply.header.opcode == opcode.rawValue)
                    if try Victim.check(reply, to: opcode) { session = nil }
                }
                if round % 50 == 0 { try victim.witness() }
            }
        }
    }

    @Test("lies about length cost a connection and nothing else")
    func lengthLies() async throws {
        try await Victim.run { victim in
            for length in [8_193, 1 << 20, (1 << 24) - 1] {
                let stranger = try victim.stranger()
                try stranger.send(raw: header(length: length) + [0x80])
                #expect(try refusal(of: stranger) == "proto.frame")
                try stranger.waitForClose()
                try victim.witness()
            }
            let member = try victim.loggedIn()
            try member.send(raw: header(length: (1 << 20) + 1) + [0x80])
            #expect(try refusal(of: member) == "proto.frame")
            // Announce the largest frame a member may send, then send nothing. The server must not
            // reserve a megabyte.
            var patient: [WireClient] = []
            for _ in 0..<200 {
                let client = try victim.loggedIn()
                try client.send(raw: header(length: 1 << 20) + [0xDF])
                patient.append(client)
            }
            try victim.witness()
            // Containers and strings that announce more content than the payload has.
            let lies: [[UInt8]] = [
                [0xDF, 0xFF, 0xFF, 0xFF, 0xFF], [0xDD, 0xFF, 0xFF, 0xFF, 0xFF],
                [0x81, 0xA1, 0x61, 0xDD, 0xFF, 0xFF, 0xFF, 0xFF],
                [0x81, 0xA1, 0x61, 0xC6, 0xFF, 0xFF, 0xFF, 0xFF],
                [0x81, 0xDB, 0xFF, 0xFF, 0xFF, 0xFF],
                [0x81, 0xA1, 0x61, 0xC9, 0xFF, 0xFF, 0xFF, 0xFF],
            ]
            let client = try victim.loggedIn()
            for payload in lies {
                for opcode in [Opcode.msgSend, .log, .chatInfo, .login, .sessionInit, .ping] {
                    let reply = try client.reply(to: client.send(opcode, payload: payload))
                    let error = try ErrorReply.decode(reply.payload, limits: .standard)
                    #expect(error.error == "proto.payload")
                }
            }
        }
    }

    @Test("what inflates without end is refused, what inflates to the limit is forgotten")
    func inflation() async throws {
        try await Victim.run { victim in
            // A run of one byte: each byte of the block inflates to 255 bytes.
            func bomb(_ bytes: Int) -> [UInt8] {
                let count = bytes / 255
                return [0x1F, 0x00, 0x01, 0x00] + Array(repeating: 0xFF, count: count) + [0x00]
            }
            for _ in 0..<50 {
                let stranger = try victim.stranger()
                let payload = bomb(2_000_000)
                try stranger.send(raw: header(length: payload.count, flags: 254) + payload)
                #expect(try refusal(of: stranger) == "proto.payload")
            }
            let member = try victim.loggedIn()
            for size in [2_000_000, 20_000_000, 200_000_000] {
                let payload = bomb(size)
                try member.send(raw: header(length: payload.count, flags: 2) + payload)
                #expect(try refusal(of: member) == "proto.payload")
                try victim.witness()
            }
            // The largest legal payloads: many at once, in requests whose content the server keeps.
            let mode = Bytes(Array(repeating: 0, count: 1_000_000))
            let large = AuthRequestRequest(phone: "+79990000000", mode: AnyValue(mode)).encoded()
            let block = try #require(large.withUnsafeBytes { LZ4.compress($0) })
            #expect(block.count < 8_192)
            let packet = header(length: block.count, flags: 255 - 1, opcode: .authRequest) + block
            for _ in 0..<8 {
                let strangers = try (0..<8).map { _ in try victim.stranger() }
                for stranger in strangers {
                    for _ in 0..<32 { try stranger.send(raw: packet) }
                }
                for stranger in strangers { try stranger.call(PingRequest()) }
                try victim.witness()
            }
        }
    }

    @Test("nesting without end is refused where it is skipped and where it is kept")
    func depth() async throws {
        try await Victim.run { victim in
            let client = try victim.loggedIn()
            let deep = Array(repeating: UInt8(0x91), count: 900_000)
            let maps = Array(repeating: [UInt8](arrayLiteral: 0x81, 0xA0), count: 400_000).flatMap {
                $0
            }
            for nest in [deep, maps] {
                for key in ["unknown", "mode", "exp", "message", "events", "text"] {
                    var payload: [UInt8] = [0x81, 0xA0 | UInt8(key.utf8.count)]
                    payload += Array(key.utf8) + nest
                    for opcode in [Opcode.msgSend, .authRequest, .login, .log] {
                        let reply = try client.reply(to: client.send(opcode, payload: payload))
                        let error = try ErrorReply.decode(reply.payload, limits: .standard)
                        #expect(error.error == "proto.payload")
                    }
                }
                try victim.witness()
            }
        }
    }

    @Test(
        "every example's packet is served when it comes byte by byte, and all of them in one write"
    )
    func dribble() async throws {
        let examples = try ExamplePackets.requests().filter { $0.count < 2_000 }
        try await Victim.run { victim in
            let ping: [UInt8] = header(length: 1, opcode: .ping, sequence: 60_000) + [0x80]
            let client = try victim.stranger()
            for example in examples.prefix(40) {
                for byte in example { try client.send(raw: [byte]) }
            }
            try client.send(raw: examples.flatMap { $0 } + ping)
            _ = try client.reply(to: 60_000)
            try victim.witness()
        }
    }

    @Test("garbage and unknown versions are answered once at most, then the connection ends")
    func garbage() async throws {
        var run = RandomRun("hostile garbage", count: 100, soak: 1_000)
        try await Victim.run { victim in
            for _ in 0..<run.count {
                let client = try victim.stranger()
                try? client.send(raw: run.random.bytes(1 + run.random.below(65_536)))
                client.finishSending()
                try client.waitForClose()
            }
            for version in UInt8(0)...255 where version != 10 && version != 11 {
                let client = try victim.stranger()
                try client.send(raw: [version] + header(length: 0).dropFirst())
                #expect(try refusal(of: client) == "proto.ver")
                try client.waitForClose()
            }
            for command in UInt8(4)...255 {
                let client = try victim.stranger()
                try client.send(raw: [10, command] + header(length: 0).dropFirst(2))
                #expect(try refusal(of: client) == "proto.frame")
                try client.waitForClose()
            }
        }
    }

    @Test("a member that does all the harm it may is still only one member")
    func floods() async throws {
        try await Victim.run { victim in
            // Switch between online and offline many times.
            let client = try victim.loggedIn()
            for round in 0..<20_000 {
                try client.send(PingRequest(interactive: round % 2 == 0))
                if round % 500 == 0 { try client.call(PingRequest()) }
            }
            try client.call(PingRequest())
            try victim.witness()
            // Open connections that send nothing.
            let silent = try (0..<300).map { _ in try WireClient(address: victim.address) }
            try victim.witness()
            for client in silent { client.close() }
        }
    }

    @Test("pages that nobody reads are not made without end")
    func unreadPages() async throws {
        try await Victim.run { victim in
            let writer = try victim.loggedIn()
            let saved = ChatID.dialog(writer.userID, writer.userID)
            for cid in Int64(1)...200 {
                try writer.send(String(repeating: "\(cid) ", count: 900), to: saved, cid: cid)
            }
            let before = victim.peakResidentBytes
            // Keep the maximum number of requests in flight, each for the largest page.
            let deaf = try (0..<4).map { _ in try victim.again(writer) }
            for client in deaf {
                for _ in 0..<250 {
                    try client.send(ChatHistoryRequest(chatID: saved, backward: 200))
                }
            }
            // The server closes each connection that reads nothing for a while.
            try victim.waitForSlowReaders(deaf.count)
            let growth = victim.peakResidentBytes - before
            if !Victim.runsUnderSanitizer { #expect(growth < 64 << 20, "\(growth >> 20) MiB") }
            for client in deaf { client.close() }
            try victim.witness()
        }
    }

    private func header(
        length: Int,
        flags: UInt8 = 0,
        opcode: Opcode = .sessionInit,
        sequence: UInt16 = 7
    ) -> [UInt8] {
        [
            10, 0, UInt8(sequence >> 8), UInt8(sequence & 0xFF), UInt8(opcode.rawValue >> 8),
            UInt8(opcode.rawValue & 0xFF), flags, UInt8(length >> 16 & 0xFF),
            UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF),
        ]
    }

    private func refusal(of client: WireClient) throws -> Text {
        let packet = try client.reply(to: 7)
        #expect(packet.header.command == PacketCommand.error.rawValue)
        return try ErrorReply.decode(packet.payload, limits: .standard).error
    }
}

/// A real server, two clients that keep writing to each other, and a bound on the server's memory.
private final class Victim {
    let address: String
    private let server: TambourdProcess
    private var tokens: [String]
    private let alice: WireClient
    private let bob: WireClient
    private var cid: Int64 = 0
    private var slowest = Duration.zero

    private static let maxGrowth = 64 << 20

    /// Runs `body`, then checks that the server is up, has stayed small, and has logged no failure.
    static func run(_ body: (Victim) throws -> Void) async throws {
        let limits = ["maxSoftErrors": 1_000_000, "maxCodesPerAddressPerHour": 1_000_000]
        try await TambourdProcess.run(limits: limits) { server in
            let victim = try Victim(server)
            // Warm the server up before measuring its memory.
            for _ in 0..<200 { try victim.witness() }
            let before = server.residentBytes
            try body(victim)
            try victim.witness()
            let growth = server.residentBytes - before
            #expect(server.residentBytes > 0)
            if !runsUnderSanitizer { #expect(growth < maxGrowth, "\(growth >> 20) MiB") }
            #expect(!server.errors.contains("failed"), "\(server.errors)")
            print("hostile bytes: grew by \(growth >> 10) KiB, slowest answer \(victim.slowest)")
        }
    }

    private init(_ server: TambourdProcess) throws {
        self.server = server
        address = server.address
        var tokens: [String] = []
        let admin = AdminClient(dataDirectory: server.dataDirectory)
        let done = try admin.run(.createUsers(count: 400, firstPhone: 79_990_000_001)) { line in
            tokens.append(String(line.split(separator: " ")[2]))
        }
        guard done else { throw WireClient.Failure.unexpected("no admin socket") }
        alice = try Self.login(address, tokens.removeFirst())
        bob = try Self.login(address, tokens.removeFirst())
        self.tokens = tokens
    }

    /// Checks that other clients can still write and read messages.
    func witness() throws {
        cid += 1
        let clock = ContinuousClock()
        let took = try clock.measure {
            let sent = try alice.send("\(cid)", to: alice.dialog(with: bob), cid: cid)
            let push = try bob.next(.notifMessage, as: NotifMessage.self)
            #expect(push.message.id == sent.message.id)
        }
        slowest = max(slowest, took)
        _ = try (alice.takePushes(), bob.takePushes())
    }

    /// Opens a connection and sends SESSION_INIT.
    func stranger() throws -> WireClient {
        let client = try WireClient(address: address)
        try client.call(SessionInitRequest())
        return client
    }

    /// Logs in as a member who has no connection yet.
    func loggedIn() throws -> WireClient {
        guard !tokens.isEmpty else { throw WireClient.Failure.unexpected("no more members") }
        return try Self.login(address, tokens.removeFirst())
    }

    var peakResidentBytes: Int { server.peakResidentBytes }

    /// Waits until the server has closed `count` connections as slow readers. Meanwhile other
    /// clients keep sending messages.
    func waitForSlowReaders(_ count: Int) throws {
        let admin = AdminClient(dataDirectory: server.dataDirectory)
        let name = "tambour_slow_readers_closed_total "
        let deadline = ContinuousClock.now + .seconds(120)
        var closed = 0
        while closed < count {
            guard ContinuousClock.now < deadline else {
                throw WireClient.Failure.timedOut("\(count) slow readers, \(closed) closed")
            }
            try witness()
            _ = try admin.run(.metrics) { line in
                if line.hasPrefix(name) { closed = Int(line.dropFirst(name.count)) ?? 0 }
            }
        }
    }

    /// Opens another connection of the same member.
    func again(_ client: WireClient) throws -> WireClient {
        try Self.login(address, client.token)
    }

    private static func login(_ address: String, _ token: String) throws -> WireClient {
        let client = try WireClient(address: address)
        try client.call(SessionInitRequest())
        client.token = token
        client.userID = try client.call(LoginRequest(token: token)).profile.contact.id
        return client
    }

    /// Checks that the reply is a success or an error that the specification declares.
    ///
    /// - Returns: Whether the reply ends the connection.
    static func check(_ reply: Packet, to opcode: Opcode) throws -> Bool {
        if reply.header.command == PacketCommand.ok.rawValue { return opcode == .logout }
        #expect(reply.header.command == PacketCommand.error.rawValue)
        let error = try ErrorReply.decode(reply.payload, limits: .standard)
        let code = try #require(RequestError.Code(rawValue: "\(error.error)"))
        let common: Set<RequestError.Code> = [.protoPayload, .protoOpcode, .protoState]
        let declared = Set(opcode.info?.errors ?? [])
        #expect(common.union(declared).contains(code), "\(opcode): \(error.error)")
        return false
    }

    /// Whether the tests run under a sanitizer. Sanitizers delay the release of freed memory, so
    /// the memory bound then does not apply.
    static let runsUnderSanitizer =
        dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}

/// The packets of `protocol-spec/examples/`, read from the generated vectors.
private enum ExamplePackets {
    /// Returns the packets with command 0: requests, and pushes sent in the wrong direction.
    static func requests() throws -> [[UInt8]] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "TambourProtocolTests/Generated/ExampleVectors.swift")
        let text = try String(contentsOf: file, encoding: .utf8)
        let packets = text.split(separator: "\n").compactMap { line -> [UInt8]? in
            guard let start = line.range(of: "            hex: \"0a00") else { return nil }
            guard start.lowerBound == line.startIndex else { return nil }
            let digits = Array(line.dropFirst(18).prefix { $0 != "\"" }.utf8)
            return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)
            }
        }
        try #require(packets.count > 20)
        return packets
    }
}

extension SeededGenerator {
    /// Values that announce large sizes or are invalid.
    private static let promises: [[UInt8]] = [
        [0xC0], [0xC1], [0xDF, 0xFF, 0xFF, 0xFF, 0xFF], [0xDD, 0xFF, 0xFF, 0xFF, 0xFF],
        [0xC6, 0xFF, 0xFF, 0xFF, 0xFF], [0xDB, 0xFF, 0xFF, 0xFF, 0xFF], [0xD9, 0xFF],
        [0xCF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        [0xCF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
        [0xD3, 0x80, 0, 0, 0, 0, 0, 0, 0], [0xCB, 0x7F, 0xF8, 0, 0, 0, 0, 0, 0],
        [0xC9, 0, 0, 0, 1, 1, 0xC0], [0xA1, 0xFF], [0xA0], [0x80], [0x90],
    ]

    /// Returns `original` with one to three changes.
    mutating func mutate(_ original: [UInt8]) -> [UInt8] {
        var bytes = original
        for _ in 0...below(3) {
            let at = below(bytes.count)
            switch below(8) {
            case 0 where !bytes.isEmpty: bytes[at] = UInt8(below(256))
            case 1 where !bytes.isEmpty: bytes[at] ^= 1 << UInt8(below(8))
            case 2: bytes = Array(bytes.prefix(at))
            case 3: bytes.insert(contentsOf: self.bytes(1 + below(8)), at: at)
            case 4 where !bytes.isEmpty:
                bytes.removeSubrange(at..<min(bytes.count, at + 1 + below(8)))
            case 5:
                bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + below(32))], at: at)
            case 6:
                bytes.insert(
                    contentsOf: Array(repeating: below(2) == 0 ? 0x91 : 0x81, count: below(2_000)),
                    at: at
                )
            default:
                let promise = Self.promises[below(Self.promises.count)]
                bytes.replaceSubrange(at..<min(bytes.count, at + promise.count), with: promise)
            }
        }
        return bytes
    }
}
