import Dispatch
import Synchronization

/// A queue of values. Other threads add values, and a test waits for each value.
package final class Arrivals<Value: Sendable>: Sendable {
    package struct Nothing: Error, CustomStringConvertible {
        package let description = "nothing arrived"
    }

    private let values = Mutex<[Value]>([])
    private let semaphore = DispatchSemaphore(value: 0)

    /// The maximum time to wait for a value. Only failing tests wait that long.
    private static var patience: DispatchTimeInterval { .seconds(120) }

    package init() {}

    package func add(_ value: Value) {
        values.withLock { $0.append(value) }
        semaphore.signal()
    }

    /// Waits for the next value and removes it.
    package func next() throws -> Value {
        guard semaphore.wait(timeout: .now() + Self.patience) == .success else { throw Nothing() }
        return values.withLock { $0.removeFirst() }
    }

    /// The values that have arrived and have not been taken.
    package var waiting: [Value] { values.withLock { $0 } }
}
