import Synchronization
import TambourNet
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

@testable import TambourMessenger

@Suite("Readers")
struct ReaderPoolTests {
    private let alice = WorkSubject.user(UserID(1))
    private let bob = WorkSubject.user(UserID(2))

    /// The names of the queries that ran, in order.
    private final class Log: Sendable {
        private let names = Mutex<[String]>([])

        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    private func withPool(
        maxUnfinished: Int = 64,
        _ body: (ReaderPool, StepScheduler) throws -> Void
    ) throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let path = "\(directory)/tambour.db"
        try StoreConnection.migrate(SQLiteConnection(path: path, mode: .readWrite))
        let stores = try (0..<3).map { _ in
            try StoreConnection(SQLiteConnection(path: path, mode: .readOnly), limits: .standard)
        }
        let scheduler = StepScheduler()
        var environment = Environment.live
        environment.scheduler = scheduler
        let pool = ReaderPool(
            Array(stores[..<2]),
            logins: stores[2],
            maxUnfinished: maxUnfinished,
            environment: environment
        )
        try body(pool, scheduler)
    }

    @Test("one account's queue does not keep another one's query waiting")
    func turns() throws {
        try withPool { pool, scheduler in
            let log = Log()
            for number in 0..<100 {
                pool.post(for: alice) { _ in
                    log.add("a\(number)")
                    // Bob sends a query during Alice's third query.
                    if number == 2 { pool.post(for: bob) { _ in log.add("b") } }
                    // Lets other readers run during this query.
                    scheduler.step()
                }
            }
            scheduler.runAll()
            #expect(log.all.filter { $0 != "b" } == (0..<100).map { "a\($0)" })
            // Bob's query starts before Alice's third query ends.
            #expect(log.all.firstIndex(of: "b") == 3)
        }
    }

    @Test(
        "between two steps of a query others have their turns, while few have begun",
        arguments: [
            (0, ["a1", "a2", "a3", "b1", "b2", "b3", "a next", "b next"]),
            (1, ["a1", "b1", "b2", "b3", "a2", "b next", "a3", "a next"]),
            (64, ["a1", "b1", "a2", "b2", "a3", "b3", "a next", "b next"]),
        ]
    )
    func steps(maxUnfinished: Int, order: [String]) throws {
        try withPool(maxUnfinished: maxUnfinished) { pool, scheduler in
            let log = Log()
            for (name, subject) in [("a", alice), ("b", bob)] {
                @Sendable func step(_ number: Int) -> ReaderPool.Job {
                    ReaderPool.Job { _ in
                        log.add("\(name)\(number)")
                        return number < 3 ? step(number + 1) : nil
                    }
                }
                pool.post(for: subject, step(1))
                pool.post(for: subject) { _ in log.add("\(name) next") }
            }
            scheduler.runAll()
            #expect(log.all == order)
        }
    }

    @Test("an account has one query running, however many readers are free")
    func oneAtATime() throws {
        try withPool { pool, scheduler in
            let log = Log()
            for number in 0..<10 {
                pool.post(for: alice) { _ in
                    log.add("begin \(number)")
                    while scheduler.step() {}
                    log.add("end \(number)")
                }
            }
            scheduler.runAll()
            #expect(log.all == (0..<10).flatMap { ["begin \($0)", "end \($0)"] })
        }
    }

    @Test("two accounts are read side by side")
    func sideBySide() throws {
        try withPool { pool, scheduler in
            let log = Log()
            for (name, subject) in [("a", alice), ("b", bob)] {
                pool.post(for: subject) { _ in
                    log.add("begin \(name)")
                    while scheduler.step() {}
                    log.add("end \(name)")
                }
            }
            scheduler.runAll()
            #expect(log.all == ["begin a", "begin b", "end b", "end a"])
        }
    }

    @Test("searches on every reader leave one for a login")
    func login() throws {
        try withPool { pool, scheduler in
            let log = Log()
            for user in Int64(1)...20 {
                pool.post(for: .user(UserID(user))) { _ in
                    log.add("query")
                    // Both readers for queries are busy when a user logs in.
                    if user == 1 { scheduler.step() }
                    if user == 2 {
                        pool.post(.login, for: bob) { _ in log.add("login") }
                        scheduler.step()
                    }
                }
            }
            scheduler.runAll()
            #expect(log.all.count == 21)
            #expect(log.all.prefix(3) == ["query", "query", "login"])
        }
    }

    @Test("logins use every reader while nobody asks for anything else")
    func loginStorm() throws {
        try withPool { pool, scheduler in
            let running = Mutex((now: 0, most: 0))
            for user in Int64(1)...30 {
                pool.post(.login, for: .user(UserID(user))) { _ in
                    running.withLock { running in
                        running.now += 1
                        running.most = max(running.most, running.now)
                    }
                    while scheduler.step() {}
                    running.withLock { $0.now -= 1 }
                }
            }
            scheduler.runAll()
            #expect(running.withLock { $0.most } == 3)
        }
    }

    @Test("closing waits for everything that was posted")
    func close() throws {
        try withPool { pool, scheduler in
            let log = Log()
            for user in Int64(1)...5 {
                for kind in [ReaderPool.Kind.query, .login] {
                    for _ in 0..<5 {
                        pool.post(kind, for: .user(UserID(user))) { _ in log.add("x") }
                    }
                }
            }
            pool.close { log.add("closed") }
            #expect(log.all.isEmpty)
            scheduler.runAll()
            #expect(log.all.count == 51)
            #expect(log.all.last == "closed")
        }
    }

    @Test("whatever is posted, nothing is lost and each account keeps its order", arguments: 0..<20)
    func random(seed: Int) throws {
        try withPool { pool, scheduler in
            let random = Mutex(SeededGenerator(seed: UInt64(seed)))
            @Sendable func below(_ bound: Int) -> Int {
                random.withLock { Int.random(in: 0..<bound, using: &$0) }
            }
            let done = Mutex<[String: [Int]]>([:])
            for number in 0..<500 {
                let user = below(4)
                let kind: ReaderPool.Kind = below(3) == 0 ? .login : .query
                let name = "\(kind) \(user)"
                pool.post(kind, for: .user(UserID(Int64(user)))) { _ in
                    done.withLock { $0[name, default: []].append(number) }
                    for _ in 0..<below(4) { scheduler.step() }
                }
                for _ in 0..<below(2) { scheduler.step() }
            }
            scheduler.runAll()
            let all = done.withLock { $0 }
            #expect(all.values.reduce(0) { $0 + $1.count } == 500)
            for numbers in all.values { #expect(numbers == numbers.sorted()) }
        }
    }
}
