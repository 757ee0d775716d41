import Foundation
import TambourProtocol

/// Sending photos: each photo is copied, uploaded, and attached to a message.
///
///     photo.keep ◀── needs ── photo.upload ◀── refresh ── message.send.photo
///
/// The copy exists as long as the row of the task that created the copy. The row stays until the
/// message is sent, cancelled or discarded.
final class PhotoRuns {
    private unowned let core: ClientCore
    /// The runs whose photo work is in progress on the host.
    private var runs: Set<TaskRun> = []
    /// The folder for the copies; nil for a store in memory.
    let folder: PhotoFolder?

    init(_ core: ClientCore) {
        self.core = core
        folder = PhotoFolder(store: core.store.path)
    }

    /// Queues a message with a photo, and the two tasks that must run before it.
    ///
    /// - Returns: the id of the message.
    func queue(
        _ message: SendPhotoTask,
        source: String,
        _ tx: StoreTransaction
    ) throws -> OutgoingID {
        let keeper = try core.queue(KeepPhotoTask(source: source), tx)
        let upload = try core.queue(
            UploadPhotoTask(),
            after: [TaskID(keeper.rawValue): .needs],
            tx
        )
        return try core.queue(message, after: [TaskID(upload.rawValue): .refresh], tx)
    }

    /// Starts the work of a run on the host, after the commit.
    func begin(_ step: PhotoWork.Step, for run: TaskRun) {
        core.whenCommitted { [self] in
            runs.insert(run)
            core.host.begin(PhotoWork(run: run, step: step))
        }
    }

    /// Handles the host's report about the work of a run.
    func reported(_ report: PhotoReport, by run: TaskRun) {
        core.run { [self] tx -> Void in
            let held = try core.tasks.task(run.task, tx)
            // Ignore the report if its run has ended: a newer run has the task, or the task was
            // cancelled.
            guard let record = held, record.run == run else {
                // A copy cannot be interrupted. An unwanted copy is removed when it is complete.
                if case .kept = report, held == nil { remove([run.task]) }
                return
            }
            let now = core.environment.wallMs()
            switch report {
            case .reached(let offset):
                let progress = UploadPhotoTask(reached: offset, round: record.round)
                let payload = try TaskKinds.write(progress)
                let until = now + ClientCore.leaseMs
                try core.tasks.change(tx) {
                    try $0.progressed(run, payload: payload, leaseUntilMs: until)
                }
            case .kept(let file):
                let output = [UInt8](try JSONEncoder().encode(file))
                try core.tasks.change(tx) { try $0.completed(run, output: output) }
            case .uploaded(let token):
                let lifeMs = token.goodFor.wholeMilliseconds
                let held = HeldPhotoToken(token: token.token, untilHereMs: now + lifeMs)
                let output = [UInt8](try JSONEncoder().encode(held))
                try core.tasks.change(tx) { try $0.completed(run, output: output) }
            case .failed(let error): try core.end(run, error.retry, error.reason, nil, tx)
            }
        }
    }

    /// Stops the work of runs that have ended or whose message was cancelled.
    func endUnwanted(_ tx: StoreTransaction) throws {
        for run in runs.sorted(by: { $0.task < $1.task }) {
            let record = try core.tasks.task(run.task, tx)
            let isCurrent = record?.run == run
            guard !isCurrent || record?.isCancelRequested == true else { continue }
            if isCurrent { try core.tasks.change(tx) { try $0.released(run) } }
            letGo(run)
        }
    }

    /// Releases all runs, so that the next process of this account can start them.
    func releaseAll(_ tx: StoreTransaction) throws {
        for run in runs.sorted(by: { $0.task < $1.task }) {
            if try core.tasks.task(run.task, tx)?.run == run {
                try core.tasks.change(tx) { try $0.released(run) }
            }
            letGo(run)
        }
    }

    /// Stops all work and removes all copies, on sign-out.
    func forgetAll() {
        for run in runs { letGo(run) }
        core.whenCommitted { [folder] in folder?.removeAll(but: []) }
    }

    /// Removes copies, after the commit.
    func remove(_ keepers: [TaskID]) {
        guard !keepers.isEmpty else { return }
        core.whenCommitted { [folder] in folder?.remove(keepers) }
    }

    /// Removes copies whose task no longer exists. A process that dies between a commit and its
    /// deferred steps leaves such copies.
    func removeStray(_ tx: StoreTransaction) throws {
        let keepers = try core.tasks.read(tx) { scheduler in
            Set(scheduler.tasks.filter { $0.kind == KeepPhotoTask.kind }.map(\.id))
        }
        core.whenCommitted { [folder] in folder?.removeAll(but: keepers) }
    }

    private func letGo(_ run: TaskRun) {
        core.whenCommitted { [self] in
            runs.remove(run)
            core.host.giveUp(run)
        }
    }
}
