/// A value behind a reference: copying it counts one reference, whatever it holds.
final class Shared<Value: Hashable & Sendable>: Hashable, Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// A copy of its own with what `change` did to it.
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
