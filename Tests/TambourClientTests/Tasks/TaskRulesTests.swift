import TambourClient
import Testing

/// Shows each rule in its smallest case.
@Suite("The rules of persisted tasks, one by one")
struct TaskRulesTests {
    private var desk = TaskDesk()

    // MARK: T1, T2: rows

    @Test("T1: queueing tells the rows to write, in an order that foreign keys bear")
    mutating func rowsOfNewTasks() throws {
        let tasks = [
            NewTask(id: TaskID(7), kind: "a", codecVersion: 1, payload: [1], opKey: "x"),
            NewTask(
                id: TaskID(3),
                kind: "b",
                codecVersion: 2,
                payload: [2],
                opKey: "y",
                lane: "chat:5",
                deadlineMs: 99,
                dependencies: [TaskID(7): .needs]
            ),
        ]
        let changes = try desk.scheduler.insert(tasks, nowMs: 42)

        let first = try #require(desk.scheduler[TaskID(7)])
        let second = try #require(desk.scheduler[TaskID(3)])
        let edge = TaskDependency(task: TaskID(3), on: TaskID(7), mode: .needs)
        #expect(changes == [.insert(second), .insert(first), .insertDependency(edge)])
        #expect(first.state == .ready)
        #expect(second.state == .blocked)
        #expect(second.payload == [2] && second.codecVersion == 2 && second.lane == "chat:5")
        #expect(second.createdAtMs == 42 && second.deadlineMs == 99 && second.opKey == "y")
        #expect(first.place < second.place)
    }

    @Test("T1: a transaction that failed is forgotten with the value that it changed")
    mutating func lostTransaction() throws {
        let before = desk.scheduler
        try desk.add()
        #expect(desk.scheduler != before)
        desk.scheduler = before
        #expect(desk.scheduler.tasks.isEmpty)
    }

    @Test("T2: what is done leaves in the same change that frees what waited for it")
    mutating func completion() throws {
        let first = try desk.add()
        let second = try desk.add([first: .needs])
        let run = try desk.start(first)
        let changes = try desk.scheduler.completed(run, output: [9])
        let done = try #require(desk.scheduler[first])
        let freed = try #require(desk.scheduler[second])
        #expect(changes == [.update(done), .update(freed)])
        #expect(done.state == .done && done.lease == nil && freed.state == .ready)
        #expect(desk.scheduler.inputs(of: second) == [first: [9]])

        let last = try desk.scheduler.completed(desk.start(second))
        let edge = TaskDependency(task: second, on: first, mode: .needs)
        #expect(last == [.removeDependency(edge), .remove(first), .remove(second)])
        #expect(desk.scheduler == TaskScheduler())
    }

    @Test("T2: a run that is over has no result")
    mutating func lateResult() throws {
        let id = try desk.add()
        let run = try desk.start(id)
        desk.pass(ms: 30_000)
        #expect(desk.state(id) == .ready)
        let again = try desk.start(id)
        let before = desk.scheduler
        #expect(throws: TaskError.runIsOver(run)) { try desk.complete(run) }
        #expect(throws: TaskError.runIsOver(run)) { try desk.fail(run, .never) }
        #expect(throws: TaskError.runIsOver(run)) { try desk.expire(run) }
        #expect(throws: TaskError.runIsOver(run)) { try desk.scheduler.released(run) }
        #expect(throws: TaskError.runIsOver(run)) {
            try desk.scheduler.extend(run, leaseUntilMs: .max)
        }
        #expect(desk.scheduler == before)
        try desk.complete(again)
        #expect(throws: TaskError.runIsOver(again)) { try desk.complete(again) }
    }

    // MARK: T3: leases

    @Test("T3: a task whose process died is ready when its lease ends, and no attempt is counted")
    mutating func deadProcess() throws {
        let id = try desk.add()
        try desk.start(id, leaseMs: 1000)
        #expect(desk.scheduler.nextWakeMs(nowMs: desk.nowMs) == desk.nowMs + 1000)
        #expect(desk.scheduler.recover(nowMs: desk.nowMs + 999).isEmpty)
        let changes = desk.scheduler.recover(nowMs: desk.nowMs + 1000)
        let record = try #require(desk.scheduler[id])
        #expect(changes == [.update(record)])
        #expect(record.state == .ready && record.attempts == 0 && record.lease == nil)
    }

    @Test("T3: the lease of a process that is known to be dead need not be waited for")
    mutating func knownDeath() throws {
        let ids = [try desk.add(), try desk.add()]
        try desk.start(ids[0], owner: "A")
        try desk.start(ids[1], owner: "B")
        _ = desk.scheduler.recover(nowMs: desk.nowMs) { $0 == "A" }
        #expect(desk.state(ids[0]) == .ready)
        #expect(desk.state(ids[1]) == .running)
    }

    @Test("T3: a lease that is prolonged holds, and one taken by another is told apart")
    mutating func prolongedLease() throws {
        let id = try desk.add()
        let run = try desk.start(id, owner: "A", leaseMs: 1000)
        _ = try desk.scheduler.extend(run, leaseUntilMs: desk.nowMs + 5000)
        desk.pass(ms: 4999)
        #expect(desk.state(id) == .running)
        desk.pass(ms: 1)
        let other = try desk.start(id, owner: "B")
        #expect(other.number == run.number + 1)
        #expect(throws: TaskError.runIsOver(run)) {
            try desk.scheduler.extend(run, leaseUntilMs: .max)
        }
    }

    @Test("T3: how far a run came is there for the next, and a run that is over says nothing")
    mutating func progress() throws {
        let id = try desk.add()
        let run = try desk.start(id, leaseMs: 1000)
        let untilMs = desk.nowMs + 5000
        let changes = try desk.scheduler.progressed(run, payload: [4, 2], leaseUntilMs: untilMs)
        let record = try #require(desk.scheduler[id])
        #expect(changes == [.update(record)])
        #expect(record.payload == [4, 2] && record.lease?.untilMs == untilMs)
        #expect(record.run == run && record.attempts == 0)
        desk.pass(ms: 5000)
        #expect(desk.scheduler[id]?.payload == [4, 2])
        #expect(throws: TaskError.runIsOver(run)) {
            try desk.scheduler.progressed(run, payload: [9], leaseUntilMs: .max)
        }
        #expect(desk.scheduler[id]?.payload == [4, 2])
    }

    @Test("T3: after the clock went back a lease does not hold for longer than one may be")
    mutating func clockBack() throws {
        let id = try desk.add()
        try desk.start(id, leaseMs: 30_000)
        desk.pass(ms: -TaskScheduler.maxLeaseMs)
        #expect(desk.state(id) == .ready)
    }

    @Test("T3: a task that is given back is ready, and no attempt is counted")
    mutating func givenBack() throws {
        let id = try desk.add()
        _ = try desk.scheduler.released(desk.start(id))
        #expect(desk.state(id) == .ready)
        #expect(desk.scheduler[id]?.attempts == 0)
    }

    // MARK: T4, T12: lanes and slots

    @Test("T4: a lane keeps its order; a waiting head holds it, a failed one does not")
    mutating func lane() throws {
        let first = try desk.add(lane: "chat:1")
        let second = try desk.add(lane: "chat:1")
        let third = try desk.add(lane: "chat:1")
        #expect(desk.startable() == [first])
        #expect(throws: TaskError.notStartable(second)) { try desk.start(second) }

        let run = try desk.start(first)
        #expect(desk.startable().isEmpty)
        try desk.fail(run, .later)
        #expect(desk.state(first) == .waiting)
        #expect(desk.startable().isEmpty)

        desk.pass(ms: 1000)
        try desk.fail(desk.start(first), .never)
        #expect(desk.state(first) == .failed(.rejected))
        #expect(desk.startable() == [second])
        try desk.complete(desk.start(second))
        #expect(desk.startable() == [third])
        #expect(desk.scheduler.tasks(inLane: "chat:1").map(\.id) == [first, third])
    }

    @Test("T4: a head that is blocked, or whose conditions do not hold, is not overtaken")
    mutating func headThatCannotStart() throws {
        let upload = try desk.add()
        try desk.add(lane: "a", [upload: .needs])
        try desk.add(lane: "a")
        let picky = try desk.add(lane: "b", requires: .unmetered)
        let next = try desk.add(lane: "b")
        #expect(desk.startable(.connected) == [upload])
        #expect(desk.startable([.connected, .unmetered]) == [upload, picky])
        try desk.complete(desk.start(picky))
        #expect(desk.startable() == [upload, next])
    }

    @Test("T4: a retried task stands in its old place, but not beside the one that runs")
    mutating func retryInLane() throws {
        let first = try desk.add(lane: "a")
        let second = try desk.add(lane: "a")
        let third = try desk.add(lane: "a")
        try desk.fail(desk.start(first), .never)
        let run = try desk.start(second)
        _ = try desk.scheduler.retry(first)
        #expect(desk.startable().isEmpty)
        try desk.complete(run)
        #expect(desk.startable() == [first])
        try desk.complete(desk.start(first))
        #expect(desk.startable() == [third])
    }

    @Test("T12: four tasks run at once, the oldest first")
    mutating func slots() throws {
        var ids: [TaskID] = []
        for number in 0..<6 { ids.append(try desk.add(lane: number < 3 ? nil : "lane\(number)")) }
        #expect(desk.startable() == Array(ids[0..<4]))
        for id in ids[1..<5] { try desk.start(id) }
        #expect(desk.startable().isEmpty)
        #expect(throws: TaskError.notStartable(ids[0])) { try desk.start(ids[0]) }
        try desk.complete(#require(desk.scheduler[ids[1]]?.run))
        #expect(desk.startable() == [ids[0]])
    }

    // MARK: T5: dependencies

    @Test("T5: what needs a failed task fails with it, down to the last, and names where it began")
    mutating func failureSpreads() throws {
        let first = try desk.add()
        let second = try desk.add([first: .needs])
        let third = try desk.add([second: .refresh])
        try desk.fail(desk.start(first), .never)
        #expect(desk.state(second) == .failed(.dependency(first)))
        #expect(desk.state(third) == .failed(.dependency(first)))
        #expect(desk.scheduler[third]?.lastError == "no")
        let late = try desk.add([third: .needs])
        #expect(desk.state(late) == .failed(.dependency(first)))
    }

    @Test("T5: `after` is content with any end", arguments: 0..<3)
    mutating func after(end: Int) throws {
        let first = try desk.add()
        let second = try desk.add([first: .after])
        #expect(desk.state(second) == .blocked)
        switch end {
        case 0: try desk.complete(desk.start(first))
        case 1: try desk.fail(desk.start(first), .never)
        default: _ = desk.scheduler.cancel([first])
        }
        #expect(desk.state(second) == .ready)
    }

    @Test("T5: an expired input is made again, under a key of its own, before the task runs again")
    mutating func refresh() throws {
        let upload = try desk.add()
        let send = try desk.add([upload: .refresh])
        try desk.complete(desk.start(upload), output: [1])
        try desk.expire(desk.start(send))
        #expect(desk.state(upload) == .ready)
        #expect(desk.state(send) == .blocked)
        #expect(desk.scheduler[upload]?.requestKey == "op1~1")
        #expect(desk.scheduler[send]?.requestKey == "op2")
        try desk.complete(desk.start(upload), output: [2])
        #expect(desk.scheduler.inputs(of: send) == [upload: [2]])
        try desk.complete(desk.start(send))
        #expect(desk.scheduler.tasks.isEmpty)
    }

    @Test("T5: an input that expires at once is made again after a pause that grows")
    mutating func refreshBackoff() throws {
        let upload = try desk.add()
        let send = try desk.add([upload: .refresh])
        for pauseMs: Int64 in [0, 500, 1000] {
            try desk.complete(desk.start(upload), output: [1])
            try desk.expire(desk.start(send))
            if pauseMs > 0 {
                #expect(desk.scheduler[upload]?.nextAtMs == desk.nowMs + pauseMs)
                desk.pass(ms: pauseMs)
            }
        }
        #expect(desk.scheduler[send]?.attempts == 3)
    }

    @Test("T5: two tasks that share an expired input have it made once")
    mutating func sharedRefresh() throws {
        let upload = try desk.add()
        let sends = [try desk.add([upload: .refresh]), try desk.add([upload: .refresh])]
        try desk.complete(desk.start(upload), output: [1])
        let runs = [try desk.start(sends[0]), try desk.start(sends[1])]
        try desk.expire(runs[0])
        try desk.complete(desk.start(upload), output: [2])
        try desk.expire(runs[1])
        #expect(desk.state(upload) == .done)
        #expect(desk.state(sends[1]) == .ready)
        #expect(desk.scheduler[upload]?.round == 1)
    }

    @Test("T5: of several inputs only the one that expired is made again")
    mutating func refreshOfOne() throws {
        let uploads = [try desk.add(), try desk.add()]
        let send = try desk.add([uploads[0]: .refresh, uploads[1]: .refresh])
        for upload in uploads { try desk.complete(desk.start(upload), output: [1]) }
        try desk.expire(desk.start(send), [uploads[1]])
        #expect(desk.state(uploads[0]) == .done)
        #expect(desk.state(uploads[1]) == .ready)
    }

    @Test("T5: an expired input that nothing can make again is a failure")
    mutating func nothingToRefresh() throws {
        let upload = try desk.add()
        let send = try desk.add([upload: .needs])
        try desk.complete(desk.start(upload))
        try desk.expire(desk.start(send))
        #expect(desk.state(send) == .failed(.rejected))
        #expect(desk.state(upload) == .done)
    }

    @Test("T5: a new output wakes a task that waits with the old one")
    mutating func newInputWakes() throws {
        let upload = try desk.add()
        let sends = try (0..<3).map { _ in try desk.add([upload: .refresh]) }
        try desk.complete(desk.start(upload), output: [1])
        try desk.fail(desk.start(sends[0]), .later)
        try desk.fail(desk.start(sends[1]), .later, retryAfterMs: 60_000)
        try desk.expire(desk.start(sends[2]))
        try desk.complete(desk.start(upload), output: [2])
        #expect(desk.state(sends[0]) == .ready)
        // The server asked for this pause, and a new input does not shorten it.
        #expect(desk.state(sends[1]) == .waiting)
    }

    // MARK: T6: the graph

    @Test("T6: tasks that would wait for each other are refused together")
    mutating func cycle() {
        var tasks = ["a", "b", "c"].enumerated().map { index, key in
            NewTask(
                id: TaskID(Int64(index)),
                kind: "k",
                codecVersion: 1,
                payload: [],
                opKey: key,
                dependencies: [TaskID(Int64((index + 1) % 3)): .after]
            )
        }
        #expect(throws: TaskError.self) { try desk.scheduler.insert(tasks, nowMs: 0) }
        #expect(desk.scheduler == TaskScheduler())
        tasks[2].dependencies = [:]
        #expect(throws: Never.self) { try desk.scheduler.insert(tasks, nowMs: 0) }
        #expect(desk.startable() == [TaskID(2)])
    }

    @Test("T6: the order of a lane counts: a task cannot need one behind it")
    mutating func cycleThroughLane() {
        var tasks = [TaskID(1), TaskID(2)].map { id in
            NewTask(
                id: id,
                kind: "k",
                codecVersion: 1,
                payload: [],
                opKey: "\(id)",
                lane: "a"
            )
        }
        tasks[0].dependencies = [TaskID(2): .needs]
        #expect(throws: TaskError.cycle(TaskID(1))) { try desk.scheduler.insert(tasks, nowMs: 0) }
    }

    @Test("T6: unknown dependencies, ids and keys that are taken are refused")
    mutating func refusals() throws {
        let first = try desk.add()
        #expect(throws: TaskError.unknownDependency(TaskID(99))) {
            try desk.add([TaskID(99): .needs])
        }
        var task = NewTask(id: first, kind: "k", codecVersion: 1, payload: [], opKey: "new")
        #expect(throws: TaskError.duplicateID(first)) {
            try desk.scheduler.insert([task], nowMs: 0)
        }
        task.id = TaskID(50)
        task.opKey = "op1"
        #expect(throws: TaskError.duplicateOpKey(first)) {
            try desk.scheduler.insert([task], nowMs: 0)
        }
        #expect(desk.scheduler.tasks.map(\.id) == [first])
    }

    // MARK: T7: retries

    @Test("T7: `later` pauses twice as long each time, up to the cap, and counts")
    mutating func backoff() throws {
        let id = try desk.add()
        // The random number is 0, so each pause is half of the full pause.
        let pausesMs: [Int64] = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000]
        for pauseMs in pausesMs + [150_000] {
            try desk.fail(desk.start(id), .later)
            #expect(desk.scheduler[id]?.nextAtMs == desk.nowMs + pauseMs)
            #expect(desk.scheduler.nextWakeMs(nowMs: desk.nowMs) == desk.nowMs + pauseMs)
            _ = desk.scheduler.wake([.connected, .loggedIn, .unmetered])
            #expect(desk.state(id) == .waiting)
            desk.pass(ms: pauseMs)
            #expect(desk.state(id) == .ready)
        }
        #expect(desk.scheduler[id]?.attempts == 10)
    }

    @Test("T7: the pause is spread over the upper half", arguments: [0, 1, 8, 9, 10, 60, .max])
    func spread(attempts: Int) {
        let full = attempts < 9 ? Int64(1000) << attempts : 300_000
        #expect(Backoff.delayMs(attempts: attempts, random: 0) == full / 2)
        #expect(Backoff.delayMs(attempts: attempts, random: .max) == full)
        let middle = Backoff.delayMs(attempts: attempts, random: 1 << 63)
        #expect(abs(middle - full * 3 / 4) <= 1)
    }

    @Test(
        "T7: the pause the server asks for wins, within a day",
        arguments: [
            (0, 0), (700, 700), (3_600_000, 3_600_000), (.max, 86_400_000), (-9, 0),
        ] as [(Int64, Int64)]
    )
    mutating func retryAfter(asked: Int64, pauseMs: Int64) throws {
        let id = try desk.add()
        try desk.fail(desk.start(id), .later, retryAfterMs: asked)
        #expect(desk.scheduler[id]?.nextAtMs == desk.nowMs + pauseMs)
        desk.pass(ms: pauseMs)
        #expect(desk.state(id) == .ready)
    }

    @Test("T7: a lost network is no attempt; the next connection or a pause ends the wait")
    mutating func networkLost() throws {
        let id = try desk.add()
        try desk.fail(desk.start(id), .networkLost)
        _ = desk.scheduler.wake([.loggedIn, .unmetered])
        #expect(desk.state(id) == .waiting)
        _ = desk.scheduler.wake(.connected)
        #expect(desk.state(id) == .ready)
        try desk.fail(desk.start(id), .networkLost)
        desk.pass(ms: 500)
        #expect(desk.state(id) == .ready)
        #expect(desk.scheduler[id]?.attempts == 0)
    }

    @Test(
        "T7: a task waits for the login, or for a network that counts no bytes",
        arguments: [(RetryClass.afterLogin, TaskConditions.loggedIn), (.metered, .unmetered)]
    )
    mutating func events(retry: RetryClass, event: TaskConditions) throws {
        let id = try desk.add()
        try desk.fail(desk.start(id), retry)
        #expect(desk.scheduler.nextWakeMs(nowMs: desk.nowMs) == nil)
        _ = desk.scheduler.wake(TaskConditions(rawValue: 7).subtracting(event))
        desk.pass(ms: 1 << 40)
        #expect(desk.state(id) == .waiting)
        _ = desk.scheduler.wake(event)
        #expect(desk.state(id) == .ready)
    }

    @Test("T7: after the clock went back a task does not wait longer than a pause takes")
    mutating func waitAfterClockBack() throws {
        let id = try desk.add()
        try desk.fail(desk.start(id), .later)
        desk.pass(ms: -Backoff.capMs)
        #expect(desk.state(id) == .ready)
    }

    @Test("T7: after the clock went back a server that asked for a pause gets a day at most")
    mutating func askedWaitAfterClockBack() throws {
        let id = try desk.add()
        try desk.fail(desk.start(id), .later, retryAfterMs: 5000)
        desk.pass(ms: -Backoff.capMs)
        #expect(desk.state(id) == .waiting)
        desk.pass(ms: Backoff.capMs - TaskScheduler.maxWaitMs)
        #expect(desk.state(id) == .ready)
    }

    // MARK: T8: deadlines

    @Test("T8: what is not done in time fails and keeps its payload; by hand it can be tried again")
    mutating func deadline() throws {
        let id = try desk.add(deadlineInMs: 5000)
        let next = try desk.add([id: .needs])
        try desk.fail(desk.start(id), .afterLogin)
        #expect(desk.scheduler.nextWakeMs(nowMs: desk.nowMs) == desk.nowMs + 5000)
        desk.pass(ms: 4999)
        #expect(desk.state(id) == .waiting)
        desk.pass(ms: 1)
        #expect(desk.state(id) == .failed(.deadline))
        #expect(desk.state(next) == .failed(.dependency(id)))
        #expect(desk.scheduler[id]?.payload == [1])

        _ = try desk.scheduler.retry(id, deadlineMs: desk.nowMs + 10)
        #expect(desk.state(id) == .ready)
        #expect(desk.state(next) == .blocked)
        #expect(desk.scheduler[id]?.attempts == 0)
        #expect(desk.scheduler[id]?.requestKey == "op1")
    }

    @Test("T8: a late task is not started, a running one is left to its reply")
    mutating func lateTask() throws {
        let running = try desk.add(deadlineInMs: 10)
        let ready = try desk.add(deadlineInMs: 10)
        let run = try desk.start(running)
        desk.nowMs += 10
        #expect(desk.startable().isEmpty)
        _ = desk.scheduler.advance(nowMs: desk.nowMs)
        #expect(desk.state(ready) == .failed(.deadline))
        #expect(desk.state(running) == .running)
        try desk.fail(run, .networkLost)
        #expect(desk.state(running) == .failed(.deadline))
    }

    @Test("T8: a retry brings back what the task needs, and fails again for another failed need")
    mutating func retryOfChain() throws {
        let first = try desk.add()
        let other = try desk.add()
        let second = try desk.add([first: .needs, other: .needs])
        try desk.fail(desk.start(first), .never)
        try desk.fail(desk.start(other), .never)
        #expect(desk.state(second) == .failed(.dependency(first)))
        _ = try desk.scheduler.retry(first)
        #expect(desk.state(second) == .failed(.dependency(other)))
        _ = try desk.scheduler.retry(second)
        #expect(desk.state(other) == .ready)
        #expect(desk.state(second) == .blocked)
        #expect(throws: TaskError.notFailed(first)) { try desk.scheduler.retry(first) }
    }

    @Test("T8: a failed task goes only by hand, with what needs it")
    mutating func discard() throws {
        let resize = try desk.add()
        let upload = try desk.add([resize: .needs])
        let send = try desk.add([upload: .refresh])
        let note = try desk.add([upload: .after])
        try desk.complete(desk.start(resize))
        #expect(throws: TaskError.notFailed(upload)) { try desk.scheduler.discard(upload) }
        try desk.fail(desk.start(upload), .never)
        _ = try desk.scheduler.discard(upload)
        #expect(desk.state(send) == nil)
        #expect(desk.scheduler.tasks.map(\.id) == [note])
    }

    @Test("T8: a failed task that another still needs cannot be discarded")
    mutating func discardOfNeeded() throws {
        let upload = try desk.add()
        let sends = [try desk.add([upload: .refresh]), try desk.add([upload: .refresh])]
        try desk.complete(desk.start(upload), output: [1])
        let run = try desk.start(sends[0])
        try desk.expire(desk.start(sends[1]))
        try desk.fail(desk.start(upload), .never)
        #expect(throws: TaskError.stillNeeded(by: sends[0])) { try desk.scheduler.discard(upload) }
        try desk.complete(run)
        _ = try desk.scheduler.discard(upload)
        #expect(desk.scheduler.tasks.isEmpty)
    }

    // MARK: T9, T11: cancelling

    @Test("T9: queued tasks are cancelled at once, with what needs them")
    mutating func cancelQueued() throws {
        let ready = try desk.add()
        let blocked = try desk.add([ready: .needs])
        let waiting = try desk.add()
        try desk.fail(desk.start(waiting), .later)
        let changes = desk.scheduler.cancel([ready, waiting])
        let edge = TaskDependency(task: blocked, on: ready, mode: .needs)
        #expect(
            changes == [
                .removeDependency(edge), .remove(ready), .remove(blocked), .remove(waiting),
            ]
        )
        let none = desk.scheduler.cancel([ready, TaskID(99)])
        #expect(none.isEmpty)
    }

    @Test("T9: of a running task the reply decides: done is done, anything else is cancelled")
    mutating func cancelRunning() throws {
        let done = try desk.add()
        let failed = try desk.add()
        let lost = try desk.add()
        let after = try desk.add([done: .needs])
        let runs = try [done, failed, lost].map { try desk.start($0) }
        _ = desk.scheduler.cancel([done, failed, lost])
        for run in runs { #expect(desk.scheduler[run.task]?.isCancelRequested == true) }
        try desk.complete(runs[0])
        #expect(desk.state(after) == .ready)
        try desk.fail(runs[1], .later)
        #expect(desk.state(failed) == nil)
        desk.pass(ms: 30_000)
        #expect(desk.state(lost) == nil)
    }

    @Test("T9: a task whose input expired after it was cancelled does not have it made again")
    mutating func cancelBeforeRefresh() throws {
        let upload = try desk.add()
        let send = try desk.add([upload: .refresh])
        try desk.complete(desk.start(upload))
        let run = try desk.start(send)
        _ = desk.scheduler.cancel([send])
        try desk.expire(run)
        #expect(desk.scheduler.tasks.isEmpty)
    }

    @Test("T11: a logout leaves nothing but what runs, marked, until its reply")
    mutating func logout() throws {
        let failed = try desk.add()
        try desk.fail(desk.start(failed), .never)
        let running = try desk.add()
        let run = try desk.start(running)
        try desk.add(lane: "a", [running: .after])
        try desk.add(lane: "a")
        _ = desk.scheduler.cancelAll()
        #expect(desk.scheduler.tasks.map(\.id) == [running])
        #expect(desk.scheduler[running]?.isCancelRequested == true)
        try desk.fail(run, .networkLost)
        #expect(desk.scheduler.tasks.isEmpty)
    }

    // MARK: T10: other versions

    @Test("T10: an unknown task is parked with all it holds, and comes back when it is known")
    mutating func unknownKind() throws {
        let poll = try desk.add(lane: "a", kind: "poll")
        let next = try desk.add(lane: "a")
        let vote = try desk.add([poll: .needs])
        _ = desk.scheduler.review { $0.kind == "poll" ? .unknown : .known }
        #expect(desk.state(poll) == .failed(.unknown))
        #expect(desk.scheduler[poll]?.payload == [1])
        #expect(desk.state(vote) == .failed(.dependency(poll)))
        #expect(desk.startable() == [next])

        _ = desk.scheduler.review { _ in .known }
        #expect(desk.state(vote) == .blocked)
        #expect(desk.startable() == [poll])
    }

    @Test("T10: a payload in an old layout is rewritten, one that cannot be read is parked")
    mutating func codecs() throws {
        let id = try desk.add()
        let failed = try desk.add()
        try desk.fail(desk.start(failed), .unreadable)
        #expect(desk.state(failed) == .failed(.unknown))
        _ = desk.scheduler.review { .migrated(codecVersion: 2, payload: $0.payload + [0]) }
        #expect(desk.scheduler[id]?.codecVersion == 2)
        #expect(desk.scheduler[id]?.payload == [1, 0])
        #expect(desk.state(failed) == .ready)
        #expect(desk.scheduler[failed]?.payload == [2, 0])
    }

    @Test("T10: rows that do not fit together are survived")
    mutating func oddRows() throws {
        let first = try desk.add()
        let second = try desk.add([first: .needs])
        try desk.start(first)
        var running = try #require(desk.scheduler[first])
        let blocked = try #require(desk.scheduler[second])
        running.lease = nil
        let dangling = TaskDependency(task: second, on: TaskID(99), mode: .needs)
        desk.scheduler = TaskScheduler(records: [running, blocked], dependencies: [dangling])
        _ = desk.scheduler.recover(nowMs: desk.nowMs)
        _ = desk.scheduler.review { _ in .known }
        #expect(desk.startable() == [first, second])
    }

    @Test(
        "T10: states are stored as texts, and a text of a later version parks the task",
        arguments: [
            .blocked, .ready, .running, .waiting, .done, .cancelled, .failed(.rejected),
            .failed(.deadline), .failed(.unknown), .failed(.dependency(TaskID(-7))),
        ] as [TaskState]
    )
    func storedStates(state: TaskState) {
        #expect(TaskState(storedText: state.storedText) == state)
        #expect(TaskState(storedText: state.storedText + "!") == .failed(.unknown))
    }

    // MARK: Queries of a user interface

    @Test("queue, lanes and operations can be looked up")
    mutating func queries() throws {
        let resize = try desk.add()
        let upload = try desk.add([resize: .needs])
        let send = try desk.add(lane: "chat:1", [upload: .refresh])
        try desk.add(lane: "chat:1", [send: .after])
        #expect(desk.scheduler.queueLength == 4)
        #expect(desk.scheduler.needed(for: send) == [resize, upload])
        #expect(desk.scheduler.task(opKey: "op3")?.id == send)
        #expect(desk.scheduler.task(opKey: "op9") == nil)
        #expect(desk.scheduler.tasks(inLane: "chat:1").map(\.opKey) == ["op3", "op4"])
        try desk.complete(desk.start(resize))
        #expect(desk.scheduler.queueLength == 3)
        #expect(desk.scheduler.tasks.count == 4)
    }
}
