import Foundation
import TambourProtocol

/// Sending photos: each is copied, uploaded, and attached to a message.
///
///     photo.keep ◀── needs ── photo.upload ◀── refresh ── message.send.photo
///
/// The copy exists as long as the row of the task that made it. The row stays until the message has
/// left the queue: sent, cancelled or dropped.
extension ClientCore {
    /// Queues a message with a photo, and the tasks that precede it.
    ///
    /// - Returns: the id of the message.
    func queuePhoto(
        _ message: SendPhotoTask,
        source: String,
        _ tx: StoreTransaction
    ) throws -> OutgoingID {
        let keeper = try queue(KeepPhotoTask(source: source), tx)
        let upload = try queue(
            UploadPhotoTask(),
            after: [TaskID(keeper.rawValue): .needs],
            tx
        )
        return try queue(message, after: [TaskID(upload.rawValue): .refresh], tx)
    }

    /// Lets the host start the work of a run after the commit.
    func begin(_ step: PhotoWork.Step, for run: TaskRun) {
        whenCommitted { [self] in
            photoRuns.insert(run)
            host.begin(PhotoWork(run: run, step: step))
        }
    }

    /// Handles the host's report about the work of a run.
    package func photoReported(_ report: PhotoReport, by run: TaskRun) {
        self.run { [self] tx -> Void in
            let held = try tasks.task(run.task, tx)
            // Ignore an ended run: another one has taken over the task, or it was cancelled.
            guard let record = held, record.run == run else {
                // A copy cannot be interrupted, so remove an unwanted one.
                if case .kept = report, held == nil { removePhotos([run.task]) }
                return
            }
            let now = environment.wallMs()
            switch report {
            case .reached(let offset):
                let progress = UploadPhotoTask(reached: offset, round: record.round)
                let payload = try TaskKinds.write(progress)
                let until = now + Self.leaseMs
                try tasks.change(tx) {
                    try $0.progressed(run, payload: payload, leaseUntilMs: until)
                }
            case .kept(let file):
                let output = [UInt8](try JSONEncoder().encode(file))
                try tasks.change(tx) { try $0.completed(run, output: output) }
            case .uploaded(let token):
                let lifeMs = token.goodFor.wholeMilliseconds
                let held = HeldPhotoToken(token: token.token, untilHereMs: now + lifeMs)
                let output = [UInt8](try JSONEncoder().encode(held))
                try tasks.change(tx) { try $0.completed(run, output: output) }
            case .failed(let error): try end(run, error.retry, error.reason, nil, tx)
            }
        }
    }

    /// Stops unwanted work: its run is over, or its message was cancelled.
    func endUnwantedPhotoRuns(_ tx: StoreTransaction) throws {
        for run in photoRuns.sorted(by: { $0.task < $1.task }) {
            let record = try tasks.task(run.task, tx)
            let isCurrent = record?.run == run
            guard !isCurrent || record?.isCancelRequested == true else { continue }
            if isCurrent { try tasks.change(tx) { try $0.released(run) } }
            letGo(run)
        }
    }

    /// Releases all runs, for the next process that starts this account.
    func releasePhotoRuns(_ tx: StoreTransaction) throws {
        for run in photoRuns.sorted(by: { $0.task < $1.task }) {
            if try tasks.task(run.task, tx)?.run == run {
                try tasks.change(tx) { try $0.released(run) }
            }
            letGo(run)
        }
    }

    /// Stops all work and removes all copies, on sign-out.
    func forgetPhotos() {
        for run in photoRuns { letGo(run) }
        whenCommitted { [self] in photos?.removeAll(but: []) }
    }

    func removePhotos(_ keepers: [TaskID]) {
        guard !keepers.isEmpty else { return }
        whenCommitted { [self] in photos?.remove(keepers) }
    }

    /// Removes copies without a task: a process died between a commit and the steps after it.
    func removeStrayPhotos(_ tx: StoreTransaction) throws {
        let keepers = try tasks.read(tx) { scheduler in
            Set(scheduler.tasks.filter { $0.kind == KeepPhotoTask.kind }.map(\.id))
        }
        whenCommitted { [self] in photos?.removeAll(but: keepers) }
    }

    private func letGo(_ run: TaskRun) {
        whenCommitted { [self] in
            photoRuns.remove(run)
            host.giveUp(run)
        }
    }
}
