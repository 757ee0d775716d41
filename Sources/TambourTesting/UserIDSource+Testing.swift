import Synchronization
package import TambourStore

extension UserIDSource {
    /// A source of ascending ids, for tests that name ids or need their order.
    ///
    /// - Parameter first: large by default, so that ids take as many bytes as random ids.
    package static func rising(from first: UInt64 = 1 << 42 + 1) -> Self {
        let next = Next(first)
        return Self { next.value.add(1, ordering: .relaxed).oldValue }
    }

    private final class Next: Sendable {
        let value: Atomic<UInt64>

        init(_ first: UInt64) { value = Atomic(first) }
    }
}
