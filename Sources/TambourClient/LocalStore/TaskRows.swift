import Foundation
import GRDB
import TambourProtocol

/// The rows of tasks.
extension StoreTransaction {
    /// Writes the changes that a scheduler call made.
    func apply(_ changed: [TaskChange]) throws {
        if !changed.isEmpty { changes.queue = true }
        for change in changed {
            switch change {
            case .insert(let record), .update(let record): try put(record)
            case .remove(let task):
                let record = try self.task(task)
                try execute("DELETE FROM task WHERE id = ?", [task.rawValue])
                try removeOverlays(of: task)
                if let record { try takeBack(record) }
            case .insertDependency(let dependency):
                try execute(
                    "INSERT INTO task_dependency VALUES (?, ?, ?)",
                    [dependency.task.rawValue, dependency.on.rawValue, dependency.mode.rawValue]
                )
            case .removeDependency(let dependency):
                try execute(
                    "DELETE FROM task_dependency WHERE task = ? AND dependsOn = ?",
                    [dependency.task.rawValue, dependency.on.rawValue]
                )
            }
        }
    }

    /// Loads the scheduler from the stored rows.
    func scheduler() throws -> TaskScheduler {
        let dependencies = try rows("SELECT task, dependsOn, mode FROM task_dependency")
            .compactMap { row in
                TaskDependency.Mode(rawValue: row[2]).map {
                    TaskDependency(task: TaskID(row[0]), on: TaskID(row[1]), mode: $0)
                }
            }
        return TaskScheduler(
            records: try rows("SELECT * FROM task").map { TaskRecord($0) },
            dependencies: dependencies
        )
    }

    /// Updates what is shown after a task was removed. A task is removed when it is done, discarded
    /// or cancelled. If the task copied a photo, records that the copy is no longer needed.
    private func takeBack(_ record: TaskRecord) throws {
        switch record.kind {
        case KeepPhotoTask.kind: endedPhotos.append(record.id)
        case ChangeFolderTask.kind, DeleteFolderTask.kind, OrderFoldersTask.kind:
            changes.folders = true
        case ConfigureChatTask.kind:
            guard let task = TaskKinds.read(record) as? ConfigureChatTask else { return }
            try applySettings(of: [ChatID(task.chat)])
        default: break
        }
    }

    private func put(_ record: TaskRecord) throws {
        try execute(
            """
            INSERT OR REPLACE INTO task VALUES (
              ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
            )
            """,
            [
                record.id.rawValue, record.kind, record.codecVersion, Data(record.payload),
                record.lane, record.coalescingKey, record.requires.rawValue, record.place,
                record.state.storedText, record.attempts, record.runs, record.round,
                record.nextAtMs, record.wakesOn.rawValue, record.createdAtMs, record.deadlineMs,
                record.opKey, record.lease?.owner, record.lease?.untilMs, record.isCancelRequested,
                record.hasNewInput, record.lastError, record.output.map { Data($0) },
            ]
        )
    }
}

extension StoreReading {
    /// Returns a task; nil when it no longer exists.
    func task(_ task: TaskID) throws -> TaskRecord? {
        try row("SELECT * FROM task WHERE id = ?", [task.rawValue]).map { TaskRecord($0) }
    }

    /// Returns the tasks of a lane that are queued or in flight, oldest first.
    func openTasks(inLane lane: String) throws -> [TaskRecord] {
        try rows(
            """
            SELECT * FROM task
            WHERE lane = ? AND state IN ('blocked', 'ready', 'waiting', 'running') ORDER BY place
            """,
            [lane]
        ).map { TaskRecord($0) }
    }

    /// Returns the tasks that are queued, in flight or refused, oldest first.
    func unfinishedTasks() throws -> [TaskRecord] {
        try rows("SELECT * FROM task WHERE state NOT IN ('done', 'cancelled') ORDER BY place")
            .map { TaskRecord($0) }
    }

    /// Returns the tasks of a lane that are queued, in flight or refused, oldest first.
    func unfinishedTasks(inLane lane: String) throws -> [TaskRecord] {
        try rows(
            """
            SELECT * FROM task
            WHERE lane = ? AND state NOT IN ('done', 'cancelled') ORDER BY place
            """,
            [lane]
        ).map { TaskRecord($0) }
    }

    /// Returns the number of tasks that are queued or in flight.
    func openTaskCount() throws -> Int {
        let count = try int(
            "SELECT count(*) FROM task WHERE state IN ('blocked', 'ready', 'running', 'waiting')"
        )
        return Int(count: count ?? 0)
    }
}

extension TaskRecord {
    fileprivate init(_ row: Row) {
        let payload: Data = row["payload"]
        let output: Data? = row["output"]
        var lease: TaskLease?
        if let owner = row["leaseOwner"] as String?, let until = row["leaseUntilHere"] as Int64? {
            lease = TaskLease(owner: owner, untilMs: until)
        }
        self.init(
            id: TaskID(row["id"]),
            kind: row["kind"],
            codecVersion: row["codecVersion"],
            payload: [UInt8](payload),
            lane: row["lane"],
            coalescingKey: row["coalescingKey"],
            requires: TaskConditions(rawValue: row["requires"]),
            place: row["place"],
            state: TaskState(storedText: row["state"]),
            attempts: row["attempts"],
            runs: row["runs"],
            round: row["round"],
            nextAtMs: row["nextAtHere"],
            wakesOn: TaskConditions(rawValue: row["wakesOn"]),
            createdAtMs: row["createdAtHere"],
            deadlineMs: row["deadlineHere"],
            opKey: row["opKey"],
            lease: lease,
            isCancelRequested: row["isCancelRequested"],
            hasNewInput: row["hasNewInput"],
            lastError: row["lastError"],
            output: output.map { [UInt8]($0) }
        )
    }
}
