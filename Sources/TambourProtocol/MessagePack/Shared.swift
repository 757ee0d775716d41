/// A value behind a reference: copying it costs one reference count, regardless of its size.
final class Shared<Value: Hashable & Sendable>: Hashable, Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// Returns a separate copy that `change` has modified.
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
