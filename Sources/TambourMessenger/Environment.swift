import Glibc
import TambourProtocol
package import TambourQueues
package import TambourSQL
package import TambourStore

/// The server's inputs from outside: the wall clock and randomness. A simulation also replaces
/// threads and the disk here.
///
/// Code that handles requests reads these inputs only from here. Tests and simulations can
/// therefore control them.
package struct Environment: Sendable {
    /// Returns the wall clock's time, in Unix milliseconds.
    package var wallMs: @Sendable () -> Int64
    /// Returns `count` unpredictable bytes.
    package var randomBytes: @Sendable (_ count: Int) -> [UInt8]
    /// The source of new users' ids.
    package var userIDs: UserIDSource
    /// Runs all queues and is their clock. If nil, Dispatch runs the queues, and they use the
    /// machine's clock.
    package var scheduler: (any SimulatedScheduler)?
    /// Wraps the store connections of the engine and the readers; nil for no wrapper.
    package var disk: Disk?
    /// Whether the engine does background work. Tests that count the cost of a request turn
    /// background work off.
    package var doesSpareWork = true

    package typealias Disk =
        @Sendable (
            _ connection: any SQLConnection, _ mode: SQLMode
        ) -> any SQLConnection

    /// - Parameter userIDs: the source of new users' ids; nil for random ids from `randomBytes`.
    package init(
        wallMs: @escaping @Sendable () -> Int64,
        randomBytes: @escaping @Sendable (_ count: Int) -> [UInt8],
        userIDs: UserIDSource? = nil,
        scheduler: (any SimulatedScheduler)? = nil,
        disk: Disk? = nil
    ) {
        self.wallMs = wallMs
        self.randomBytes = randomBytes
        self.userIDs = userIDs ?? .random(randomBytes)
        self.scheduler = scheduler
        self.disk = disk
    }

    /// The machine's clock and the kernel's random source.
    package static let live = Environment(
        wallMs: {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
        },
        randomBytes: { count in
            var generator = SystemRandomNumberGenerator()
            return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        }
    )
}
