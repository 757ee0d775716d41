import Foundation
import Synchronization
import TambourProtocol
import TambourSQL
import TambourTesting

/// Four devices of three people who write to one group. The network cuts connections, while
/// programs and the server are killed.
final class DeviceWorld: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// A message as the server stores it.
    private struct Stored: Hashable {
        let sender: Int64
        let cid: Int64
        let text: String
    }

    /// A line of an export, without the parts that depend on the user.
    private struct Line: Hashable, Decodable {
        let id: String
        let time: Int64
        let sender: String?
        let senderName: String
        let text: String
        let replyTo: String?
        let event: String?
        let attachments: [String]
        let reactions: [String: Int]
        let edited: Bool
    }

    private let seed: UInt64
    private let perDevice: Int
    private let server: TambourdProcess
    private let proxy: CuttingProxy
    private let devices: [Device]
    /// The group; devices send to its id and export it by its title.
    private let chat: ChatID
    private static let title = "devices"
    /// Requests a kill of the server; at most one request waits.
    private let killServer: AsyncStream<Void>.Continuation
    private let serverKills: AsyncStream<Void>
    private let serverWasKilled = Mutex(0)
    private let handed = Mutex<Set<Device.Handed>>([])

    /// A summary of the run for people.
    var summary: String {
        """
        \(perDevice * devices.count) messages of \(devices.count) devices, TAMBOUR_SEED=\(seed): \
        \(proxy.cuts) of \(proxy.connections) connections cut, \
        \(devices.map(\.kills).reduce(0, +)) clients and \(serverWasKilled.withLock { $0 }) servers \
        killed; \(handed.withLock { $0.count }) messages seen waiting on a disk
        """
    }

    /// - Parameter typicalBytes: The number of bytes after which about half of the connections are
    ///   cut.
    init(
        on server: TambourdProcess,
        directory: URL,
        seed: UInt64,
        perDevice: Int,
        typicalBytes: Int
    ) async throws {
        self.server = server
        self.seed = seed
        self.perDevice = perDevice
        let program = try TambourdProcess.program().deletingLastPathComponent()
            .appendingPathComponent("tambour")
        let devices = (0..<4).map { Device(index: $0, program: program, directory: directory) }
        self.devices = devices
        let (kills, kill) = AsyncStream.makeStream(
            of: Void.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        (serverKills, killServer) = (kills, kill)
        proxy = try CuttingProxy(
            to: server.address,
            doors: devices.count,
            seed: seed,
            typicalBytes: typicalBytes
        ) { cut in
            switch cut.draw % 16 {
            case 0..<4: devices[cut.door].kill("send")
            case 4..<6: devices[cut.door].kill("tail")
            case 6..<8: kill.yield()
            default: break
            }
        }
        let tokens = try await Self.makeUsers(3, on: server)
        chat = try await Self.makeGroup(of: tokens, on: server)
        for device in devices {
            // The first two devices belong to one person.
            let token = tokens[max(0, device.index - 1)].token
            try await device.logIn(to: proxy.addresses[device.index], token: token)
        }
    }

    // MARK: - Setup

    private static func makeUsers(
        _ count: Int,
        on server: TambourdProcess
    ) async throws -> [(id: UserID, token: String)] {
        let made = try ChildProcess(
            TambourdProcess.program(),
            [
                "admin", "users", "create", "--data", server.dataDirectory, "--count", "\(count)",
                "--first-phone", "+79990000001",
            ]
        )
        var users: [(id: UserID, token: String)] = []
        for await line in made.lines {
            let words = line.split(separator: " ")
            guard words.count == 3, let id = Int64(words[1]) else { continue }
            users.append((UserID(id), String(words[2])))
        }
        guard await made.exitStatus() == 0, users.count == count else {
            throw Failure(description: "users create: \(made.errors)")
        }
        return users
    }

    private static func makeGroup(
        of users: [(id: UserID, token: String)],
        on server: TambourdProcess
    ) async throws -> ChatID {
        try await blocking {
            let client = try WireClient(address: server.address)
            defer { client.close() }
            _ = try client.call(SessionInitRequest(deviceID: "maker"))
            _ = try client.call(LoginRequest(token: users[0].token, interactive: true))
            try client.meet(users.indices.map { "+7999000000\($0 + 1)" })
            let control = NewAttach(
                type: .control,
                title: Text(title),
                event: "new",
                chatType: "CHAT",
                userIDs: users.dropFirst().map(\.id)
            )
            let reply = try client.call(
                MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))
            )
            return reply.chatID
        }
    }

    // MARK: - Load

    /// Makes every device send its messages, despite cuts and kills.
    func play() async throws {
        proxy.isCutting = true
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await _ in self.serverKills {
                    try await self.server.killAndRestart()
                    self.serverWasKilled.withLock { $0 += 1 }
                }
            }
            try await withThrowingTaskGroup(of: Void.self) { writers in
                for device in devices { writers.addTask { try await self.write(from: device) } }
                defer { killServer.finish() }
                try await writers.waitForAll()
            }
            try await group.waitForAll()
        }
        proxy.isCutting = false
    }

    /// Gives a device its messages in portions. After a kill, continues with the first message that
    /// the device has not stored.
    private func write(from device: Device) async throws {
        // On every second device, `tail` usually holds the connection and sends the messages that
        // `send` stores.
        try await withThrowingTaskGroup(of: Void.self) { group in
            if device.index % 2 == 1 {
                group.addTask { try await self.watch(device) }
            }
            defer { device.end("tail") }
            var random = SeededGenerator(seed: seed &+ UInt64(device.index))
            var next = 1
            // Nearly every run of the program stores something, so the loop ends.
            for _ in 0..<(10 * perDevice) where next <= perDevice {
                let last = min(perDevice, next + Int(random.next() % 80))
                let texts = (next...last).map { device.text($0, of: seed) }
                let (status, errors) = try await device.send(texts, to: "\(chat)")
                guard [0, 2, 128 + SIGKILL].contains(status) else {
                    throw Failure(description: "send of \(device.index): \(status) \(errors)")
                }
                let waiting = try device.waiting()
                handed.withLock { $0.formUnion(waiting) }
                next = try device.lastHanded() + 1
            }
            guard next > perDevice else {
                throw Failure(description: "device \(device.index) came to \(next - 1)")
            }
        }
    }

    /// Keeps `tambour tail` running, and checks that it shows messages in order and only once.
    private func watch(_ device: Device) async throws {
        struct Line: Decodable { let id: String }
        for _ in 0..<10_000 where !device.isEnded("tail") {
            let (status, lines, errors) = try await device.tail()
            guard status == 128 + SIGKILL else {
                throw Failure(description: "tail of device \(device.index): \(status) \(errors)")
            }
            // The last line may be incomplete.
            let ids = lines.compactMap { text in
                let bytes = Data(text.utf8)
                let line = try? JSONDecoder().decode(Line.self, from: bytes)
                return line.flatMap { Int64($0.id) }
            }
            guard ids.count + 1 >= lines.count else {
                throw Failure(description: "tail of device \(device.index) is unreadable")
            }
            guard ids == Set(ids).sorted() else {
                throw Failure(description: "tail of device \(device.index) is out of order")
            }
        }
    }

    // MARK: - Checks

    /// Compares the server's messages with those that the devices were asked to send, and the
    /// devices with each other.
    func verify() async throws {
        for device in devices { try await device.flush() }
        var exports: [[Line]] = []
        for device in devices {
            let lines = try await device.export(Self.title)
            exports.append(
                try lines.map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
            )
        }
        let stored = try stored()
        for device in devices {
            let expected = (1...perDevice).map { device.text($0, of: seed) }
            let found = stored.map(\.text).filter { $0.hasPrefix("d\(device.index) ") }
            guard found == expected else {
                let missing = Set(expected).subtracting(found).count
                let twice = found.count - Set(found).count
                throw Failure(
                    description: """
                        of device \(device.index) the server holds \(found.count) messages in place of \
                        \(expected.count): \(missing) are missing, \(twice) are there again, or the order is another
                        """
                )
            }
        }
        let names = Set(stored.map { [$0.sender, $0.cid] })
        guard names.count == stored.count else {
            throw Failure(description: "\(stored.count - names.count) cids are there twice")
        }
        let kept = Set(stored.map { Device.Handed(text: $0.text, cid: $0.cid) })
        let lost = handed.withLock { $0.subtracting(kept) }
        guard lost.isEmpty else {
            throw Failure(description: "\(lost.count) messages are stored under another cid")
        }
        for (device, export) in zip(devices, exports) where export != exports[0] {
            let pairs = zip(export, exports[0]).enumerated()
            let first = pairs.first { $0.element.0 != $0.element.1 }
            throw Failure(
                description: """
                    device \(device.index) holds \(export.count) messages, device 0 \(exports[0].count); \
                    the first difference: \(first.map { "\($0)" } ?? "the end")
                    """
            )
        }
        guard exports[0].count == stored.count + 1 else {
            throw Failure(
                description: "devices hold \(exports[0].count), the server \(stored.count) and one"
            )
        }
    }

    func stop() {
        proxy.stop()
    }

    /// Returns the group's messages on the server, in the order of their ids.
    private func stored() throws -> [Stored] {
        let path = "\(server.dataDirectory)/tambour.db"
        let connection = try SQLiteConnection(path: path, mode: .readOnly)
        let statement = try connection.prepare(
            "SELECT sender, cid, text FROM message WHERE chat = \(chat.rawValue) AND cid <> 1 ORDER BY id"
        )
        var messages: [Stored] = []
        while try statement.step() {
            messages.append(
                Stored(
                    sender: statement.int(0),
                    cid: statement.int(1),
                    text: statement.string(2)
                )
            )
        }
        return messages
    }
}
