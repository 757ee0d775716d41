/// The cut texts that can be yanked: first the newest one, then older ones in turn, then the newest
/// again.
package struct KillRing: Sendable {
    private static let capacity = 32

    private var entries: [String] = []
    private var position = 0

    package var current: String? { entries.isEmpty ? nil : entries[position] }

    package mutating func add(_ text: String) {
        guard !text.isEmpty else { return }
        entries.append(text)
        if entries.count > Self.capacity { entries.removeFirst() }
        position = entries.count - 1
    }

    /// Adds a text to the newest entry, because its kill directly follows another kill.
    mutating func extend(with text: String, atFront: Bool) {
        guard let last = entries.popLast() else { return add(text) }
        entries.append(atFront ? text + last : last + text)
        position = entries.count - 1
    }

    mutating func rotate() {
        guard !entries.isEmpty else { return }
        position = (position + entries.count - 1) % entries.count
    }
}
