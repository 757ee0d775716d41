public import Synchronization

/// Passes values from any thread to a serial queue, in order. Wakes the queue once per batch.
///
/// Posting to a mailbox that is not empty takes only a lock and an append. Values arrive in the
/// order in which they were posted, whether one producer or several producers posted them.
///
/// This type is public because the compiler does not specialize generic `package` code in other
/// modules.
public final class Mailbox<Item: Sendable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var waiting: [Item] = []
        @usableFromInline var spare: [Item] = []
        @usableFromInline var isDraining = false

        @usableFromInline init() {}
    }

    /// The mailbox reuses the array of a batch only if its capacity is at most this number of
    /// items.
    @usableFromInline static var keptCapacity: Int { 4096 }

    private let queue: SerialQueue
    @usableFromInline let drain: @Sendable ([Item]) -> Void
    @usableFromInline let state = Mutex(State())
    private let wakes = Atomic<Int>(0)

    /// The number of times that the mailbox woke the queue.
    package var wakeCount: Int { wakes.load(ordering: .relaxed) }

    /// - Parameter drain: Called on `queue` with a batch that contains all pending values. It must
    ///   handle the whole batch.
    package init(queue: SerialQueue, drain: @escaping @Sendable (_ batch: [Item]) -> Void) {
        self.queue = queue
        self.drain = drain
    }

    /// Appends `item` after all earlier items.
    @inlinable
    public func post(_ item: Item) {
        let wasEmpty = state.withLock { state in
            state.waiting.append(item)
            return state.waiting.count == 1
        }
        if wasEmpty { wake() }
    }

    /// Appends `items` after all earlier items, without other items in between.
    @inlinable
    public func post(contentsOf items: [Item]) {
        if items.isEmpty { return }
        let wasEmpty = state.withLock { state in
            state.waiting.append(contentsOf: items)
            return state.waiting.count == items.count
        }
        if wasEmpty { wake() }
    }

    /// Passes all items that were posted before this call to `drain`. Must be called on the queue.
    ///
    /// Does nothing when called from inside `drain`, because the current batch must end first.
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
