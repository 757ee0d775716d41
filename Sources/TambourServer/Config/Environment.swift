import Glibc
package import TambourNet
import TambourProtocol
package import TambourSQL
package import TambourStore

/// What the server takes from outside itself: the wall clock and randomness, and what a simulation puts
/// in place of threads and disk.
///
/// Nothing on a request's path reads them in another way, so a test or a simulation can drive them.
package struct Environment: Sendable {
    /// Unix milliseconds.
    package var wallMs: @Sendable () -> Int64
    /// As many unpredictable bytes as asked for.
    package var randomBytes: @Sendable (_ count: Int) -> [UInt8]
    /// Where the ids of new users come from.
    package var userIDs: UserIDSource
    /// Runs all queues and is their clock; nil for Dispatch and the machine's.
    package var scheduler: (any SimulatedScheduler)?
    /// Stands before the connections of engine and readers; nil for nothing.
    package var disk: Disk?
    /// Whether the engine works on what can wait; tests that count what a request costs say no.
    package var doesSpareWork = true

    package typealias Disk =
        @Sendable (
            _ connection: any SQLConnection, _ mode: SQLiteConnection.Mode
        ) -> any SQLConnection

    /// - Parameter userIDs: nil for random ones, made of `randomBytes`.
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
