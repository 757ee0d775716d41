import Foundation
import Synchronization
import TambourMessenger
import TambourProtocol
import TambourSQL
import TambourStore
import TambourTesting
import Testing

/// Tests that the commit clock never runs backwards, and that a login's `time` is less than the
/// clock of every later commit.
@Suite("Commit clock")
struct CommitClockTests {
    private static let isSoak = ProcessInfo.processInfo.environment["TAMBOUR_SOAK"] == "1"
    private static let leaseMs = 250

    @Test(
        "a time handed out is below every later commit, whatever the wall does, across restarts",
        arguments: UInt64(1)...20
    )
    func walls(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var wall: Int64 = 1_700_000_000_000
        var persistedLeaseEnd: Int64 = 0
        var clock = CommitClock(persistedLeaseEnd: 0, leaseMs: Self.leaseMs)
        var lastCommit: Int64 = 0
        var newestTime: Int64 = 0
        for step in 0..<5_000 {
            switch random.below(100) {
            case ..<40: break
            case ..<70: wall += 1
            case ..<80: wall += Int64(random.below(2 * Self.leaseMs))
            case ..<95: wall -= Int64(random.below(2 * Self.leaseMs))
            default: wall += random.chance(50) ? 3_600_000 : -3_600_000
            }
            switch random.below(10) {
            case ..<5:
                let stamp = clock.begin(wall: wall)
                let ct = stamp.ct
                #expect(ct >= lastCommit, "step \(step): the clock fell")
                #expect(ct > newestTime, "step \(step): a login has that time already")
                if random.chance(40) {
                    wall += Int64(random.below(3))
                    let time = clock.safeTime(wall: wall)
                    #expect(time < ct, "step \(step): the commit in flight is not safe yet")
                    newestTime = max(newestTime, time)
                }
                let isCommitted = random.chance(80)
                clock.end(committed: isCommitted)
                if isCommitted {
                    lastCommit = ct
                    persistedLeaseEnd = stamp.leaseEnd
                }
            case ..<9:
                newestTime = max(newestTime, clock.safeTime(wall: wall))
            default:
                clock = CommitClock(persistedLeaseEnd: persistedLeaseEnd, leaseMs: Self.leaseMs)
            }
        }
    }

    @Test("restarts in a row set the clock ahead by one lease, not by one each")
    func restarts() {
        let wall: Int64 = 1_700_000_000_000
        var leaseEnd: Int64 = 0
        for restart in 0..<100 {
            let clock = CommitClock(persistedLeaseEnd: leaseEnd, leaseMs: Self.leaseMs)
            leaseEnd = clock.begin(wall: wall).leaseEnd
            clock.end(committed: true)
            #expect(clock.drift(wall: wall) <= Int64(Self.leaseMs + restart))
        }
    }

    @Test("no commit at or below a login's time appears after its snapshot: ten thousand races")
    func races() throws {
        let race = try Race()
        defer { race.remove() }
        try race.run(logins: 10_000, commitsPerSecond: nil, duration: nil)
        #expect(race.missed() == 0)
        #expect(race.logins == 10_000)
        #expect(race.commits > 0)
    }

    @Test(
        "ten seconds at 5,000 commits a second: within 5 ms of the wall, nothing missed",
        .enabled(if: Self.isSoak)
    )
    func pace() throws {
        let race = try Race()
        defer { race.remove() }
        try race.run(logins: nil, commitsPerSecond: 5_000, duration: .seconds(10))
        print(
            "commit clock: \(race.commits) commits in 10 s, \(race.logins) logins, at most "
                + "\(race.farthestMs) ms from the wall"
        )
        #expect(race.missed() == 0)
        #expect(race.commits >= 45_000)
        #expect(race.logins >= 10_000)
        #expect(race.farthestMs <= 5)
    }
}

/// A race of two threads: one commits, the other logs in. Each login reads the time first and then
/// opens a snapshot.
///
/// Every commit creates an account, and each account gets a higher id. So the last account id in a
/// snapshot shows which commits the snapshot contains.
///
/// `@unchecked Sendable`: the test reads the results of the threads only after both threads have
/// ended; `isOver` is atomic.
private final class Race: @unchecked Sendable {
    private let directory: URL
    private let core: EngineCore
    private let clock: CommitClock
    private let reader: SQLiteConnection
    private let lastID: any SQLStatement
    private let isOver = Atomic(false)
    /// The clocks of the commits, in order. Each commit creates the account with the next id.
    private var clocks: [Int64] = []
    private var snapshots: [(time: Int64, lastID: Int64)] = []
    private(set) var farthestMs: Int64 = 0

    var commits: Int { clocks.count }
    var logins: Int { snapshots.count }

    init() throws {
        directory = try SyncMachine.scratchDirectory("race")
        let path = directory.appendingPathComponent("tambour.db").path
        let connection = try SQLiteConnection(path: path, mode: .readWrite)
        try connection.execute("PRAGMA synchronous = OFF")
        try StoreConnection.migrate(connection)
        let writer = try StoreWriter(
            StoreConnection(connection, limits: .standard),
            userIDs: .rising(from: 1)
        )
        clock = CommitClock(
            persistedLeaseEnd: try writer.persistedLeaseEnd(),
            leaseMs: Limits.standard.commitLeaseMs
        )
        core = EngineCore(
            writer: writer,
            clock: clock,
            metrics: ServerMetrics(startedMs: 0),
            report: { Issue.record("\($0)") }
        )
        reader = try SQLiteConnection(path: path, mode: .readOnly)
        lastID = try reader.prepare("SELECT max(id) FROM account")
    }

    func remove() {
        try? FileManager.default.removeItem(at: directory)
    }

    /// Runs until there are `logins` logins, or until `duration` is over.
    func run(logins: Int?, commitsPerSecond: Int?, duration: Duration?) throws {
        let ended = DispatchSemaphore(value: 0)
        let writing = Thread { [self] in
            let start = ContinuousClock.now
            while !isOver.load(ordering: .acquiring) {
                commit()
                if let duration, ContinuousClock.now - start >= duration { break }
                guard let commitsPerSecond else { continue }
                let due = start + .seconds(1) * clocks.count / commitsPerSecond
                while ContinuousClock.now < due { sched_yield() }
            }
            isOver.store(true, ordering: .releasing)
            ended.signal()
        }
        let logging = Thread { [self] in
            do {
                while !isOver.load(ordering: .acquiring), snapshots.count < logins ?? .max {
                    try login()
                }
            } catch {
                Issue.record(error)
            }
            if logins != nil { isOver.store(true, ordering: .releasing) }
            ended.signal()
        }
        writing.start()
        logging.start()
        ended.wait()
        ended.wait()
    }

    private func commit() {
        let wall = TambourMessenger.Environment.live.wallMs
        let phone = Int64(79_000_000_000 + clocks.count)
        let ct = Mutex<Int64>(0)
        let before = wall()
        _ = core.run(
            [
                Command { tx in
                    ct.withLock { $0 = tx.ct }
                    _ = try tx.createAccount(phone: phone, firstName: "A", lastName: nil)
                    return .done
                }
            ],
            wall: wall
        )
        let after = wall()
        let clock = ct.withLock { $0 }
        // The wall clock moves during the commit. The commit's clock may have any value between the
        // two readings of the wall clock.
        farthestMs = max(farthestMs, before - clock, clock - after)
        clocks.append(clock)
    }

    private func login() throws {
        let time = clock.safeTime(wall: TambourMessenger.Environment.live.wallMs())
        try reader.begin(.snapshot)
        defer { reader.rollback() }
        defer { lastID.reset() }
        guard try lastID.step() else { return }
        snapshots.append((time, lastID.isNull(0) ? 0 : lastID.int(0)))
    }

    /// Returns how many logins missed a commit. A login must contain every commit whose clock is at
    /// or below the login's time.
    func missed() -> Int {
        snapshots.count { time, lastID in
            lastID < clocks.count && clocks[Int(lastID)] <= time
        }
    }
}
