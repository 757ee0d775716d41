import Foundation
import Synchronization
import TambourProtocol
import TambourTesting

/// A data directory, a server on it that is cut off again and again, and clients that keep writing.
///
/// In a cycle, the server runs under load until it is cut, and starts again. The test looks for
/// everything that was acknowledged and resends everything that was in flight. The next cycle
/// continues with the same data.
///
/// `@unchecked Sendable`: one task of a test drives it, and waits for the work on other threads.
final class CrashWorld: @unchecked Sendable {
    enum Ending {
        /// SIGKILL: the machine continues to run, so written data stays.
        case kill
        /// A simulated power cut: unsynced data is lost.
        case powerCut
        /// SIGTERM, as an operator stops the server.
        case stop
    }

    struct Failure: Error, CustomStringConvertible {
        /// Whether acknowledged or pushed data is missing.
        let isLoss: Bool
        let description: String
    }

    /// Deleted by `remove`; kept after a failure for inspection.
    let directory: URL
    /// The `synchronous` setting of the server under load. With any value but FULL, the tests
    /// expect data loss.
    private let synchronous: String?
    private let seed: UInt64
    var random: SeededGenerator
    var writers: [CrashWriter] = []
    /// The beginning and end of each chat's checked part. The key contains the user, because
    /// dialogs of two pairs may have the same id.
    private var began: [CrashChat: MessageID] = [:]
    var checkedUpTo: [CrashChat: MessageID] = [:]
    /// A digest of the checked part, compared again at the end.
    var checked: [CrashChat: CrashDigest] = [:]

    private(set) var cycles = 0
    private(set) var cutsBeforeListening = 0
    private(set) var cutsWhileStopping = 0
    private(set) var acknowledgements = 0
    private(set) var otherAcknowledgements = 0
    var pushesChecked = 0
    var repeated = 0

    private var data: String { directory.appendingPathComponent("data").path }
    private var limits: String { directory.appendingPathComponent("limits.yaml").path }

    /// - Parameters:
    ///   - synchronous: `NORMAL` weakens a debug build of the server; nil keeps the default.
    ///   - firstCut: The number of the file operation at which to cut the first start. This start
    ///     takes about 80 file operations.
    init(seed: UInt64, synchronous: String? = nil, firstCut: Int? = nil) async throws {
        self.seed = seed
        self.synchronous = synchronous
        random = SeededGenerator(seed: seed)
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("tambour-crash-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            atPath: directory.appendingPathComponent("data").path,
            withIntermediateDirectories: true
        )
        try Data(Unhurried.file().utf8).write(to: URL(fileURLWithPath: limits))
        do {
            if let firstCut { try await cutFirstStart(at: firstCut) }
            try await makeUsers(6)
        } catch {
            remove()
            throw error
        }
    }

    func remove() {
        try? FileManager.default.removeItem(at: directory)
    }

    private func makeUsers(_ count: Int) async throws {
        let made = try ChildProcess(
            TambourdProcess.program(),
            [
                "admin", "users", "create", "--data", data, "--count", "\(count)",
                "--first-phone", "+79990000001",
            ]
        )
        var users: [(id: UserID, token: String)] = []
        for await line in made.lines {
            let words = line.split(separator: " ")
            guard words.count == 3, let id = Int64(words[1]) else { continue }
            users.append((UserID(id), String(words[2])))
        }
        try check(await made.exitStatus() == 0, "users create failed: \(made.errors)")
        try check(users.count == count, "users create made \(users.count) of \(count)")
        // The first user creates the group, on a server that stops gracefully.
        let server = try await start()
        let owner = CrashWriter(userID: users[0].id, token: users[0].token, chats: [], seed: seed)
        let control = NewAttach(
            type: .control,
            title: "crash",
            event: "new",
            chatType: "CHAT",
            userIDs: users.dropFirst().map(\.id)
        )
        let group = try await blocking {
            let client = try owner.connect(server.address)
            defer { client.close() }
            try client.meet((1...count).map { "+7999000000\($0)" })
            return try client.call(
                MsgSendRequest(message: NewMessage(cid: 1, attaches: [control]))
            )
        }
        try await stop(server.process)
        writers = users.enumerated().map { index, user in
            let partner = users[index ^ 1]
            return CrashWriter(
                userID: user.id,
                token: user.token,
                chats: [.dialog(user.id, partner.id), group.chatID],
                seed: seed
            )
        }
        for user in users {
            began[CrashChat(of: user.id, chat: group.chatID)] = group.message.id
        }
        checkedUpTo = began
    }

    private func cutFirstStart(at operation: Int) async throws {
        let (process, address) = try await start(
            PowerCut(directory: data, seed: random.next(), afterOperations: operation)
        )
        if address == nil { cutsBeforeListening += 1 }
        process.signal(SIGUSR2)
        let status = try await process.exitStatus(within: .seconds(120))
        try check(status == 128 + SIGKILL, "the server ended with \(status): \(process.errors)")
    }

    // MARK: - The server

    /// Starts the server; the address is nil when it was cut before it listened.
    private func start(_ cut: PowerCut) async throws -> (process: ChildProcess, address: String?) {
        let process = try serve(environment: cut.environment)
        return (process, await process.line(after: "listening tcp "))
    }

    private func start() async throws -> (process: ChildProcess, address: String) {
        let process = try serve(environment: [:])
        guard let address = await process.line(after: "listening tcp ") else {
            throw failure("the server did not start: \(process.errors)")
        }
        return (process, address)
    }

    private func serve(environment: [String: String]) throws -> ChildProcess {
        var environment = environment
        environment["TAMBOUR_DEBUG_SYNCHRONOUS"] = synchronous ?? "FULL"
        return try ChildProcess(
            TambourdProcess.program(),
            [
                "serve", "--listen", "127.0.0.1:0", "--data", data, "--login-codes", "fixed:111111",
                "--limits", limits, "--log-level", "error",
                "--lanes", "\(Int.random(in: 1...4, using: &random))",
            ],
            environment: environment
        )
    }

    /// Stops a server that no client uses.
    private func stop(_ process: ChildProcess) async throws {
        process.signal(SIGTERM)
        let status = try await process.exitStatus(within: .seconds(120))
        try check(status == 0, "SIGTERM ended the server with \(status): \(process.errors)")
        try checkStopped()
    }

    /// Checks that after a graceful stop the database file contains everything.
    private func checkStopped() throws {
        let log = data + "/tambour.db-wal"
        let size = try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int
        try check((size ?? 0) == 0, "the server stopped and left a log of \(size ?? 0) bytes")
    }

    // MARK: - A cycle

    /// Runs the server under load, ends it, starts it again and checks everything.
    func cycle(_ ending: Ending) async throws {
        cycles += 1
        // Every eighth cut happens during or soon after the start, which takes 8 file operations.
        let isEarly = Int.random(in: 0..<8, using: &random) == 0
        let operations =
            isEarly
            ? Int.random(in: 1...16, using: &random) : Int.random(in: 16...900, using: &random)
        let messages = Int.random(in: 20...400, using: &random)
        // Every eighth cut happens during a graceful stop. The stop makes a checkpoint, so it also
        // performs file operations.
        let cutsStop = ending == .powerCut && Int.random(in: 0..<8, using: &random) == 0
        let process: ChildProcess
        let address: String?
        if ending == .powerCut {
            (process, address) = try await start(
                PowerCut(
                    directory: data,
                    seed: random.next(),
                    afterOperations: cutsStop ? nil : operations
                )
            )
        } else {
            (process, address) = try await start()
        }
        if let address {
            let signal =
                switch ending {
                case .kill: SIGKILL
                case .powerCut: cutsStop ? SIGTERM : SIGUSR2
                case .stop: SIGTERM
                }
            await load(address, after: messages) { process.signal(signal) }
        } else {
            cutsBeforeListening += 1
        }
        if cutsStop {
            cutsWhileStopping += 1
            process.signal(SIGUSR2)
        }
        for writer in writers {
            if let error = writer.failure {
                process.signal(SIGKILL)
                throw failure("user \(writer.userID.rawValue): \(error)")
            }
        }
        let status = try await process.exitStatus(within: .seconds(120))
        switch ending {
        case .stop:
            try check(status == 0, "SIGTERM ended the server with \(status): \(process.errors)")
            try check(process.errors.isEmpty, "a stop under load says: \(process.errors)")
            try checkStopped()
            for writer in writers {
                try check(writer.hasEndedCleanly, "a stop cut user \(writer.userID.rawValue) off")
            }
        case .kill, .powerCut:
            // The server may have stopped before the cut.
            let isCut = status == 128 + SIGKILL || cutsStop && status == 0
            try check(isCut, "the server ended with \(status): \(process.errors)")
        }
        try await verify(isLast: false)
    }

    /// Checks everything once more, including the messages of earlier cycles.
    func finish() async throws {
        try await verify(isLast: true)
    }

    private func load(
        _ address: String,
        after messages: Int,
        _ end: @escaping @Sendable () -> Void
    ) async {
        let confirmed = Counter()
        await withTaskGroup(of: Void.self) { group in
            for writer in writers {
                group.addTask {
                    try? await blocking {
                        writer.write(to: address) {
                            if confirmed.next() == messages { end() }
                        }
                    }
                }
            }
        }
        acknowledgements += confirmed.value
        otherAcknowledgements += writers.reduce(0) { $0 + $1.changesConfirmed }
    }

    private func verify(isLast: Bool) async throws {
        let server = try await start()
        do {
            try await blocking { [self] in try verify(at: server.address) }
            if isLast {
                let first = began
                try await blocking { [self] in try verifyAll(at: server.address, from: first) }
            }
            try await adminCheck()
            try check(server.process.errors.isEmpty, "the server says: \(server.process.errors)")
        } catch {
            server.process.signal(SIGKILL)
            _ = await server.process.exitStatus()
            throw error
        }
        // Stop gracefully only sometimes, because a graceful stop empties the log. The log must
        // also grow until commits checkpoint it under load.
        if isLast || Int.random(in: 0..<12, using: &random) == 0 {
            try await stop(server.process)
        } else {
            server.process.signal(SIGKILL)
            _ = await server.process.exitStatus()
        }
    }

    private func adminCheck() async throws {
        let process = try ChildProcess(
            TambourdProcess.program(),
            ["admin", "check", "--data", data]
        )
        var lines: [String] = []
        for await line in process.lines { lines.append(line) }
        let status = await process.exitStatus()
        try check(status == 0 && lines == ["ok"], "admin check: \(lines) \(process.errors)")
    }

    // MARK: - Failing

    func check(_ holds: Bool, _ what: @autoclosure () -> String) throws {
        if !holds { throw failure(what()) }
    }

    func lost(_ what: String) -> Failure { failure(what, isLoss: true) }

    private func failure(_ what: String, isLoss: Bool = false) -> Failure {
        Failure(isLoss: isLoss, description: "cycle \(cycles) of seed \(seed): \(what)")
    }
}

/// A chat as one of its members sees it.
struct CrashChat: Hashable {
    let of: UserID
    let chat: ChatID
}

private final class Counter: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
}

/// The number of messages in a part of a chat, and a hash over them.
struct CrashDigest: Equatable {
    var count = 0
    var hash = 0

    mutating func add(_ message: Message) {
        count += 1
        hash = hash &* 31 &+ message.hashValue
    }
}

/// Runs `body` on a separate thread, because the few threads of the test pool must not block.
func blocking<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            continuation.resume(with: Swift.Result { try body() })
        }
    }
}
