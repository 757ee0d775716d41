import Dispatch
import Foundation
import Synchronization
import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourServer
import TambourTesting
import Testing

/// Backups that are taken while users write, then restored and compared.
///
/// The short form takes three backups while four users write. With `TAMBOUR_SOAK=1`, the test takes
/// twelve backups while eight users write.
@Suite("A backup taken under load", .serialized)
struct BackupTests {
    private static let isSoak = ProcessInfo.processInfo.environment["TAMBOUR_SOAK"] == "1"

    @Test("holds everything acknowledged before it began, digest for digest")
    func underLoad() async throws {
        let (writers, backups) = Self.isSoak ? (8, 12) : (4, 3)
        try await TambourdProcess.run { server in
            let crowd = try Crowd(server, count: writers)
            try await crowd.write {
                for number in 1...backups {
                    // Wait, so that each backup contains more messages than the previous one.
                    try await crowd.wait(for: number * 50 * writers)
                    try await Self.backUp(server, crowd, number)
                }
            }
        }
    }

    private static func backUp(
        _ server: TambourdProcess,
        _ crowd: Crowd,
        _ number: Int
    ) async throws {
        let place = "\(server.dataDirectory)-backup-\(number)"
        let restored = "\(server.dataDirectory)-restored-\(number)"
        defer {
            for path in [place, restored] { try? FileManager.default.removeItem(atPath: path) }
        }
        let before = crowd.acknowledged
        let taken = try await run("backup", place, "--data", server.dataDirectory)
        let after = crowd.acknowledged.map(\.count).reduce(0, +)
        #expect(taken.contains("acknowledged before it and not in it: 0"), "\(taken)")
        let verified = try await run("restore", place, "--verify")
        #expect(verified.contains { $0.hasPrefix("all ") && $0.hasSuffix(" 0 lost") })
        let made = try await run("restore", place, "--data", restored)
        #expect(
            verified.filter { $0.hasSuffix(" equal") } == made.filter { $0.hasSuffix(" equal") }
        )

        let connection = try SQLiteConnection(path: "\(restored)/tambour.db", mode: .readOnly)
        let statement = try connection.prepare("SELECT id, text FROM message")
        var found: [Int64: String] = [:]
        while try statement.step() { found[statement.int(0)] = statement.string(1) }
        statement.reset()
        let missing = before.joined().filter { found[$0.id.rawValue] != $0.text }
        #expect(missing.isEmpty, "\(missing)")
        // The backup contains every message up to one moment during its creation, and no later
        // message.
        for ledger in crowd.acknowledged {
            let firstMissing = ledger.firstIndex { found[$0.id.rawValue] == nil } ?? ledger.count
            let late = ledger[firstMissing...].filter { found[$0.id.rawValue] != nil }
            #expect(late.isEmpty, "\(late)")
        }
        let count = before.map(\.count).reduce(0, +)
        print(
            """
            backup \(number): acknowledged before it began \(count), of them missing \
            \(missing.count); acknowledged while it was taken \(after - count); rows of messages in \
            it \(found.count)
            """
        )
    }

    @Test("says what is wrong with a file that was changed")
    func damage() async throws {
        try await TambourdProcess.run { server in
            let crowd = try Crowd(server, count: 2)
            try await crowd.write { try await crowd.wait(for: 20) }
            let place = "\(server.dataDirectory)-backup"
            defer { try? FileManager.default.removeItem(atPath: place) }
            try await Self.run("backup", place, "--data", server.dataDirectory)
            let again = try await Self.outcome("backup", place, "--data", server.dataDirectory)
            #expect(again.status != 0 && again.errors.contains("exists"))
            let onto = try await Self.outcome("restore", place, "--data", server.dataDirectory)
            #expect(onto.status != 0 && onto.errors.contains("another process"))

            let path = "\(place)/tambour.db"
            let whole = try Data(contentsOf: URL(fileURLWithPath: path))
            var bytes = whole
            bytes[bytes.count / 2] ^= 1
            try bytes.write(to: URL(fileURLWithPath: path))
            let changed = try await Self.outcome("restore", place, "--verify")
            #expect(changed.status != 0 && changed.errors.contains("not the file that was made"))

            // The table's digest reveals a change even if the file itself is consistent.
            try whole.write(to: URL(fileURLWithPath: path))
            do {
                let connection = try SQLiteConnection(path: path, mode: .readWrite)
                try connection.execute("UPDATE message SET text = X'41' WHERE n = 1")
                try connection.execute("PRAGMA journal_mode = DELETE")
            }
            let list = "\(place)/digests"
            let sum = try await Self.sha256(path)
            let text = try String(contentsOfFile: list, encoding: .utf8)
            let lines = text.split(separator: "\n").map { line in
                line.hasPrefix("file ") ? "file \(sum)" : String(line)
            }
            try lines.joined(separator: "\n").write(
                toFile: list,
                atomically: true,
                encoding: .utf8
            )
            let other = try await Self.outcome("restore", place, "--verify")
            #expect(other.status != 0 && other.errors.contains("snapshot held: message"))
        }
    }

    @Test("a PostgreSQL store is none of its business, and it says whose")
    func postgreSQL() async throws {
        let refused = try await Self.outcome("backup", "/tmp/x", "--data", "postgres://localhost/x")
        #expect(refused.status != 0 && refused.errors.contains("pg_dump"))
    }

    private static func sha256(_ path: String) async throws -> String {
        let outcome = try await blocking {
            try ChildProcess.run(URL(fileURLWithPath: "/usr/bin/sha256sum"), [path])
        }
        return String(outcome.output.prefix(64))
    }

    private static func outcome(_ arguments: String...) async throws -> ChildProcess.Outcome {
        try await blocking { try ChildProcess.run(TambourdProcess.program(), arguments) }
    }

    @discardableResult
    private static func run(_ arguments: String...) async throws -> [String] {
        let outcome = try await blocking {
            try ChildProcess.run(TambourdProcess.program(), arguments)
        }
        try #require(outcome.status == 0, "\(arguments): \(outcome.errors)")
        return outcome.output.split(separator: "\n").map(String.init)
    }
}

/// Users who write to each other as fast as they can, with a ledger of acknowledged messages.
private final class Crowd: Sendable {
    struct Message: Sendable {
        let id: MessageID
        let text: String
    }

    private struct State {
        var ledgers: [[Message]]
        var isDone = false
        var failure: (any Error)?
    }

    private let address: String
    private let people: [(user: UserID, token: String)]
    private let state: Mutex<State>
    /// Signalled when `state` changes.
    private let news = DispatchSemaphore(value: 0)
    private static let window = 8

    init(_ server: TambourdProcess, count: Int) throws {
        address = server.address
        var people: [(UserID, String)] = []
        let admin = AdminClient(dataDirectory: server.dataDirectory)
        _ = try admin.run(.createUsers(count: count, firstPhone: 79_990_000_001)) { line in
            let words = line.split(separator: " ")
            people.append((UserID(Int64(words[1]) ?? 0), String(words[2])))
        }
        self.people = people
        state = Mutex(State(ledgers: Array(repeating: [], count: count)))
    }

    /// The acknowledged messages of each user, in the order of the replies.
    var acknowledged: [[Message]] { state.withLock { $0.ledgers } }

    /// Makes all users write while `body` runs.
    func write(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup { group in
            for index in people.indices {
                group.addTask { try await blocking { try self.write(as: index) } }
            }
            do {
                try await body()
            } catch {
                state.withLock { $0.isDone = true }
                throw error
            }
            state.withLock { $0.isDone = true }
            try await group.waitForAll()
        }
    }

    /// Waits until `count` messages are acknowledged.
    func wait(for count: Int) async throws {
        try await blocking { [self] () throws -> Void in
            let deadline = DispatchTime.now() + 300
            while true {
                let (sum, failure) = state.withLock {
                    ($0.ledgers.map(\.count).reduce(0, +), $0.failure)
                }
                if let failure { throw failure }
                if sum >= count { return }
                let isNews = news.wait(timeout: deadline) == .success
                try #require(isNews, "\(sum) of \(count) messages")
            }
        }
    }

    private func write(as index: Int) throws {
        do {
            let client = try WireClient(address: address)
            try client.call(SessionInitRequest(deviceID: "crowd-\(index)"))
            try client.call(LoginRequest(token: people[index].token))
            let other = people[(index + 1) % people.count].user
            let chat = ChatID.dialog(people[index].user, other)
            var waiting: [(number: UInt16, text: String)] = []
            var cid: Int64 = 0
            while !state.withLock({ $0.isDone }) {
                while waiting.count < Self.window {
                    cid += 1
                    let text = "message \(cid) of \(index)"
                    let message = NewMessage(cid: cid, text: Text(text))
                    waiting.append(
                        (try client.send(MsgSendRequest(chatID: chat, message: message)), text)
                    )
                }
                let (number, text) = waiting.removeFirst()
                let reply = try client.reply(to: number, as: MsgSendReply.self)
                _ = client.takePushesAtHand()
                let message = Message(id: reply.message.id, text: text)
                state.withLock { $0.ledgers[index].append(message) }
                news.signal()
            }
            client.close()
        } catch {
            state.withLock { $0.failure = error }
            news.signal()
            throw error
        }
    }
}
