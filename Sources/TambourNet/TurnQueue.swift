/// Those who wait for their turn on a lane, first in, first out.
struct TurnQueue<Element> {
    private var waiting: [Element?] = []
    private var head = 0

    /// Gaps at the front are closed from this many on, when they are half of the array.
    private static var keptGaps: Int { 64 }

    var count: Int { waiting.count - head }
    var isEmpty: Bool { head == waiting.count }

    mutating func append(_ element: Element) {
        waiting.append(element)
    }

    /// Takes the first one out; the queue must not be empty.
    mutating func removeFirst() -> Element {
        guard head < waiting.count, let first = waiting[head].take() else {
            preconditionFailure("the queue of turns is empty")
        }
        head += 1
        if head == waiting.count {
            waiting.removeAll(keepingCapacity: waiting.count <= Self.keptGaps)
            head = 0
        } else if head >= Self.keptGaps, head * 2 >= waiting.count {
            waiting.removeFirst(head)
            head = 0
        }
        return first
    }
}
