import TambourProtocol

/// Elements that are taken in the order in which they were added; each operation is O(1), amortised.
struct FIFO<Element> {
    private var elements: [Element?] = []
    private var head = 0

    /// Gaps at the front are closed from this many on, when they are half of the array.
    private static var keptGaps: Int { 32 }

    var isEmpty: Bool { head == elements.count }
    var count: Int { elements.count - head }

    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: Element) {
        elements.append(element)
    }

    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let first = elements[head].take()
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: elements.count <= Self.keptGaps)
            head = 0
        } else if head >= Self.keptGaps, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return first
    }

    /// Keeps the order of those that stay.
    mutating func removeAll(where isGone: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map { !isGone($0) } ?? false }
        head = 0
    }
}
