import TambourClient
import TambourTesting

/// Two processes, each with a scheduler, on the rows of one store, and a server that does each
/// operation once.
///
/// Checks the rows after each transaction against a second, simpler form of the rules, which scans
/// all rows.
final class TaskWorld {
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    private struct Process {
        var name: String
        var scheduler = TaskScheduler()
        var seenVersion = 0
        var runs: [Run] = []
    }

    private struct Run {
        let run: TaskRun
        let requestKey: String
        /// The rounds of the task's dependencies at the start of the run.
        let rounds: [(on: TaskID, round: Int)]
    }

    /// Knowledge about a task that its row does not contain.
    private struct Story {
        let task: NewTask
        /// The progress that the last run reported.
        var payload: [UInt8]
        /// The task's place among all tasks; a replacement takes the order of the replaced task.
        let order: Int
        /// Whether the task may disappear without being done.
        var mayLeave = false
        /// The task that has replaced this one.
        var replacement: TaskID?
        /// Whether the task has been cancelled and must not start again.
        var mustNotStart = false
    }

    private var rows: [TaskRecord] = []
    private var edges: [TaskDependency] = []
    private var version = 0
    /// The scheduler that results from the rows of this version.
    private var stored = TaskScheduler()
    private var processes = [Process(name: "A0"), Process(name: "B0")]
    private var nowMs: Int64 = 1_700_000_000_000
    private var conditions: TaskConditions = [.connected, .loggedIn, .unmetered]
    private var stories: [TaskID: Story] = [:]
    private var ids: [TaskID] = []
    private var lives = 0
    /// The operations whose results were stored.
    private var results: Set<String> = []
    private var random: SeededGenerator
    /// Whether the current move may return an ended task to the queue.
    private var mayRevive = false
    private var attempted: TaskID?

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    func play(_ moves: [TaskMove]) throws {
        for move in moves { try play(move) }
        try drain()
    }

    private func play(_ move: TaskMove) throws {
        mayRevive = false
        attempted = nil
        let owner = move.owner
        switch move.step {
        case .queue(let drafts): try queue(drafts, move)
        case .pass(let ms): nowMs += ms
        case .conditions(let now): conditions = now
        case .work(let count): try work(count, move)
        case .report(let number, let ending):
            guard !processes[owner].runs.isEmpty else { return }
            try report(number % processes[owner].runs.count, ending, move)
        case .extend(let number):
            guard !processes[owner].runs.isEmpty else { return }
            let run = processes[owner].runs[number % processes[owner].runs.count].run
            let untilMs = nowMs + 20_000
            let isCurrent = row(run.task)?.run == run
            let payload = number % 2 == 1 ? [UInt8(number), 1] : nil
            let before = stories[run.task]?.payload
            if let payload, isCurrent, move.commits { stories[run.task]?.payload = payload }
            let error = try transact(move) { next throws(TaskError) in
                guard let payload else { return try next.extend(run, leaseUntilMs: untilMs) }
                return try next.progressed(run, payload: payload, leaseUntilMs: untilMs)
            }
            if error != nil, let before { stories[run.task]?.payload = before }
            try expect(error == (isCurrent ? nil : .runIsOver(run)), "extend: \(error as Any)")
            if move.commits, isCurrent {
                try expect(row(run.task)?.lease?.untilMs == untilMs, "the lease was not prolonged")
            }
        case .release(let number):
            guard !processes[owner].runs.isEmpty else { return }
            let index = number % processes[owner].runs.count
            let run = processes[owner].runs[index].run
            let before = row(run.task)
            let isCurrent = before?.run == run
            if let before, isCurrent { excuseUnwanted(before) }
            let error = try transact(move) { next throws(TaskError) in try next.released(run) }
            try expect(error == (isCurrent ? nil : .runIsOver(run)), "released: \(error as Any)")
            if move.commits { processes[owner].runs.remove(at: index) }
        case .cancel(let numbers):
            guard !ids.isEmpty else { return }
            try cancel(numbers.map { ids[$0 % ids.count] }, move)
        case .logout: try logout(move)
        case .retry(let number, let deadlineInMs):
            guard !ids.isEmpty else { return }
            try retry(mostlyFailed(number), deadlineMs: deadlineInMs.map { nowMs + $0 }, move)
        case .discard(let number):
            guard !ids.isEmpty else { return }
            try discard(mostlyFailed(number), move)
        case .wake(let events):
            try expect(
                try transact(move) { next throws(TaskError) in next.wake(events) } == nil,
                "wake is never refused"
            )
            if move.commits {
                for row in rows where row.state == .waiting {
                    try expect(row.wakesOn.isDisjoint(with: events), "\(row.id) slept on")
                }
            }
        case .review(let unknownKind): try review(unknownKind: unknownKind, move)
        case .die: die(owner)
        }
    }

    // MARK: Moves

    private func queue(_ drafts: [TaskMove.Draft], _ move: TaskMove) throws {
        var tasks: [NewTask] = []
        let base = ids.count
        let fresh = drafts.indices.map { offset in
            // The ids do not rise, so the scheduler cannot rely on their order.
            TaskID(Int64((base + offset + 1) * 7919 % 10_007))
        }
        let known = ids + fresh
        for (offset, draft) in drafts.enumerated() {
            var dependencies: [TaskID: TaskDependency.Mode] = [:]
            for (back, mode) in draft.dependencies {
                let target = base + offset - 1 - back
                if known.indices.contains(target) { dependencies[known[target]] = mode }
            }
            let id = fresh[offset]
            tasks.append(
                NewTask(
                    id: id,
                    kind: "k\(draft.kind)",
                    codecVersion: 1,
                    payload: [UInt8(truncatingIfNeeded: id.rawValue)],
                    opKey: "op\(id)",
                    lane: draft.lane == 0 ? nil : "L\(draft.lane)",
                    coalescingKey: draft.coalescing == 0 ? nil : "c\(draft.coalescing)",
                    requires: draft.requires,
                    deadlineMs: draft.deadlineInMs.map { nowMs + $0 },
                    dependencies: dependencies
                )
            )
        }
        let order = ids.count
        let plan = insertion(of: tasks)
        if move.commits {
            for (offset, task) in tasks.enumerated() {
                let replaced = plan.replaced[task.id].flatMap { stories[$0]?.order }
                stories[task.id] = Story(
                    task: task,
                    payload: task.payload,
                    order: replaced ?? order + offset
                )
            }
            for (task, replaced) in plan.replaced { stories[replaced]?.replacement = task }
            excuse(Array(plan.replaced.values) + plan.dropped)
        }
        let error = try transact(move) { [nowMs] next throws(TaskError) in
            try next.insert(tasks, nowMs: nowMs)
        }
        switch (error, plan.error) {
        case (nil, nil): break
        case (.cycle, .cycle): return
        case (.unknownDependency, .unknownDependency): return
        default: try expect(error == plan.error, "\(error as Any), not \(plan.error as Any)")
        }
        if error == nil, move.commits {
            ids += fresh
            for task in tasks where row(task.id) == nil {
                try expect(
                    task.dependencies.keys.contains { plan.cancelled.contains($0) }
                        || task.dependencies.keys.contains { row($0) == nil },
                    "\(task.id) was not queued"
                )
            }
        }
    }

    private func work(_ count: Int, _ move: TaskMove) throws {
        for row in rows where row.state == .running && isFree(row.lease) { excuseUnwanted(row) }
        let nowMs = nowMs
        var wakeMs: Int64?
        var idle: [TaskChange] = []
        _ = try transact(move) { next throws(TaskError) in
            wakeMs = next.nextWakeMs(nowMs: nowMs)
            idle = next.advance(nowMs: nowMs)
            return idle
        }
        try expect(wakeMs.map { $0 >= nowMs } ?? true, "the next wake is in the past")
        try expect(idle.isEmpty == (wakeMs != nowMs), "woken at \(wakeMs as Any), did \(idle)")
        guard move.commits else { return }
        for row in rows {
            try expect(!(row.state == .running && isFree(row.lease)), "\(row.id) is held by nobody")
            try expect(!(row.state.isQueued && isLate(row)), "\(row.id) is late")
            if row.state == .waiting, let nextAtMs = row.nextAtMs {
                try expect(nextAtMs > nowMs && nextAtMs <= nowMs + 86_400_000, "\(row.id) is due")
            }
        }
        let found = processes[move.owner].scheduler.startable(nowMs: nowMs, conditions: conditions)
        let expected = startable()
        try expect(found == expected, "startable: \(found), not \(expected)")
        if !found.isEmpty { try start(Array(found.prefix(count)), move) }
    }

    private func start(_ started: [TaskID], _ move: TaskMove) throws {
        for id in started { try checkStart(id) }
        let name = processes[move.owner].name
        let untilMs = nowMs + Int64(1000 + random.below(30) * 1000)
        let error = try transact(move) { next throws(TaskError) in
            var changes: [TaskChange] = []
            for id in started {
                changes += try next.started(id, owner: name, leaseUntilMs: untilMs)
            }
            return changes
        }
        try expect(error == nil, "started: \(error as Any)")
        guard move.commits else { return }
        for id in started {
            guard let row = row(id), let run = row.run else {
                throw Broken(description: "\(id) has no run")
            }
            try expect(run.owner == name && row.lease?.untilMs == untilMs, "lease of \(row)")
            let rounds = edges.filter { $0.task == id && $0.mode != .after }.map { edge in
                (on: edge.on, round: self.row(edge.on)?.round ?? 0)
            }
            processes[move.owner].runs.append(
                Run(run: run, requestKey: row.requestKey, rounds: rounds)
            )
        }
    }

    private func report(_ index: Int, _ ending: TaskMove.Ending, _ move: TaskMove) throws {
        let current = processes[move.owner].runs[index]
        let run = current.run
        let before = row(run.task)
        let isCurrent = before?.run == run
        let nowMs = nowMs
        let random = random.next()
        let error: TaskError?
        let old = rows
        let sources = edges.filter { $0.task == run.task && $0.mode == .refresh }.map(\.on)
        if isCurrent { attempted = run.task }
        var ending = ending
        if case .expiredIfItCan = ending { ending = sources.isEmpty ? .done : .expired }
        switch ending {
        case .done:
            // The server does the operation or finds it done; the reply is the same.
            let reply = Array(current.requestKey.utf8)
            if isCurrent, move.commits { excuse([run.task]) }
            error = try transact(move) { next throws(TaskError) in
                try next.completed(run, output: reply)
            }
            if error == nil, move.commits {
                try expect(
                    results.insert(current.requestKey).inserted,
                    "two results of \(current.requestKey)"
                )
                if let after = row(run.task) {
                    try expect(after.state == .done && after.output == reply, "not done")
                }
            }
        case .failed(let retry, let retryAfterMs):
            if let before, isCurrent { excuseUnwanted(before) }
            error = try transact(move) { next throws(TaskError) in
                try next.failed(
                    run,
                    retry,
                    error: "e",
                    retryAfterMs: retryAfterMs,
                    nowMs: nowMs,
                    random: random
                )
            }
            if error == nil, move.commits, let before {
                try checkFailed(before, retry, retryAfterMs: retryAfterMs)
            }
        case .expired, .expiredIfItCan:
            if let before, isCurrent { excuseUnwanted(before) }
            error = try transact(move) { next throws(TaskError) in
                try next.refresh(run, error: "x", nowMs: nowMs, random: random)
            }
            if error == nil, move.commits, let before {
                try checkRefreshed(before, sources: sources, current, old: old)
            }
        }
        try expect(error == (isCurrent ? nil : .runIsOver(run)), "report: \(error as Any)")
        if move.commits { processes[move.owner].runs.remove(at: index) }
    }

    private func cancel(_ chosen: [TaskID], _ move: TaskMove) throws {
        let old = rows
        if move.commits { excuse(chosen) }
        _ = try transact(move) { next throws(TaskError) in next.cancel(chosen) }
        guard move.commits else { return }
        for row in old where chosen.contains(row.id) && !row.state.isTerminal {
            stories[row.id]?.mustNotStart = true
            let after = self.row(row.id)
            if row.state == .running {
                try expect(
                    after?.run == row.run && after?.isCancelRequested == true,
                    "\(row.id) runs and was not marked"
                )
            } else {
                let isGone = after.map { $0.state == .cancelled } ?? true
                try expect(isGone, "\(row.id) is not cancelled")
            }
        }
    }

    private func logout(_ move: TaskMove) throws {
        if move.commits { excuse(ids) }
        _ = try transact(move) { next throws(TaskError) in next.cancelAll() }
        guard move.commits else { return }
        for row in rows {
            try expect(row.state.isTerminal || row.isCancelRequested, "\(row.id) outlives a logout")
            try expect(!row.state.isFailed, "\(row.id) outlives a logout")
            if row.state == .running { stories[row.id]?.mustNotStart = true }
        }
    }

    private func retry(_ id: TaskID, deadlineMs: Int64?, _ move: TaskMove) throws {
        let isFailed = row(id)?.state.isFailed == true
        mayRevive = true
        let error = try transact(move) { next throws(TaskError) in
            try next.retry(id, deadlineMs: deadlineMs)
        }
        try expect(error == (isFailed ? nil : .notFailed(id)), "retry: \(error as Any)")
        if isFailed, move.commits, let row = row(id) {
            try expect(
                row.state.isQueued && row.deadlineMs == deadlineMs && row.attempts == 0,
                "\(id) was not retried: \(row.state)"
            )
        }
    }

    private func discard(_ id: TaskID, _ move: TaskMove) throws {
        let isFailed = row(id)?.state.isFailed == true
        let isNeeded = below(id).contains { row($0)?.state.isFailed != true }
        if isFailed, !isNeeded, move.commits { excuse([id]) }
        let error = try transact(move) { next throws(TaskError) in try next.discard(id) }
        switch error {
        case nil: try expect(isFailed && !isNeeded, "\(id) was discarded")
        case .stillNeeded: try expect(isFailed && isNeeded, "\(id) is not needed")
        default: try expect(error == .notFailed(id) && !isFailed, "discard: \(error as Any)")
        }
        if error == nil, move.commits { try expect(row(id) == nil, "\(id) is still there") }
    }

    private func review(unknownKind: Int?, _ move: TaskMove) throws {
        mayRevive = true
        let kind = unknownKind.map { "k\($0)" }
        _ = try transact(move) { next throws(TaskError) in
            next.review { $0.kind == kind ? .unknown : .known }
        }
        guard move.commits else { return }
        for row in rows {
            if row.kind == kind {
                try expect(!row.state.isQueued, "\(row.id) is unknown and queued")
            } else {
                try expect(row.state != .failed(.unknown), "\(row.id) is known and parked")
            }
        }
    }

    private func die(_ owner: Int) {
        lives += 1
        processes[owner] = Process(name: "\(owner == 0 ? "A" : "B")\(lives)", seenVersion: -1)
    }

    /// Restores all conditions and runs until every task has ended; then no rows may remain.
    private func drain() throws {
        conditions = [.connected, .loggedIn, .unmetered]
        var rounds = 0
        while rows.contains(where: { !$0.state.isTerminal }) {
            rounds += 1
            try expect(rounds < 100, "some task does not end: \(rows)")
            if rows.contains(where: { !$0.wakesOn.isEmpty }) {
                try play(TaskMove(owner: 0, commits: true, step: .wake(conditions)))
            }
            try play(TaskMove(owner: 0, commits: true, step: .work(4)))
            for owner in [0, 1] {
                while !processes[owner].runs.isEmpty {
                    try play(TaskMove(owner: owner, commits: true, step: .report(0, .done)))
                }
            }
            if let wakeMs = processes[0].scheduler.nextWakeMs(nowMs: nowMs) { nowMs = wakeMs }
        }
        var left = rows.count + 1
        while rows.count < left {
            left = rows.count
            for row in rows where row.state.isFailed && self.row(row.id) != nil {
                let isNeeded = below(row.id).contains { self.row($0)?.state.isFailed != true }
                if isNeeded { continue }
                try discard(row.id, TaskMove(owner: 1, commits: true, step: .discard(0)))
            }
        }
        try expect(rows.isEmpty && edges.isEmpty, "left behind: \(rows)")
    }

    // MARK: Transactions

    /// Runs one transaction of a process, which first rebuilds its scheduler if the other process
    /// has written.
    ///
    /// - Returns: The scheduler's refusal, if any.
    private func transact(
        _ move: TaskMove,
        _ body: (inout TaskScheduler) throws(TaskError) -> [TaskChange]
    ) throws -> TaskError? {
        let owner = move.owner
        if processes[owner].seenVersion != version {
            processes[owner].scheduler = stored
            processes[owner].seenVersion = version
        }
        var next = processes[owner].scheduler
        let changes: [TaskChange]
        do {
            changes = try body(&next)
        } catch {
            try expect(next == processes[owner].scheduler, "a refused call changed something")
            return error
        }
        guard move.commits else {
            if random.chance(50) { processes[owner].scheduler = stored }
            return nil
        }
        if !changes.isEmpty {
            let old = rows
            let oldEdges = edges
            for change in changes { try apply(change, old: old, oldEdges: oldEdges) }
            version += 1
            // Rows may be read in any order, so vary the order.
            stored =
                version % 2 == 0
                ? TaskScheduler(records: rows, dependencies: edges)
                : TaskScheduler(records: rows.reversed(), dependencies: edges.reversed())
            try checkRows()
        }
        try expect(stored == next, "the rows are not the scheduler")
        processes[owner].scheduler = next
        processes[owner].seenVersion = version
        return nil
    }

    private func apply(
        _ change: TaskChange,
        old: [TaskRecord],
        oldEdges: [TaskDependency]
    ) throws {
        switch change {
        case .insert(let row):
            let isTaken = rows.contains { other in
                other.id == row.id || other.opKey == row.opKey || other.place == row.place
            }
            try expect(!isTaken, "two rows like \(row)")
            rows.append(row)
        case .update(let row):
            guard let index = rows.firstIndex(where: { $0.id == row.id }) else {
                throw Broken(description: "update of no row: \(row)")
            }
            try checkUpdate(from: rows[index], to: row)
            rows[index] = row
        case .remove(let id):
            guard let index = rows.firstIndex(where: { $0.id == id }) else {
                throw Broken(description: "removal of no row: \(id)")
            }
            try expect(!edges.contains { $0.task == id || $0.on == id }, "\(id) leaves edges")
            try checkLeaving(rows[index], old: old, oldEdges: oldEdges)
            rows.remove(at: index)
        case .insertDependency(let edge):
            try expect(row(edge.task) != nil && row(edge.on) != nil, "dangling \(edge)")
            try expect(!edges.contains { $0.task == edge.task && $0.on == edge.on }, "two edges")
            edges.append(edge)
        case .removeDependency(let edge):
            guard let index = edges.firstIndex(of: edge) else {
                throw Broken(description: "removal of no edge: \(edge)")
            }
            edges.remove(at: index)
        }
    }

    // MARK: Rules

    private func checkRows() throws {
        var running = 0
        for row in rows {
            if row.state == .running {
                running += 1
                try expect(
                    !rows.contains {
                        $0.lane == row.lane && $0.lane != nil && $0.id != row.id
                            && $0.state == .running
                    },
                    "two run in lane \(row.lane ?? "")"
                )
            } else {
                try expect(!row.isCancelRequested && !row.hasNewInput, "marks on \(row)")
            }
            try expect((row.lease != nil) == (row.state == .running), "lease of \(row)")
            try expect(
                (row.nextAtMs != nil || !row.wakesOn.isEmpty) == (row.state == .waiting),
                "waits for: \(row)"
            )
            try expect(row.payload == stories[row.id]?.payload, "payload of \(row)")
            try checkDependencies(of: row)
        }
        try expect(running <= 4, "\(running) are running")
    }

    private func checkDependencies(of row: TaskRecord) throws {
        var isMet = true
        var hasDependents = false
        for edge in edges {
            if edge.on == row.id { hasDependents = true }
            guard edge.task == row.id, let other = self.row(edge.on) else { continue }
            if !other.state.isTerminal { isMet = false }
            if row.state.isQueued, edge.mode != .after {
                try expect(!other.state.isFailed, "\(row.id) waits for \(other.id), which failed")
                try expect(other.state != .cancelled, "\(row.id) waits for a cancelled task")
            }
        }
        switch row.state {
        case .ready: try expect(isMet, "\(row.id) is ready too early")
        case .blocked: try expect(!isMet, "\(row.id) is blocked by nothing")
        case .done, .cancelled: try expect(hasDependents, "\(row.id) should have left")
        case .failed(.dependency(let cause)):
            guard let root = self.row(cause) else {
                throw Broken(description: "\(row.id) failed because of nothing")
            }
            if case .failed(.dependency) = root.state {
                throw Broken(description: "\(row.id) failed because of \(root.id), \(root.state)")
            }
            try expect(root.state.isFailed, "\(row.id) failed because of one that did not")
            try expect(below(cause).contains(row.id), "\(row.id) does not need \(cause)")
        case .running, .waiting, .failed: break
        }
    }

    private func checkUpdate(from old: TaskRecord, to new: TaskRecord) throws {
        let isRefreshed = new.round == old.round + 1 && old.state == .done
        if old.state.isTerminal, !new.state.isTerminal {
            try expect(mayRevive || isRefreshed, "\(new.id) came back: \(old) \(new)")
            stories[new.id]?.mayLeave = false
            stories[new.id]?.mustNotStart = false
        }
        try expect(new.round == old.round || isRefreshed, "round of \(new)")
        try expect(new.place == old.place && new.opKey == old.opKey, "\(new) is another task")
        try expect(
            new.runs == old.runs + (new.state == .running && old.state != .running ? 1 : 0),
            "runs of \(new)"
        )
        switch new.attempts {
        case old.attempts: break
        case old.attempts + 1: try expect(new.id == attempted, "\(new.id) counts an attempt")
        default:
            try expect(
                new.attempts == 0 && (isRefreshed || mayRevive && old.state.isTerminal),
                "attempts of \(new)"
            )
        }
    }

    private func checkLeaving(
        _ row: TaskRecord,
        old: [TaskRecord],
        oldEdges: [TaskDependency]
    ) throws {
        if row.state == .done || row.state == .cancelled { return }
        var excuses: Set<TaskID> = []
        var upwards = [row.id]
        while let next = upwards.popLast() {
            guard excuses.insert(next).inserted else { continue }
            if stories[next]?.mayLeave == true { return }
            if old.contains(where: { $0.id == next && $0.state == .cancelled }) { return }
            for edge in oldEdges where edge.task == next && edge.mode != .after {
                upwards.append(edge.on)
            }
        }
        throw Broken(description: "lost: \(row)")
    }

    private func checkStart(_ id: TaskID) throws {
        guard let row = row(id), let story = stories[id] else {
            throw Broken(description: "\(id) is not there")
        }
        try expect(!story.mustNotStart, "\(id) is cancelled and starts")
        try expect(!results.contains(row.requestKey), "\(row.requestKey) has a result and starts")
        let inputs = stored.inputs(of: id)
        for (on, mode) in story.task.dependencies {
            var on = on
            while let next = stories[on]?.replacement { on = next }
            let other = self.row(on)
            if mode == .after {
                try expect(other?.state.isTerminal ?? true, "\(id) starts before \(on)")
            } else {
                try expect(other?.state == .done, "\(id) starts before \(on)")
                try expect(
                    inputs[on] == other.map { Array($0.requestKey.utf8) },
                    "\(id) starts without the output of \(on)"
                )
            }
        }
    }

    private func checkFailed(
        _ before: TaskRecord,
        _ retry: RetryClass,
        retryAfterMs: Int64?
    ) throws {
        guard let row = row(before.id), row.state != .cancelled else { return }
        try expect(row.lastError != nil, "no error in \(row)")
        switch retry {
        case .never: return try expect(row.state == .failed(.rejected), "never: \(row.state)")
        case .unreadable: return try expect(row.state == .failed(.unknown), "\(row.state)")
        case .later, .afterLogin:
            try expect(row.attempts == before.attempts + 1, "no attempt counted")
        case .networkLost, .metered:
            try expect(row.attempts == before.attempts, "an attempt counted")
        }
        if row.state.isFailed {
            if case .failed(.dependency) = row.state { return }
            return try expect(row.state == .failed(.deadline) && isLate(row), "\(row)")
        }
        try expect(row.state == .waiting && !isLate(row), "\(retry): \(row.state)")
        let pauseMs = row.nextAtMs.map { $0 - nowMs }
        var longestMs: Int64 = 1000
        for _ in 0..<before.attempts { longestMs = min(300_000, longestMs * 2) }
        let range = longestMs / 2...longestMs
        switch retry {
        case .later:
            if let retryAfterMs {
                try expect(pauseMs == min(max(retryAfterMs, 0), 86_400_000), "asked for a pause")
            } else {
                try expect(pauseMs.map(range.contains) ?? false, "pause \(pauseMs as Any)")
            }
        case .networkLost:
            try expect(row.wakesOn.contains(.connected), "\(row)")
            try expect(pauseMs.map(range.contains) ?? false, "pause \(pauseMs as Any)")
        case .afterLogin: try expect(row.wakesOn == .loggedIn && pauseMs == nil, "\(row)")
        case .metered: try expect(row.wakesOn == .unmetered && pauseMs == nil, "\(row)")
        case .never, .unreadable: break
        }
    }

    private func checkRefreshed(
        _ before: TaskRecord,
        sources: [TaskID],
        _ current: Run,
        old: [TaskRecord]
    ) throws {
        if let row = row(before.id), !row.state.isTerminal {
            try expect(!sources.isEmpty, "nothing renews the input of \(row)")
        }
        let isWanted = !before.isCancelRequested && !isSuperseded(before, in: old)
        var isRenewed = false
        for (on, round) in current.rounds where (old.first { $0.id == on }?.round ?? 0) > round {
            isRenewed = true
        }
        for source in sources {
            guard let was = old.first(where: { $0.id == source }), let now = row(source) else {
                continue
            }
            let began = current.rounds.first { $0.on == source }?.round ?? 0
            if now.round > was.round {
                try expect(isWanted && was.round == began, "\(source) is renewed in vain")
            } else if was.state == .done, was.round == began {
                try expect(!isWanted || isRenewed, "\(source) is not renewed")
            }
        }
    }

    // MARK: Expectations

    private func startable() -> [TaskID] {
        let running = rows.filter { $0.state == .running }
        var found: [(order: Int, id: TaskID)] = []
        for row in rows where row.state == .ready {
            guard let order = stories[row.id]?.order else { continue }
            if !row.requires.isSubset(of: conditions) || isLate(row) { continue }
            if row.lane != nil {
                let isHeld = rows.contains { other in
                    other.lane == row.lane && !other.state.isTerminal
                        && (other.state == .running || (stories[other.id]?.order ?? 0) < order)
                }
                if isHeld { continue }
            }
            found.append((order, row.id))
        }
        found.sort { $0.order < $1.order }
        return found.prefix(max(0, 4 - running.count)).map(\.id)
    }

    /// Returns the expected effect of queueing these tasks.
    private func insertion(
        of tasks: [NewTask]
    ) -> (error: TaskError?, replaced: [TaskID: TaskID], dropped: [TaskID], cancelled: [TaskID]) {
        var replaced: [TaskID: TaskID] = [:]
        var dropped: [TaskID] = []
        let cancelled = rows.filter { $0.state == .cancelled }.map(\.id)
        for task in tasks {
            guard let key = task.coalescingKey else { continue }
            if task.lane == nil { return (.coalescingWithoutLane(task.id), [:], [], []) }
            let twin = tasks.first { $0.lane == task.lane && $0.coalescingKey == key }
            if let twin, twin.id != task.id {
                return (.duplicateCoalescingKey(task.id), [:], [], [])
            }
            var order = -1
            for row in rows where row.lane == task.lane && row.coalescingKey == key {
                let other = stories[row.id]?.order ?? 0
                if row.state.isQueued, other > order {
                    replaced[task.id] = row.id
                    order = other
                }
                if row.state.isFailed, !edges.contains(where: { $0.on == row.id }) {
                    dropped.append(row.id)
                }
            }
        }
        let gone = replaced.values + dropped
        var members: [(id: TaskID, lane: String?, order: Int)] = []
        for row in rows where !gone.contains(row.id) {
            members.append((row.id, row.lane, stories[row.id]?.order ?? 0))
        }
        var waits = edges.filter { !gone.contains($0.task) }.map { (from: $0.task, to: $0.on) }
        for (index, task) in tasks.enumerated() {
            let old = replaced[task.id]
            let order = old.flatMap { stories[$0]?.order } ?? ids.count + index
            members.append((task.id, task.lane, order))
            for wait in waits.indices where waits[wait].to == old { waits[wait].to = task.id }
        }
        for task in tasks { for on in task.dependencies.keys { waits.append((task.id, on)) } }
        for wait in waits where !members.contains(where: { $0.id == wait.to }) {
            return (.unknownDependency(wait.to), [:], [], [])
        }
        for member in members where member.lane != nil {
            for other in members where other.lane == member.lane && other.order < member.order {
                waits.append((member.id, other.id))
            }
        }
        // Remove members that wait for no other member. Repeat this until no member is left or the
        // rest forms a cycle.
        var count = members.count + 1
        while members.count < count {
            count = members.count
            members.removeAll { member in !waits.contains { $0.from == member.id } }
            waits.removeAll { wait in !members.contains { $0.id == wait.to } }
        }
        let error = members.first.map { TaskError.cycle($0.id) }
        return (error, error == nil ? replaced : [:], error == nil ? dropped : [], cancelled)
    }

    /// Returns the tasks that need this one, directly or indirectly.
    private func below(_ id: TaskID) -> [TaskID] {
        var found: [TaskID] = []
        var downwards = [id]
        while let next = downwards.popLast() {
            for edge in edges where edge.on == next && edge.mode != .after {
                if !found.contains(edge.task) {
                    found.append(edge.task)
                    downwards.append(edge.task)
                }
            }
        }
        return found
    }

    private func isSuperseded(_ row: TaskRecord, in old: [TaskRecord]? = nil) -> Bool {
        guard let key = row.coalescingKey, let order = stories[row.id]?.order,
            !edges.contains(where: { $0.on == row.id })
        else { return false }
        return (old ?? rows).contains {
            $0.lane == row.lane && $0.coalescingKey == key && $0.state.isQueued
                && (stories[$0.id]?.order ?? 0) > order
        }
    }

    private func mostlyFailed(_ number: Int) -> TaskID {
        let failed = rows.filter(\.state.isFailed)
        if failed.isEmpty || number % 8 == 0 { return ids[number % ids.count] }
        return failed[number % failed.count].id
    }

    private func excuse(_ leaving: [TaskID]) {
        for id in leaving { stories[id]?.mayLeave = true }
    }

    /// A failed run may end a task that is no longer wanted.
    private func excuseUnwanted(_ row: TaskRecord) {
        if row.isCancelRequested || isSuperseded(row) { excuse([row.id]) }
    }

    private func isFree(_ lease: TaskLease?) -> Bool {
        guard let lease else { return true }
        return lease.untilMs <= nowMs || lease.untilMs > nowMs + 600_000
    }

    private func isLate(_ row: TaskRecord) -> Bool { row.deadlineMs.map { $0 <= nowMs } ?? false }

    private func row(_ id: TaskID) -> TaskRecord? {
        rows.firstIndex { $0.id == id }.map { rows[$0] }
    }

    private func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw Broken(description: message()) }
    }
}
