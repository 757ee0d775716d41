import TambourNet
import TambourQueues
import TambourSQL
import TambourTesting

/// One life of the server's process: its queues, which share one thread here, and its disk.
///
/// Work runs one item at a time, in an order drawn by the seed. At database calls, where a real
/// thread may be preempted, work of other queues may run in between.
///
/// `@unchecked Sendable`: everything happens on the thread that runs the simulation.
final class ServerLife: SimulatedScheduler, @unchecked Sendable {
    private struct Line {
        let queue: SerialQueue
        var waiting: [@Sendable () -> Void] = []
        var head = 0
        var isPlanned = false

        var isEmpty: Bool { head == waiting.count }
    }

    /// Whether this life ends just before or just after the next commit.
    enum Death {
        case beforeCommit
        case afterCommit
    }

    private let loop: EventLoop
    private var lines: [Line] = []
    private var places: [ObjectIdentifier: Int] = [:]
    private var running: [Int] = []
    private var delayed: [Int: @Sendable () -> Void] = [:]
    private var lastTicket = 0
    private(set) var isDead = false
    private(set) var commits = 0
    var death: Death?
    /// The probability, in thousandths, that other queues run at a preemption point.
    var restlessness = 120
    /// Called when a crash hits a commit. A crash before the commit loses the transaction; a crash
    /// after it loses only the replies.
    var died: (Death) -> Void = { _ in }
    /// Called after work that may have written to sockets.
    var worked: () -> Void = {}
    var committed: () -> Void = {}

    init(loop: EventLoop) { self.loop = loop }

    // MARK: - Threads

    var now: Duration { .microseconds(loop.nowUs) }

    func isOn(_ queue: SerialQueue) -> Bool {
        running.last.map { lines[$0].queue === queue } ?? false
    }

    func run(on queue: SerialQueue, after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        guard !isDead else { return }
        let place = place(of: queue)
        if delay <= .zero { return enqueue(work, place) }
        let (seconds, attoseconds) = delay.components
        // Store the work here, so that it is lost when the process ends.
        let ticket = lastTicket + 1
        lastTicket = ticket
        delayed[ticket] = work
        loop.after(seconds * 1_000_000 + attoseconds / 1_000_000_000_000) { [weak self] in
            guard let self, let work = delayed.removeValue(forKey: ticket) else { return }
            enqueue(work, place)
        }
    }

    private func place(of queue: SerialQueue) -> Int {
        if let known = places[ObjectIdentifier(queue)] { return known }
        lines.append(Line(queue: queue))
        places[ObjectIdentifier(queue)] = lines.count - 1
        return lines.count - 1
    }

    private func enqueue(_ work: @escaping @Sendable () -> Void, _ place: Int) {
        guard !isDead else { return }
        lines[place].waiting.append(work)
        plan(place)
    }

    private func plan(_ place: Int) {
        guard !lines[place].isPlanned, !lines[place].isEmpty else { return }
        lines[place].isPlanned = true
        let pause =
            loop.random.chance(20, in: 1000)
            ? loop.random.from(500, to: 20_000) : loop.random.from(1, to: 150)
        loop.after(pause) { [weak self] in
            guard let self, !isDead else { return }
            lines[place].isPlanned = false
            if !running.contains(place), !lines[place].isEmpty { step(place) }
            plan(place)
        }
    }

    private func step(_ place: Int) {
        let work = lines[place].waiting[lines[place].head]
        lines[place].head += 1
        if lines[place].isEmpty {
            lines[place].waiting.removeAll(keepingCapacity: true)
            lines[place].head = 0
        }
        loop.hash.add(place)
        running.append(place)
        work()
        running.removeLast()
        worked()
    }

    /// Lets work of other queues run now, with some probability.
    private func yieldThread() {
        guard !isDead, !running.isEmpty, loop.random.chance(restlessness, in: 1000) else { return }
        for _ in 0...loop.random.below(4) {
            let others = lines.indices.filter { !running.contains($0) && !lines[$0].isEmpty }
            guard !others.isEmpty, !isDead else { return }
            step(others[loop.random.below(others.count)])
        }
    }

    /// Runs `body` as if it ran on a queue.
    func perform(on queue: SerialQueue, _ body: () -> Void) {
        running.append(place(of: queue))
        body()
        running.removeLast()
    }

    /// Ends the process: all work that it has begun or queued stops.
    func die() {
        isDead = true
        delayed = [:]
        for place in lines.indices {
            lines[place].waiting = []
            lines[place].head = 0
        }
    }

    /// Closes the descriptors that the kernel closes when a process ends. The queues run nothing
    /// else.
    func bury(_ lanes: [Lane]) {
        isDead = false
        for lane in lanes {
            lane.stop()
            let place = place(of: lane.queue)
            // Output of an unfinished round is lost with the process.
            while !lines[place].isEmpty {
                let work = lines[place].waiting[lines[place].head]
                lines[place].head += 1
                running.append(place)
                work()
                running.removeLast()
            }
        }
        die()
    }

    // MARK: - Disk

    func disk(_ connection: any SQLConnection, _ mode: SQLMode) -> any SQLConnection {
        SimulatedDisk(connection, writes: mode == .readWrite, life: self)
    }

    /// A connection whose process may be preempted or die at the beginning or end of a transaction.
    private final class SimulatedDisk: SQLConnection {
        private let base: any SQLConnection
        private let writes: Bool
        private unowned let life: ServerLife

        init(_ base: any SQLConnection, writes: Bool, life: ServerLife) {
            self.base = base
            self.writes = writes
            self.life = life
        }

        var dialect: SQLDialect { base.dialect }
        var isInTransaction: Bool { base.isInTransaction }
        var statementCount: Int { base.statementCount }
        var rowsStepped: Int { base.rowsStepped }

        func prepare(_ sql: String) throws(SQLError) -> any SQLStatement { try base.prepare(sql) }
        func execute(_ sql: String) throws(SQLError) { try base.execute(sql) }
        func checkpoint() throws(SQLError) { try base.checkpoint() }

        private func requireLife() throws(SQLError) {
            if life.isDead { throw SQLError(kind: .io, message: "the process is gone") }
        }

        func begin(_ mode: SQLTransactionMode) throws(SQLError) {
            try requireLife()
            life.yieldThread()
            try requireLife()
            try base.begin(mode)
        }

        func commit() throws(SQLError) {
            if writes, life.death == .beforeCommit {
                life.die()
                life.died(.beforeCommit)
            }
            try requireLife()
            life.yieldThread()
            try requireLife()
            try base.commit()
            guard writes else { return }
            life.commits += 1
            life.loop.hash.add("commit")
            life.committed()
            if life.death == .afterCommit {
                life.die()
                life.died(.afterCommit)
            }
            life.yieldThread()
        }

        func rollback() {
            base.rollback()
            // Other transactions may commit between a reader's snapshot and its answer.
            if !writes { life.yieldThread() }
        }
    }
}
