/// Identifies one timer of a `TimerQueue`. The token is stale once the timer has fired or was
/// cancelled.
package struct TimerToken: Hashable, Sendable {
    fileprivate let slot: Int32
    fileprivate let generation: UInt32
}

/// Orders timers by their deadlines. It is a binary heap and has no clock.
///
/// The owner passes in the time. `schedule`, `cancel` and `step` cost O(log n). A new timer reuses
/// the memory of a timer that has fired or was cancelled.
package struct TimerQueue<Payload> {
    private struct Slot {
        var deadlineMs: Int64
        var order: UInt64
        var position: Int32
        var generation: UInt32
        var payload: Payload?
    }

    private var slots: [Slot] = []
    private var free: [Int32] = []
    private var heap: [Int32] = []
    private var order: UInt64 = 0

    package init() {}

    package var count: Int { heap.count }

    /// The deadline of the next timer, in milliseconds of the owner's clock; nil if there are no
    /// timers.
    package var nextDeadlineMs: Int64? { heap.first.map { slots[Int($0)].deadlineMs } }

    /// Adds a timer that is due at `deadlineMs`.
    package mutating func schedule(atMs deadlineMs: Int64, _ payload: Payload) -> TimerToken {
        order += 1
        let index: Int32
        if let reused = free.popLast() {
            index = reused
            slots[Int(index)].deadlineMs = deadlineMs
            slots[Int(index)].order = order
            slots[Int(index)].payload = payload
        } else {
            index = Int32(slots.count)
            slots.append(
                Slot(
                    deadlineMs: deadlineMs,
                    order: order,
                    position: 0,
                    generation: 0,
                    payload: payload
                )
            )
        }
        heap.append(index)
        slots[Int(index)].position = Int32(heap.count - 1)
        siftUp(heap.count - 1)
        return TimerToken(slot: index, generation: slots[Int(index)].generation)
    }

    /// Removes a timer and returns its payload; nil if the timer has fired or was cancelled.
    @discardableResult
    package mutating func cancel(_ token: TimerToken) -> Payload? {
        let index = Int(token.slot)
        guard index < slots.count, slots[index].generation == token.generation,
            slots[index].payload != nil
        else { return nil }
        return remove(at: Int(slots[index].position))
    }

    /// Removes the next timer that is due at `nowMs` and returns its payload; nil when no timer is
    /// due.
    ///
    /// Calls return timers in the order of their deadlines. Timers with equal deadlines follow in
    /// the order in which they were scheduled. Each call returns only one timer, so that the
    /// handler of this timer can still cancel other timers.
    package mutating func step(nowMs: Int64) -> Payload? {
        guard let first = heap.first, slots[Int(first)].deadlineMs <= nowMs else { return nil }
        return remove(at: 0)
    }

    private mutating func remove(at position: Int) -> Payload? {
        let index = Int(heap[position])
        let last = heap.removeLast()
        if position < heap.count {
            heap[position] = last
            slots[Int(last)].position = Int32(position)
            siftDown(position)
            siftUp(Int(slots[Int(last)].position))
        }
        let payload = slots[index].payload
        slots[index].payload = nil
        slots[index].generation &+= 1
        free.append(Int32(index))
        return payload
    }

    private func isEarlier(_ left: Int, _ right: Int) -> Bool {
        let (a, b) = (slots[Int(heap[left])], slots[Int(heap[right])])
        return (a.deadlineMs, a.order) < (b.deadlineMs, b.order)
    }

    private mutating func siftUp(_ position: Int) {
        var child = position
        while child > 0 {
            let parent = (child - 1) / 2
            guard isEarlier(child, parent) else { return }
            swapInHeap(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(_ position: Int) {
        var parent = position
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && isEarlier(child, least) {
                least = child
            }
            if least == parent { return }
            swapInHeap(parent, least)
            parent = least
        }
    }

    private mutating func swapInHeap(_ left: Int, _ right: Int) {
        heap.swapAt(left, right)
        slots[Int(heap[left])].position = Int32(left)
        slots[Int(heap[right])].position = Int32(right)
    }
}
