import Synchronization
import TambourProtocol
import TambourQueues
import TambourStore

/// Does the server's periodic work: erasures, announcements, and pruning of the audit log. Each
/// step is a separate command between the clients' commands.
///
/// `@unchecked Sendable`: only the housekeeper's queue touches the alarm.
package final class Housekeeper: @unchecked Sendable {
    private let engine: Engine
    private let eraser: AccountEraser
    private let announcer: Announcer
    private let auditDays: Int
    private let queue: SerialQueue
    private var alarm: Alarm?
    private let intervalMs: Int
    private let isStopped = Atomic(false)

    /// - Parameter auditDays: the number of days for which entries of the audit log are kept.
    init(
        engine: Engine,
        eraser: AccountEraser,
        auditDays: Int,
        limits: Limits,
        environment: Environment
    ) {
        self.engine = engine
        self.eraser = eraser
        self.auditDays = auditDays
        announcer = Announcer(limits: limits)
        intervalMs = limits.housekeepingIntervalMs
        queue = SerialQueue(label: "tambour.housekeeper", simulated: environment.scheduler)
    }

    func start() {
        queue.async { [self] in
            alarm = Alarm(on: queue) { [weak self] in
                guard let self else { return }
                run {}
                setAlarm()
            }
            setAlarm()
        }
    }

    private func setAlarm() {
        alarm?.set(
            atMs: queue.nowMs + Int64(intervalMs),
            leewayMs: intervalMs / 10
        )
    }

    func stop() {
        isStopped.store(true, ordering: .relaxed)
        queue.async { [self] in
            alarm?.cancel()
            alarm = nil
        }
    }

    /// Does all work that is due by the commit clock. Each step is a separate command.
    ///
    /// - Parameter completion: called on the engine's queue at the end of the run. The run ends
    ///   when no work is left. It ends early if the housekeeper was stopped or the store failed.
    package func run(_ completion: @escaping @Sendable () -> Void) {
        engine.work(
            while: { [self] in !isStopped.load(ordering: .relaxed) },
            step: { [self] in try step(in: $0) ? .more : .finished(()) },
            then: { (_: Void?) in completion() }
        )
    }

    /// Does one step of work that is due, if there is any.
    ///
    /// - Returns: false when there is nothing to do.
    private func step(in tx: WriteTransaction) throws -> Bool {
        if try eraser.step(in: tx) { return true }
        switch try announcer.step(in: tx) {
        case .more, .posted, .hasNoChannel: return true
        case .nothing, .hasNoOwner: break
        }
        return try tx.pruneAudit(before: tx.ct - Int64(auditDays) * 86_400_000)
    }
}
