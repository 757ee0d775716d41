public import Synchronization

/// Hands values to a serial queue from any thread, in order, waking it once per batch.
///
/// Posting to a mailbox that is not empty costs a lock and an append. Values of one producer keep
/// their order, and so do values posted one after the other.
///
/// Public, because other modules do not specialize generic code of package access.
public final class Mailbox<Item: Sendable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var waiting: [Item] = []
        @usableFromInline var spare: [Item] = []
        @usableFromInline var isDraining = false

        @usableFromInline init() {}
    }

    /// A batch larger than this is not kept for reuse.
    @usableFromInline static var keptCapacity: Int { 4096 }

    private let queue: SerialQueue
    @usableFromInline let drain: @Sendable ([Item]) -> Void
    @usableFromInline let state = Mutex(State())
    private let wakes = Atomic<Int>(0)

    /// The number of times the queue was woken.
    package var wakeCount: Int { wakes.load(ordering: .relaxed) }

    /// - Parameter drain: Called on `queue` with all pending values; it must handle the whole
    ///   batch.
    package init(queue: SerialQueue, drain: @escaping @Sendable (_ batch: [Item]) -> Void) {
        self.queue = queue
        self.drain = drain
    }

    /// Appends `item` after everything posted before.
    @inlinable
    public func post(_ item: Item) {
        let wasEmpty = state.withLock { state in
            state.waiting.append(item)
            return state.waiting.count == 1
        }
        if wasEmpty { wake() }
    }

    /// Appends `items` after everything posted before, with nothing in between.
    @inlinable
    public func post(contentsOf items: [Item]) {
        if items.isEmpty { return }
        let wasEmpty = state.withLock { state in
            state.waiting.append(contentsOf: items)
            return state.waiting.count == items.count
        }
        if wasEmpty { wake() }
    }

    /// Drains everything posted before the call; on the queue only.
    ///
    /// Does nothing when called from inside `drain`: the current batch comes first.
    @inlinable
    public func drainNow() {
        preconditionOnQueue()
        let taken: [Item]? = state.withLock { state in
            if state.isDraining || state.waiting.isEmpty { return nil }
            state.isDraining = true
            let waiting = state.waiting
            state.waiting = state.spare
            state.spare = []
            return waiting
        }
        guard var batch = taken else { return }
        drain(batch)
        batch.removeAll(keepingCapacity: batch.capacity <= Self.keptCapacity)
        state.withLock { state in
            state.isDraining = false
            state.spare = batch
        }
    }

    @usableFromInline
    func preconditionOnQueue() {
        queue.preconditionOnQueue()
    }

    @usableFromInline
    func wake() {
        wakes.add(1, ordering: .relaxed)
        queue.async { self.drainNow() }
    }
}
