import TambourProtocol

/// The rows of a `TaskScheduler`, their indexes, and a journal of changes.
///
/// It knows no scheduling rules. Everything except the journal is derived from the rows. Two tables
/// of the same rows are therefore equal if both journals are empty.
struct TaskTable: Equatable, Sendable {
    private(set) var records: [TaskID: TaskRecord] = [:]
    /// The tasks of each lane, and the tasks without a lane, ordered by place.
    private(set) var lanes: [String?: [TaskID]] = [:]
    private(set) var running: Set<TaskID> = []
    private var idsByOpKey: [String: TaskID] = [:]
    /// The dependencies in both directions, ordered by id.
    private var dependencies: [TaskID: [TaskDependency]] = [:]
    private var dependents: [TaskID: [TaskDependency]] = [:]
    private var journal = Journal()

    private struct Journal: Equatable, Sendable {
        /// The rows before their first change; nil for a row that did not exist.
        var originals: [TaskID: TaskRecord?] = [:]
        var linked: Set<TaskDependency> = []
        var unlinked: Set<TaskDependency> = []
    }

    init() {}

    /// Creates a table from stored rows. Ignores dependencies on missing tasks.
    init(records: some Sequence<TaskRecord>, dependencies: some Sequence<TaskDependency>) {
        for record in records where self.records[record.id] == nil { put(record) }
        for dependency in dependencies
        where self.records[dependency.task] != nil && self.records[dependency.on] != nil {
            join(dependency)
        }
    }

    subscript(id: TaskID) -> TaskRecord? { records[id] }

    /// The place after all tasks of the table.
    var nextPlace: Int64 {
        var last: Int64 = 0
        for lane in lanes.values {
            if let id = lane.last, let record = records[id] { last = max(last, record.place) }
        }
        return last + 1
    }

    /// Returns the preceding task of the lane; nil for the first task, and for a task without a
    /// lane.
    func predecessor(of id: TaskID) -> TaskID? {
        guard let record = records[id], record.lane != nil else { return nil }
        let index = index(of: record)
        return index == 0 ? nil : lanes[record.lane]?[index - 1]
    }

    func id(ofOpKey opKey: String) -> TaskID? { idsByOpKey[opKey] }

    /// Returns the dependencies of the task on other tasks.
    func dependencies(of id: TaskID) -> [TaskDependency] { dependencies[id] ?? [] }

    /// Returns the dependencies of other tasks on the task.
    func dependents(of id: TaskID) -> [TaskDependency] { dependents[id] ?? [] }

    mutating func insert(_ record: TaskRecord) {
        note(record.id)
        put(record)
    }

    mutating func update(_ id: TaskID, _ change: (inout TaskRecord) -> Void) {
        guard var record = records[id] else { return }
        note(id)
        change(&record)
        records[id] = record
        if record.state == .running { running.insert(id) } else { running.remove(id) }
    }

    /// Removes a task and its dependencies in both directions.
    mutating func remove(_ id: TaskID) {
        guard let record = records[id] else { return }
        for dependency in dependencies(of: id) + dependents(of: id) { unlink(dependency) }
        note(id)
        running.remove(id)
        idsByOpKey[record.opKey] = nil
        let index = index(of: record)
        lanes[record.lane]?.remove(at: index)
        if lanes[record.lane]?.isEmpty == true { lanes[record.lane] = nil }
        records[id] = nil
    }

    mutating func link(_ dependency: TaskDependency) {
        join(dependency)
        if journal.unlinked.remove(dependency) == nil { journal.linked.insert(dependency) }
    }

    mutating func unlink(_ dependency: TaskDependency) {
        dependencies[dependency.task]?.removeAll { $0 == dependency }
        if dependencies[dependency.task]?.isEmpty == true { dependencies[dependency.task] = nil }
        dependents[dependency.on]?.removeAll { $0 == dependency }
        if dependents[dependency.on]?.isEmpty == true { dependents[dependency.on] = nil }
        if journal.linked.remove(dependency) == nil { journal.unlinked.insert(dependency) }
    }

    /// The tasks changed since the last `takeChanges`, ordered by id.
    var touched: [TaskID] { journal.originals.keys.sorted() }

    /// The tasks that lost dependents since the last `takeChanges`.
    var loosened: [TaskID] { journal.unlinked.map(\.on) }

    /// Returns the changes since the last call, and clears the journal.
    mutating func takeChanges() -> [TaskChange] {
        var removals: [TaskChange] = []
        var writes: [TaskChange] = []
        for id in touched {
            switch (journal.originals[id] ?? nil, records[id]) {
            case (nil, let record?): writes.append(.insert(record))
            case (let original?, let record?):
                if record != original { writes.append(.update(record)) }
            case (.some, nil): removals.append(.remove(id))
            case (nil, nil): break
            }
        }
        let unlinked = journal.unlinked.sorted(by: Self.precedes).map(TaskChange.removeDependency)
        let linked = journal.linked.sorted(by: Self.precedes).map(TaskChange.insertDependency)
        journal = Journal()
        return unlinked + removals + writes + linked
    }

    private mutating func note(_ id: TaskID) {
        if journal.originals.index(forKey: id) == nil {
            journal.originals.updateValue(records[id], forKey: id)
        }
    }

    private mutating func put(_ record: TaskRecord) {
        records[record.id] = record
        idsByOpKey[record.opKey] = record.id
        if record.state == .running { running.insert(record.id) }
        let index = index(of: record)
        lanes[record.lane, default: []].insert(record.id, at: index)
    }

    private mutating func join(_ dependency: TaskDependency) {
        Self.add(dependency, to: &dependencies[dependency.task, default: []])
        Self.add(dependency, to: &dependents[dependency.on, default: []])
    }

    private static func add(_ dependency: TaskDependency, to list: inout [TaskDependency]) {
        let index = list.firstIndex { precedes(dependency, $0) } ?? list.endIndex
        list.insert(dependency, at: index)
    }

    /// Returns the index of the task in its lane, or the index at which to insert it.
    private func index(of record: TaskRecord) -> Int {
        let members = lanes[record.lane] ?? []
        var low = 0
        var high = members.count
        while low < high {
            let middle = (low + high) / 2
            if let other = records[members[middle]],
                (other.place, other.id) < (record.place, record.id)
            {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    private static func precedes(_ left: TaskDependency, _ right: TaskDependency) -> Bool {
        (left.task, left.on) < (right.task, right.on)
    }
}
