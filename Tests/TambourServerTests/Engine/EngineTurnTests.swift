import Synchronization
import TambourEvents
import TambourNet
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

@testable import TambourGateway
@testable import TambourMessenger

/// The clock moves only while a command runs, by the duration that the test gave the command.
@Suite("Turns of commands")
struct EngineTurnTests {
    private struct Bench {
        let engine: Engine
        let metrics: ServerMetrics
        let scheduler: StepScheduler
        let lanes: Lanes
        let log = Log()

        func post(
            _ name: String,
            for user: Int64,
            taking duration: Duration,
            _ body: @escaping @Sendable () throws -> Void = {}
        ) {
            let (log, scheduler) = (log, scheduler)
            engine.post(
                Command(
                    for: .user(UserID(user)),
                    arrivalUs: Int64(scheduler.now / .microseconds(1))
                ) {
                    tx in
                    log.add(name, scheduler.now)
                    scheduler.advance(by: duration)
                    try tx.setSeen(1, user: UserID(user), session: SessionID(1))
                    try body()
                    return .done
                } done: { answer in
                    if case .refusal(let error) = answer.outcome { log.refuse(name, error) }
                }
            )
        }
    }

    /// Replaces the lanes, and can hold back the reports of deliveries.
    private final class Lanes: Door {
        private let waiting = Mutex<[@Sendable () -> Void]?>(nil)

        /// Makes all later deliveries wait.
        func rest() { waiting.withLock { $0 = [] } }

        func whenDelivered(_ body: @escaping @Sendable () -> Void) {
            let isResting = waiting.withLock { waiting in
                waiting?.append(body)
                return waiting != nil
            }
            if !isResting { body() }
        }

        func deliver(_ events: [Event]) {}
        func counted(among users: [UserID]) -> [UserID] { [] }
        func sessions(of user: UserID) -> Set<SessionID> { [] }

        /// Reports all waiting deliveries.
        func delivered() {
            let delivered = waiting.withLock { waiting in
                defer { waiting = waiting == nil ? nil : [] }
                return waiting ?? []
            }
            for body in delivered { body() }
        }
    }

    /// The names of started commands, with their times.
    private final class Log: Sendable {
        private let begun = Mutex<[(name: String, at: Duration)]>([])
        private let refusals = Mutex<[String]>([])

        func add(_ name: String, _ time: Duration) { begun.withLock { $0.append((name, time)) } }
        func refuse(_ name: String, _ error: RequestError) {
            refusals.withLock { $0.append("\(name) \(error.code.rawValue)") }
        }
        var names: [String] { begun.withLock { $0.map(\.name) } }
        var refused: [String] { refusals.withLock { $0 } }
        func time(of name: String) -> Duration? {
            begun.withLock { $0.first { $0.name == name }?.at }
        }
    }

    private func withEngine(
        limits overrides: [String: Int] = [:],
        _ body: (Bench) throws -> Void
    ) throws {
        let directory = try TestServer.temporaryDirectory()
        defer { TestServer.removeDirectory(directory) }
        let limits = try Limits(overrides: overrides)
        let connection = try SQLiteConnection(path: "\(directory)/tambour.db", mode: .readWrite)
        try StoreConnection.migrate(connection)
        let writer = try StoreWriter(
            StoreConnection(connection, limits: limits),
            userIDs: .rising()
        )
        let scheduler = StepScheduler()
        var environment = Environment.live
        environment.scheduler = scheduler
        let metrics = ServerMetrics(startedMs: 0)
        let core = EngineCore(
            writer: writer,
            clock: CommitClock(
                persistedLeaseEnd: try writer.persistedLeaseEnd(),
                leaseMs: limits.commitLeaseMs
            ),
            metrics: metrics,
            report: { _ in }
        )
        let lanes = Lanes()
        let router = EventRouter(
            codes: LoginCodeSource { _, _ in },
            environment: environment,
            metrics: ServerMetrics(startedMs: 0)
        )
        router.connect(lanes)
        let engine = Engine(
            core: core,
            limits: limits,
            environment: environment,
            router: router,
            queueTimes: metrics.queueTimes
        )
        scheduler.runAll()
        try body(Bench(engine: engine, metrics: metrics, scheduler: scheduler, lanes: lanes))
    }

    @Test("an account whose command many hear of waits until they have, others do not")
    func fanOut() throws {
        try withEngine { bench in
            bench.lanes.rest()
            let log = bench.log
            func post(_ name: String, for user: Int64, toldTo count: Int64) {
                bench.engine.post(
                    Command(for: .user(UserID(user))) { tx in
                        log.add(name, .zero)
                        let push = Push.notifTyping(
                            NotifTyping(chatID: ChatID(-1), userID: UserID(user), type: "TEXT")
                        )
                        tx.emit(.push(push, to: (1...count).map { UserID($0) }, except: nil))
                        return .done
                    }
                )
            }
            for number in 1...3 { post("a\(number)", for: 1, toldTo: 400) }
            for number in 1...3 { post("b\(number)", for: 2, toldTo: 3) }
            bench.scheduler.runAll()
            #expect(log.names == ["a1", "b1", "b2", "b3"])
            bench.lanes.delivered()
            bench.scheduler.runAll()
            post("b4", for: 2, toldTo: 3)
            bench.scheduler.runAll()
            #expect(log.names == ["a1", "b1", "b2", "b3", "a2", "b4"])
            // A stop does not wait for deliveries.
            bench.engine.whenIdle {}
            bench.scheduler.runAll()
            #expect(log.names.last == "a3")
        }
    }

    @Test(
        "commands of one account that leave something for later end one after the other",
        arguments: [1, 64]
    )
    func rests(batch: Int) throws {
        try withEngine(limits: ["maxBatchCommands": batch]) { bench in
            let log = bench.log
            func post(_ name: String, for user: Int64) {
                @Sendable func step(_ number: Int) -> Answer {
                    log.add("\(name)\(number)", .zero)
                    guard number < 3 else { return .done }
                    var answer = Answer.done
                    answer.rest = { _ in step(number + 1) }
                    return answer
                }
                bench.engine.post(
                    Command(for: .user(UserID(user))) { _ in
                        step(1)
                    } done: { _ in
                        log.add("\(name) ends", .zero)
                    }
                )
            }
            for name in ["a", "b", "c"] { post(name, for: 1) }
            post("x", for: 2)
            bench.engine.whenIdle {}
            bench.scheduler.runAll()
            let own = log.names.filter { !$0.hasPrefix("x") }
            let ends = own.filter { $0.hasSuffix("ends") }
            #expect(ends == ["a ends", "b ends", "c ends"])
            let steps = own.filter { !$0.hasSuffix("ends") }
            #expect(steps == ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"])
            #expect(log.names.filter { $0 == "x ends" }.count == 1)
        }
    }

    @Test(
        "what a command leaves for later runs before its account's next one, and others' in between"
    )
    func rest() throws {
        try withEngine(limits: ["maxBatchCommands": 1]) { bench in
            let log = bench.log
            @Sendable func step(_ number: Int) -> Answer {
                log.add("a\(number)", bench.scheduler.now)
                guard number < 3 else { return .done }
                var answer = Answer.done
                answer.rest = { _ in step(number + 1) }
                return answer
            }
            bench.engine.post(
                Command(for: .user(UserID(1))) { _ in
                    step(1)
                } done: { answer in
                    log.add(answer.rest == nil ? "answered" : "rest", .zero)
                }
            )
            bench.post("next", for: 1, taking: .zero)
            for _ in 0..<2 { bench.post("b", for: 2, taking: .zero) }
            bench.scheduler.runAll()
            #expect(log.names == ["a1", "b", "a2", "b", "a3", "answered", "next"])
        }
    }

    @Test("128 large commands of one account keep another one's send waiting for one of them")
    func largeCommands() throws {
        try withEngine { bench in
            let asked = Mutex(Duration.zero)
            for number in 0..<128 {
                bench.post("a\(number)", for: 1, taking: .milliseconds(10)) {
                    guard number == 20 else { return }
                    asked.withLock { $0 = bench.scheduler.now }
                    bench.post("b", for: 2, taking: .milliseconds(1))
                }
            }
            bench.scheduler.runAll()
            let names = bench.log.names
            #expect(names.filter { $0 != "b" } == (0..<128).map { "a\($0)" })
            // After `a20` posts `b`, at most one more command runs before `b`.
            let position = try #require(names.firstIndex(of: "b"))
            #expect(position <= 22)
            let start = try #require(bench.log.time(of: "b"))
            #expect(start - asked.withLock { $0 } <= .milliseconds(25))
            let waits = bench.metrics.queueTimes.histogram(.engine, isStranger: false)
            #expect(waits.count == 129)
        }
    }

    @Test("a batch of many accounts ends after its time")
    func longBatch() throws {
        try withEngine { bench in
            let asked = Mutex(Duration.zero)
            for user in Int64(1)...100 {
                bench.post("a\(user)", for: user, taking: .milliseconds(5)) {
                    guard user == 3 else { return }
                    asked.withLock { $0 = bench.scheduler.now }
                }
            }
            bench.scheduler.runAll()
            #expect(bench.metrics.commits.count == 20)
            #expect(bench.metrics.committedCommands.count == 100)
        }
    }

    @Test("small commands share a batch, up to its number of commands")
    func smallCommands() throws {
        try withEngine(limits: ["maxBatchCommands": 40]) { bench in
            for number in 0..<100 { bench.post("\(number)", for: 1, taking: .microseconds(10)) }
            bench.scheduler.runAll()
            #expect(bench.log.names == (0..<100).map { "\($0)" })
            #expect(bench.metrics.commits.count == 3)
        }
    }

    @Test("a command that fails runs again alone, and the others with it")
    func failure() throws {
        struct Broken: Error {}
        try withEngine { bench in
            bench.post("a", for: 1, taking: .microseconds(10))
            bench.post("bad", for: 2, taking: .microseconds(10)) { throw Broken() }
            bench.post("c", for: 3, taking: .microseconds(10))
            bench.scheduler.runAll()
            #expect(bench.log.names == ["a", "bad", "a", "bad", "c"])
            #expect(bench.log.refused == ["bad internal"])
            #expect(bench.metrics.rerunBatches.count == 1)
        }
    }

    @Test("being idle means that everything posted before has run")
    func idle() throws {
        try withEngine(limits: ["maxBatchCommands": 3]) { bench in
            for number in 0..<10 { bench.post("\(number)", for: 1, taking: .milliseconds(10)) }
            bench.engine.whenIdle { bench.log.add("idle", .zero) }
            bench.scheduler.runAll()
            #expect(bench.log.names == (0..<10).map { "\($0)" } + ["idle"])
        }
    }

    @Test("the smallest limits let one command a batch through")
    func smallest() throws {
        let limits = ["maxBatchCommands": 1, "maxBatchMs": 1, "maxBatchMsPerUser": 1]
        try withEngine(limits: limits) { bench in
            for number in 0..<10 { bench.post("\(number)", for: 1, taking: .milliseconds(1)) }
            bench.scheduler.runAll()
            #expect(bench.log.names.count == 10)
        }
    }
}
