/// A queue of jobs. It serves the subjects in turn, and serves the jobs of each subject in the
/// order in which they were added.
///
/// A job is out after `take` has returned it and until `finish` is called. At most one job of a
/// subject is out at a time. Each operation except `removeNewest` takes constant time. Rounds limit
/// the delay that one subject causes: if the jobs of a subject cost more than the budget of a
/// round, the subject rests until the next round.
///
/// This type is public because the compiler does not specialize generic `package` code in other
/// modules.
@frozen
public struct FairQueue<Subject: Hashable, Job> {
    @frozen @usableFromInline
    struct Line {
        /// The next step of the job that was out. `take` returns it before the subject's other
        /// jobs.
        @usableFromInline var rest: Job?
        @usableFromInline var jobs = FIFO<Job>()
        @usableFromInline var isOut = false
        /// The cost of the subject's jobs in the round `costRound`.
        @usableFromInline var cost: Int64 = 0
        @usableFromInline var costRound = 0

        @inlinable init() {}
    }

    @usableFromInline let budget: Int64
    @usableFromInline var lines: [Subject: Line] = [:]
    /// The subjects whose jobs may be taken now, in the order of their turns.
    @usableFromInline var ready = FIFO<Subject>()
    @usableFromInline var resting: [Subject] = []
    @usableFromInline var round = 0
    @usableFromInline var waiting = 0
    @usableFromInline var waitingRests = 0

    /// - Parameter budget: the cost of one subject's jobs in a round above which the subject rests.
    @inlinable
    public init(budget: Int64 = .max) {
        self.budget = budget
    }

    /// The number of jobs that were added and not yet taken.
    @inlinable
    public var count: Int { waiting }

    /// The number of waiting jobs that were added by `addRest`.
    @inlinable
    public var rests: Int { waitingRests }

    @inlinable
    public var isEmpty: Bool { waiting == 0 }

    /// Whether `take` returns a job.
    @inlinable
    public var hasReady: Bool { !ready.isEmpty }

    /// Whether `take` returns a job after the next round begins.
    @inlinable
    public var hasReadyNext: Bool { !ready.isEmpty || !resting.isEmpty }

    /// Returns the number of a subject's jobs that were added and not yet taken.
    @inlinable
    public func count(of subject: Subject) -> Int { lines[subject]?.count ?? 0 }

    @inlinable
    public mutating func add(_ job: Job, of subject: Subject) {
        waiting += 1
        let isNext: Bool
        // Change the line through its index, because a change through the subscript by key
        // allocates memory.
        if let index = lines.index(forKey: subject) {
            isNext = lines.values[index].add(job)
        } else {
            var line = Line()
            isNext = line.add(job)
            lines[subject] = line
        }
        if isNext { ready.append(subject) }
    }

    /// Adds the next step of the job of `subject` that is out. `take` returns this step before the
    /// subject's other jobs.
    @inlinable
    public mutating func addRest(_ job: Job, of subject: Subject) {
        guard let index = lines.index(forKey: subject), lines.values[index].isOut else {
            preconditionFailure("the job that leaves a rest is out")
        }
        waiting += 1
        waitingRests += 1
        lines.values[index].rest = job
    }

    /// Removes and returns the next job of the subject whose turn it is.
    @inlinable
    public mutating func take() -> (subject: Subject, job: Job)? {
        guard let subject = ready.popFirst() else { return nil }
        guard let index = lines.index(forKey: subject) else {
            preconditionFailure("a subject whose turn it is has a line")
        }
        if lines.values[index].rest != nil { waitingRests -= 1 }
        guard let job = lines.values[index].take() else {
            preconditionFailure("a subject whose turn it is has a job")
        }
        waiting -= 1
        return (subject, job)
    }

    /// Removes the newest job of the subject with the most jobs, if the subject has more than
    /// `held` jobs.
    ///
    /// - Parameter held: a number of jobs, at least 1, because the subject must keep a job for its
    ///   turn.
    @inlinable
    public mutating func removeNewest(ofSubjectAbove held: Int) -> Job? {
        precondition(held > 0, "a subject whose turn it is has a job")
        guard let largest = lines.max(by: { $0.value.jobs.count < $1.value.jobs.count }),
            largest.value.jobs.count > held
        else { return nil }
        waiting -= 1
        return lines[largest.key]?.jobs.popLast()
    }

    /// Ends the job of `subject` that is out, or one step of this job. The subject's next turn
    /// comes after the turns of all other waiting subjects.
    @inlinable
    public mutating func finish(_ subject: Subject, cost: Int64 = 0, rest: Job? = nil) {
        if let rest { addRest(rest, of: subject) }
        guard let index = lines.index(forKey: subject) else { return }
        if lines.values[index].isEmpty {
            lines.remove(at: index)
        } else if lines.values[index].isExhausted(by: cost, in: round, budget) {
            resting.append(subject)
        } else {
            ready.append(subject)
        }
    }

    /// Begins a round. All resting subjects become ready.
    @inlinable
    public mutating func beginRound() {
        round += 1
        for subject in resting { ready.append(subject) }
        resting.removeAll(keepingCapacity: true)
    }
}

extension FairQueue.Line {
    @inlinable
    var isEmpty: Bool { rest == nil && jobs.isEmpty }
    @inlinable
    var count: Int { jobs.count + (rest == nil ? 0 : 1) }

    /// - Returns: whether the subject becomes ready because of the new job.
    @inlinable
    mutating func add(_ job: Job) -> Bool {
        defer { jobs.append(job) }
        return isEmpty && !isOut
    }

    @inlinable
    mutating func take() -> Job? {
        isOut = true
        return rest.take() ?? jobs.popFirst()
    }

    /// Records the end of the job that was out.
    ///
    /// - Returns: whether the cost of the subject's jobs exceeds the budget of the round.
    @inlinable
    mutating func isExhausted(
        by cost: Int64,
        in round: Int,
        _ budget: Int64
    ) -> Bool {
        isOut = false
        if costRound != round { self.cost = 0 }
        costRound = round
        self.cost += cost
        return self.cost > budget
    }
}
