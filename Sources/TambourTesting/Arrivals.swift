import Dispatch
import Synchronization

/// A queue of values that other threads add; a test waits for them one by one.
package final class Arrivals<Value: Sendable>: Sendable {
    package struct Nothing: Error, CustomStringConvertible {
        package let description = "nothing arrived"
    }

    private let values = Mutex<[Value]>([])
    private let semaphore = DispatchSemaphore(value: 0)

    /// The longest wait for a value. It only ends tests that fail: no test waits for it on purpose.
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

    /// The values that have arrived and were not taken.
    package var waiting: [Value] { values.withLock { $0 } }
}
