/// A dictionary that remembers which keys were touched since it was last asked.
struct Journal<Key: Hashable & Sendable, Value: Hashable & Sendable>: Sendable {
    private(set) var values: [Key: Value]
    /// What the touched keys had before, in the order of the first touch.
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

    /// Tells `body` each key whose value is not what it was, with the present value, and forgets
    /// the touches.
    mutating func drain(_ body: (Key, Value?) -> Void) {
        for (key, before) in touched {
            let value = values[key]
            if value != before { body(key, value) }
        }
        touched.removeAll(keepingCapacity: true)
        touchedKeys.removeAll(keepingCapacity: true)
    }
}
