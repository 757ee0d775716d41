import TambourTesting

/// All future events, in the order of their times. The clock jumps from one event to the next.
///
/// The seed determines the order of events that are due in the same microsecond.
final class EventLoop {
    private struct Entry {
        let timeUs: Int64
        let tie: UInt64
        let action: () -> Void
    }

    /// The machine's clock, in microseconds.
    private(set) var nowUs: Int64 = 1_000_000_000
    var random: SeededGenerator
    var hash = EventHash()
    /// The hash at the beginning of each event. The first difference shows where two plays diverge.
    private(set) var trace: [UInt64] = []
    private var heap: [Entry] = []

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    var nowMs: Int64 { nowUs / 1000 }

    /// Schedules `action` to run after `us` microseconds.
    func after(_ us: Int64, _ action: @escaping () -> Void) {
        heap.append(Entry(timeUs: nowUs + max(0, us), tie: random.next(), action: action))
        siftUp(heap.count - 1)
    }

    /// Runs all events up to a time and sets the clock to it.
    func run(untilUs end: Int64) {
        while let next = heap.first, next.timeUs <= end { step() }
        nowUs = max(nowUs, end)
    }

    func run(forMs ms: Int64) { run(untilUs: nowUs + ms * 1000) }

    /// Advances the clock without running events. Events whose time the clock has passed run later.
    func leap(byMs ms: Int64) { nowUs += ms * 1000 }

    func clear() { heap = [] }

    private func step() {
        guard let next = heap.first else { return }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            siftDown(0)
        }
        nowUs = max(nowUs, next.timeUs)
        hash.add(UInt64(bitPattern: nowUs))
        trace.append(hash.value)
        next.action()
    }

    private func isEarlier(_ left: Int, _ right: Int) -> Bool {
        let (a, b) = (heap[left], heap[right])
        return a.timeUs != b.timeUs ? a.timeUs < b.timeUs : a.tie < b.tie
    }

    private func siftUp(_ position: Int) {
        var child = position
        while child > 0 {
            let parent = (child - 1) / 2
            guard isEarlier(child, parent) else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private func siftDown(_ position: Int) {
        var parent = position
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && isEarlier(child, least) {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
