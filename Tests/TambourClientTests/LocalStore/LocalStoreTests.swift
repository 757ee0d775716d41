import Foundation
import GRDB
import Synchronization
import TambourProtocol
import TambourTesting
import Testing

@testable import TambourClient

@Suite("The local store")
struct LocalStoreTests {
    @Test("that is closed under its readers tells them so, and nothing worse")
    func closing() throws {
        let directory = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for round in 0..<50 {
            let store = try LocalStore(path: "\(directory)/\(round).db")
            let refusals = Mutex<[String]>([])
            // Use real threads: endless readers in tasks could keep the closing task from starting.
            DispatchQueue.concurrentPerform(iterations: 4) { reader in
                do throws(ClientError) {
                    while true {
                        _ = try store.read { try Int64.fetchOne($0, sql: "SELECT 1") }
                        if reader == 0 { store.close() }
                    }
                } catch {
                    refusals.withLock { $0.append(error.description) }
                }
            }
            #expect(refusals.withLock { Set($0) } == ["the local store: it is closed"])
        }
        #expect(throws: ClientError.self) {
            let store = try LocalStore(path: "\(directory)/last.db")
            store.close()
            try store.write { try $0.execute("DELETE FROM message") }
        }
    }

    @Test("of an earlier version is asked what answers what, and knows it")
    func answersOfBefore() throws {
        let chat = ChatID.dialog(UserID(7), UserID(8))
        func message(_ id: Int64, _ type: LinkType?) -> Message {
            var message = Message(id: MessageID(id), time: id, type: "USER", text: "REPLY")
            guard let type else { return message }
            let answered = Message(id: MessageID(1), time: 1, type: "USER", text: "first")
            message.link = Packed(MessageLink(type: type, chatID: chat, message: answered))
            return message
        }
        let queue = try DatabaseQueue()
        try LocalSchema.migrator.migrate(queue, upTo: "others")
        try queue.write { db in
            let messages = [message(1, nil), message(2, .reply), message(3, .forward)]
            for message in messages {
                try db.execute(
                    sql: """
                        INSERT INTO message (chat, id, updateTime, revision, text, data)
                        VALUES (?, ?, 0, 1, '', ?)
                        """,
                    arguments: [chat.rawValue, message.id.rawValue, message.storedBytes]
                )
            }
        }
        try LocalSchema.migrator.migrate(queue)
        let thread = try queue.read { db in
            try Reader(db).thread(of: MessageID(1), in: chat, limit: 10)
        }
        #expect(thread.entries.map(\.message) == [MessageID(1), MessageID(2)])
        let plan = try queue.read { db in
            try Row.fetchAll(
                db,
                sql: "EXPLAIN QUERY PLAN SELECT id FROM message WHERE chat = 1 AND replyTo = 2"
            ).map { $0["detail"] as String }
        }
        #expect(plan.contains { $0.contains("message_by_reply") })
    }

    @Test(
        "of an earlier version keeps a server without TLS, and others as they are",
        arguments: [
            ("chat.example.org:7770", "tcp://chat.example.org:7770"),
            ("127.0.0.1:7770", "tcp://127.0.0.1:7770"), ("[::1]:1", "tcp://[::1]:1"),
            ("tls://chat.example.org:443", "tls://chat.example.org:443"),
        ]
    )
    func serverOfBefore(old: String, new: String) throws {
        let queue = try DatabaseQueue()
        try LocalSchema.migrator.migrate(queue, upTo: "comments")
        try queue.write { db in
            try db.execute(
                sql: "INSERT INTO setting VALUES ('server', ?), ('device', 'a:b')",
                arguments: [old]
            )
        }
        try LocalSchema.migrator.migrate(queue)
        let (server, device) = try queue.read { db in
            (try db.server(), try db.value(of: .device) as String?)
        }
        #expect(server?.description == new)
        #expect(device == "a:b")
    }

    @Test("remembers server and trust; another server begins with the system's authorities")
    func serverAndTrust() throws {
        let store = try LocalStore()
        let first = try ServerAddress("chat.example.org")
        let second = try ServerAddress("chat.example.org:7443")
        let pin = ServerTrust.pinned(ServerKeyDigest(bytes: .init(repeating: 7, count: 32)))
        func remembered() throws -> ServerTrust {
            try store.read { db in
                let server: String? = try db.value(of: .server)
                #expect(server?.hasPrefix("tls://") == true)
                return try db.trust()
            }
        }
        #expect(throws: ClientError.self) {
            try store.write { try $0.set(server: nil, trust: nil) }
        }
        try store.write { try $0.set(server: first, trust: nil) }
        #expect(try remembered() == .system)
        try store.write { try $0.set(server: nil, trust: pin) }
        try store.write { try $0.set(server: first, trust: nil) }
        try store.write { try $0.signOut() }
        #expect(try remembered() == pin)
        try store.write { try $0.set(server: second, trust: nil) }
        #expect(try remembered() == .system)
        try store.write { try $0.set(server: second, trust: pin) }
        try store.write { try $0.set(server: nil, trust: .system) }
        #expect(try remembered() == .system)
        let plain = try ServerAddress("tcp://chat.example.org")
        #expect(throws: ClientError.self) {
            try store.write { try $0.set(server: plain, trust: pin) }
        }
        #expect(try store.read { try $0.server() } == second)
    }
}
