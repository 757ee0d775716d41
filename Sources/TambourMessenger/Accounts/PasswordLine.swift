import TambourProtocol
import TambourQueues

/// The requests that wait for the password hasher: a `FairQueue` with a capacity.
///
/// A subject is an account or, before login, an address. Other subjects wait for at most one
/// password of a subject, even if it sends many requests. A subject gets its next turn only when
/// its previous command has been answered. The checks before a hash therefore see the effects of
/// all earlier commands of the subject.
struct PasswordLine<Job> {
    /// The outcome of adding a request.
    enum Admission {
        case taken
        /// The job was not added. Either the subject already has its share of jobs, or the line is
        /// full. In a full line, a job is added only if another subject has more jobs than this one
        /// would have.
        case refused
        /// The job was added, and another job lost its place. The associated value is that other
        /// job. It is the newest job of the subject with the most jobs.
        case displaced(Job)
    }

    private let capacity: Int
    private let share: Int
    private var queue = FairQueue<WorkSubject, Job>()

    /// - Parameters:
    ///   - capacity: the largest number of jobs that may wait.
    ///   - share: the largest number of waiting jobs of one subject.
    init(capacity: Int, share: Int) {
        self.capacity = capacity
        self.share = share
    }

    /// The number of waiting jobs of all subjects.
    var count: Int { queue.count }

    /// Adds a job after its subject's other jobs.
    mutating func add(_ job: Job, of subject: WorkSubject) -> Admission {
        let held = queue.count(of: subject)
        guard held < share else { return .refused }
        var displaced: Job?
        if count >= capacity {
            guard let newest = queue.removeNewest(ofSubjectAbove: held + 1) else { return .refused }
            displaced = newest
        }
        queue.add(job, of: subject)
        return displaced.map { .displaced($0) } ?? .taken
    }

    /// Removes the next job and returns it. Call `finished` with the job's subject once the job has
    /// been answered.
    mutating func next() -> (subject: WorkSubject, job: Job)? { queue.take() }

    /// Ends the current job of a subject. The subject's next turn follows the turns of all other
    /// waiting subjects.
    mutating func finished(_ subject: WorkSubject) { queue.finish(subject) }

    /// Removes all waiting jobs.
    mutating func removeAll() { queue = FairQueue() }
}
