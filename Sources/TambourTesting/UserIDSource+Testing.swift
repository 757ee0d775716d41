import Synchronization
package import TambourStore

extension UserIDSource {
    /// Returns a source of ascending ids, for tests that contain ids or depend on the order of ids.
    ///
    /// - Parameter first: the first id. By default it is large, so that the ids have the same size
    ///   on the wire as random ids.
    package static func rising(from first: UInt64 = 1 << 42 + 1) -> Self {
        let next = Next(first)
        return Self { next.value.add(1, ordering: .relaxed).oldValue }
    }

    private final class Next: Sendable {
        let value: Atomic<UInt64>

        init(_ first: UInt64) { value = Atomic(first) }
    }
}
