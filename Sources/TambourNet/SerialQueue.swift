package import Dispatch

/// Runs what the queues of a server are given, and says what time it is, in place of Dispatch and the
/// machine's clock: a simulation that does everything on one thread, in an order of its own.
package protocol SimulatedScheduler: AnyObject, Sendable {
    /// Has `work` run on `queue` once `delay` has passed; what one queue is given without a delay runs in
    /// the order in which it was given.
    func run(
        on queue: SerialQueue,
        after delay: Duration,
        _ work: @escaping @Sendable () -> Void
    )

    /// Whether what runs now runs on `queue`.
    func isOn(_ queue: SerialQueue) -> Bool

    /// A clock that never goes back.
    var now: Duration { get }
}

/// Runs what it is given one after the other: a serial dispatch queue, or a name for a simulation to
/// keep order by.
package final class SerialQueue: Sendable {
    package let label: String
    /// What it runs on, unless it is simulated.
    package let dispatch: DispatchQueue
    private let simulated: (any SimulatedScheduler)?

    package init(label: String, simulated: (any SimulatedScheduler)? = nil) {
        self.label = label
        self.simulated = simulated
        dispatch = DispatchQueue(label: label)
    }

    /// Whether no dispatch source will ever call on it.
    package var isSimulated: Bool { simulated != nil }

    /// Runs `work` behind everything given before.
    package func async(_ work: @escaping @Sendable () -> Void) {
        if let simulated { return simulated.run(on: self, after: .zero, work) }
        dispatch.async(execute: work)
    }

    /// Runs `work` once `delay` has passed.
    package func async(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        if let simulated { return simulated.run(on: self, after: delay, work) }
        dispatch.asyncAfter(deadline: .now() + delay / .seconds(1), execute: work)
    }

    /// Stops the program when the caller does not run on this queue.
    @inline(__always)
    package func preconditionOnQueue() {
        if let simulated {
            return precondition(simulated.isOn(self), "not on the queue \(label)")
        }
        dispatchPrecondition(condition: .onQueue(dispatch))
    }

    /// A clock that never goes back and has no other meaning.
    package var now: Duration { simulated?.now ?? monotonicTime() }

    /// The same in milliseconds.
    package var nowMs: Int64 { now.elapsedMilliseconds }

    /// The same in microseconds.
    package var nowUs: Int64 { now.elapsedMicroseconds }
}

/// Calls its handler on a queue at one time, which may be changed until then.
///
/// `@unchecked Sendable`: everything but `init` happens on the queue.
package final class Alarm: @unchecked Sendable {
    private let queue: SerialQueue
    private let handler: @Sendable () -> Void
    private var source: (any DispatchSourceTimer)?
    /// How often it was set; a simulated call for an earlier time is none.
    private var turn = 0

    package init(on queue: SerialQueue, handler: @escaping @Sendable () -> Void) {
        self.queue = queue
        self.handler = handler
    }

    deinit { source?.cancel() }

    /// Calls the handler at `deadlineMs` of the queue's clock or a little later, and not at the time set before.
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

    /// Calls the handler no more, unless it is set again.
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
