package import Dispatch

/// A simulation that replaces Dispatch and the machine's clock. It runs the work of all queues on
/// one thread, in an order that it chooses.
package protocol SimulatedScheduler: AnyObject, Sendable {
    /// Runs `work` on `queue` after `delay`. Work without a delay runs in the order in which its
    /// queue received it.
    func run(
        on queue: SerialQueue,
        after delay: Duration,
        _ work: @escaping @Sendable () -> Void
    )

    /// Whether the current work runs on `queue`.
    func isOn(_ queue: SerialQueue) -> Bool

    /// The time of a monotonic clock.
    var now: Duration { get }
}

/// A queue that runs its work in order, one item after the other. It uses a serial dispatch queue.
/// In a simulation, it only identifies the work that must stay in order.
package final class SerialQueue: Sendable {
    package let label: String
    /// The underlying dispatch queue; unused in a simulation.
    package let dispatch: DispatchQueue
    private let simulated: (any SimulatedScheduler)?

    package init(label: String, simulated: (any SimulatedScheduler)? = nil) {
        self.label = label
        self.simulated = simulated
        dispatch = DispatchQueue(label: label)
    }

    /// Whether a simulation runs this queue. Dispatch sources never fire on a simulated queue.
    package var isSimulated: Bool { simulated != nil }

    /// Runs `work` after all work that was submitted before.
    package func async(_ work: @escaping @Sendable () -> Void) {
        if let simulated { return simulated.run(on: self, after: .zero, work) }
        dispatch.async(execute: work)
    }

    /// Runs `work` after `delay`.
    package func async(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        if let simulated { return simulated.run(on: self, after: delay, work) }
        dispatch.asyncAfter(deadline: .now() + delay / .seconds(1), execute: work)
    }

    /// Stops the program if the caller does not run on this queue.
    @inline(__always)
    package func preconditionOnQueue() {
        if let simulated {
            return precondition(simulated.isOn(self), "not on the queue \(label)")
        }
        dispatchPrecondition(condition: .onQueue(dispatch))
    }

    /// The time of a monotonic clock that starts at an arbitrary value.
    package var now: Duration { simulated?.now ?? monotonicTime() }

    /// The time of the same clock in milliseconds.
    package var nowMs: Int64 { now.elapsedMilliseconds }

    /// The time of the same clock in microseconds.
    package var nowUs: Int64 { now.elapsedMicroseconds }
}

/// Calls its handler on a queue at a set time. The time can be changed until the handler is called.
///
/// `@unchecked Sendable`: all methods except `init` run on the queue.
package final class Alarm: @unchecked Sendable {
    private let queue: SerialQueue
    private let handler: @Sendable () -> Void
    private var source: (any DispatchSourceTimer)?
    /// The number of calls of `set` and `cancel`. In a simulation, a scheduled call does nothing if
    /// this number has changed in the meantime.
    private var turn = 0

    package init(on queue: SerialQueue, handler: @escaping @Sendable () -> Void) {
        self.queue = queue
        self.handler = handler
    }

    deinit { source?.cancel() }

    /// Schedules the handler at `deadlineMs` of the queue's clock, or a little later. Replaces the
    /// time of an earlier call of `set`.
    package func set(atMs deadlineMs: Int64, leewayMs: Int = 1) {
        turn += 1
        if queue.isSimulated {
            let turn = turn
            queue.async(after: .milliseconds(max(0, deadlineMs - queue.nowMs))) { [weak self] in
                if let self, self.turn == turn { handler() }
            }
            return
        }
        let source = source ?? make()
        let deadline = DispatchTime(uptimeNanoseconds: UInt64(max(0, deadlineMs)) * 1_000_000)
        source.schedule(deadline: deadline, leeway: .milliseconds(leewayMs))
    }

    /// Cancels the pending call of the handler.
    package func cancel() {
        turn += 1
        source?.cancel()
        source = nil
    }

    private func make() -> any DispatchSourceTimer {
        let made = DispatchSource.makeTimerSource(queue: queue.dispatch)
        made.setEventHandler(handler: handler)
        made.schedule(deadline: .distantFuture)
        made.activate()
        source = made
        return made
    }
}
