/// A dictionary that records which keys were changed since the last `drain`.
struct Journal<Key: Hashable & Sendable, Value: Hashable & Sendable>: Sendable {
    private(set) var values: [Key: Value]
    /// The changed keys with their earlier values, in the order of the first change.
    private var touched: [(key: Key, before: Value?)] = []
    private var touchedKeys: Set<Key> = []

    init(_ values: [Key: Value]) {
        self.values = values
    }

    subscript(key: Key) -> Value? {
        get { values[key] }
        set {
            let before = values[key]
            guard before != newValue else { return }
            if touchedKeys.insert(key).inserted { touched.append((key, before)) }
            values[key] = newValue
        }
    }

    /// Calls `body` with each key whose value has changed since the last `drain`, and with the
    /// current value. Then clears the record.
    mutating func drain(_ body: (Key, Value?) -> Void) {
        for (key, before) in touched {
            let value = values[key]
            if value != before { body(key, value) }
        }
        touched.removeAll(keepingCapacity: true)
        touchedKeys.removeAll(keepingCapacity: true)
    }
}
