import Synchronization

/// Calls a closure once, when `step()` has been called a given number of times. Any thread may call
/// `step()`.
package final class Countdown: Sendable {
    private let left: Atomic<Int>
    private let body: @Sendable () -> Void

    package init(from count: Int, _ body: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.body = body
    }

    package func step() {
        if left.subtract(1, ordering: .relaxed).newValue == 0 { body() }
    }
}
