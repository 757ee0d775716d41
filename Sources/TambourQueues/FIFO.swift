/// A first-in, first-out queue. Each operation except `removeAll` takes amortised constant time.
///
/// This type is public because the compiler does not specialize generic `package` code in other
/// modules.
@frozen
public struct FIFO<Element> {
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    /// The minimum number of gaps at the front of the array before the queue removes them. The gaps
    /// must also be at least half of the array.
    @inlinable static var keptGaps: Int { 64 }

    @inlinable public init() {}

    @inlinable public var isEmpty: Bool { head == elements.count }
    @inlinable public var count: Int { elements.count - head }
    @inlinable public var first: Element? { isEmpty ? nil : elements[head] }

    @inlinable
    public mutating func append(_ element: Element) {
        elements.append(element)
    }

    @inlinable
    public mutating func popFirst() -> Element? {
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

    @inlinable
    public mutating func popLast() -> Element? {
        isEmpty ? nil : elements.removeLast()
    }

    /// Removes the elements for which `isGone` returns true. The other elements keep their order.
    @inlinable
    public mutating func removeAll(where isGone: (Element) -> Bool) {
        elements = elements[head...].filter { $0.map { !isGone($0) } ?? false }
        head = 0
    }
}
