/// A reference to a value. Copying the reference takes the same short time for a value of any size.
final class Shared<Value: Hashable & Sendable>: Hashable, Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// Copies the value, passes the copy to `change`, and returns a reference to the changed copy.
    func changed(_ change: (inout Value) -> Void) -> Shared {
        var copy = value
        change(&copy)
        return Shared(copy)
    }

    static func == (left: Shared, right: Shared) -> Bool {
        left === right || left.value == right.value
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(value)
    }
}
