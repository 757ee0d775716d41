import TambourProtocol

/// The requests that wait for the password hasher: one queue a subject, and the subjects take turns.
///
/// A subject is an account, or an address before login. However many requests one of them sends,
/// everybody else waits for one of its passwords at most. A subject gets its next turn when the
/// engine has finished the last one, so the checks before a hash see everything that came before.
struct PasswordLine<Job> {
    /// What became of a request that arrived.
    enum Admission {
        case taken
        /// The line is full, or the subject already holds its share.
        case refused
        /// Taken in place of this job, the newest of the subject that held the most.
        case displaced(Job)
    }

    private let capacity: Int
    private let share: Int
    /// Jobs by subject, the oldest first.
    private var queues: [RateLimiter.Subject: [Job]] = [:]
    /// Subjects with a job and without a turn under way, in the order of their turns.
    private var turns: [RateLimiter.Subject] = []
    /// Subjects whose last turn has not been finished.
    private var busy: Set<RateLimiter.Subject> = []
    /// Jobs that wait, over all subjects.
    private(set) var count = 0

    /// - Parameters:
    ///   - capacity: the number of jobs that may wait.
    ///   - share: the number of them that may be of one subject.
    init(capacity: Int, share: Int) {
        self.capacity = capacity
        self.share = share
    }

    /// Puts a job behind the others of its subject.
    mutating func add(_ job: Job, of subject: RateLimiter.Subject) -> Admission {
        let held = queues[subject]?.count ?? 0
        guard held < share else { return .refused }
        var displaced: Job?
        if count >= capacity {
            guard let job = takeNewest(ofSubjectAbove: held + 1) else { return .refused }
            displaced = job
        }
        if held == 0, !busy.contains(subject) { turns.append(subject) }
        queues[subject, default: []].append(job)
        count += 1
        return displaced.map { .displaced($0) } ?? .taken
    }

    /// Takes the newest job of the subject that holds the most, if that is more than `held`.
    private mutating func takeNewest(ofSubjectAbove held: Int) -> Job? {
        guard let largest = queues.max(by: { $0.value.count < $1.value.count }),
            largest.value.count > held
        else { return nil }
        count -= 1
        return queues[largest.key]?.popLast()
    }

    /// The job whose turn it is. Call `finished` with its subject when it has been answered.
    mutating func next() -> (subject: RateLimiter.Subject, job: Job)? {
        guard let subject = turns.first else { return nil }
        turns.removeFirst()
        guard var jobs = queues[subject], !jobs.isEmpty else {
            preconditionFailure("a subject without a job has no turn")
        }
        let job = jobs.removeFirst()
        queues[subject] = jobs.isEmpty ? nil : jobs
        count -= 1
        busy.insert(subject)
        return (subject, job)
    }

    /// The last job of a subject has been answered: the subject stands behind the others again.
    mutating func finished(_ subject: RateLimiter.Subject) {
        busy.remove(subject)
        if queues[subject] != nil { turns.append(subject) }
    }

    /// Forgets everything that waits.
    mutating func removeAll() {
        queues = [:]
        turns = []
        count = 0
    }
}
