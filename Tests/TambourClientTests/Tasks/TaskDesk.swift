import TambourClient

/// One process with a scheduler and a clock that only the test moves.
struct TaskDesk {
    var scheduler = TaskScheduler()
    var nowMs: Int64 = 1_700_000_000_000
    private let owner = "desk"
    private var lastID: Int64 = 0

    /// Queues one task under the next id, counting from 1.
    @discardableResult
    mutating func add(
        lane: String? = nil,
        key: String? = nil,
        kind: String = "work",
        requires: TaskConditions = [],
        deadlineInMs: Int64? = nil,
        _ dependencies: [TaskID: TaskDependency.Mode] = [:]
    ) throws -> TaskID {
        lastID += 1
        let id = TaskID(lastID)
        let task = NewTask(
            id: id,
            kind: kind,
            codecVersion: 1,
            payload: [UInt8(lastID)],
            opKey: "op\(id)",
            lane: lane,
            coalescingKey: key,
            requires: requires,
            deadlineMs: deadlineInMs.map { nowMs + $0 },
            dependencies: dependencies
        )
        _ = try scheduler.insert([task], nowMs: nowMs)
        return id
    }

    func startable(_ conditions: TaskConditions = []) -> [TaskID] {
        scheduler.startable(nowMs: nowMs, conditions: conditions)
    }

    @discardableResult
    mutating func start(
        _ id: TaskID,
        owner: String? = nil,
        leaseMs: Int64 = 30_000
    ) throws -> TaskRun {
        _ = try scheduler.started(id, owner: owner ?? self.owner, leaseUntilMs: nowMs + leaseMs)
        guard let run = scheduler[id]?.run else { throw TaskError.notStartable(id) }
        return run
    }

    mutating func complete(_ run: TaskRun, output: [UInt8]? = nil) throws {
        _ = try scheduler.completed(run, output: output)
    }

    mutating func fail(_ run: TaskRun, _ retry: RetryClass, retryAfterMs: Int64? = nil) throws {
        _ = try scheduler.failed(
            run,
            retry,
            error: "no",
            retryAfterMs: retryAfterMs,
            nowMs: nowMs,
            random: 0
        )
    }

    mutating func expire(_ run: TaskRun, _ expired: Set<TaskID>? = nil) throws {
        _ = try scheduler.refresh(run, expired: expired, error: "old", nowMs: nowMs, random: 0)
    }

    mutating func pass(ms: Int64) {
        nowMs += ms
        _ = scheduler.advance(nowMs: nowMs)
    }

    func state(_ id: TaskID) -> TaskState? { scheduler[id]?.state }
}
