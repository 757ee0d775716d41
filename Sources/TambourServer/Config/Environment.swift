import Glibc

/// What the server takes from outside itself: the wall clock and randomness.
///
/// Nothing on a request's path reads either in another way, so a test or a simulation can drive both.
package struct Environment: Sendable {
    /// Unix milliseconds.
    package var wallMs: @Sendable () -> Int64
    /// As many unpredictable bytes as asked for.
    package var randomBytes: @Sendable (_ count: Int) -> [UInt8]

    package init(
        wallMs: @escaping @Sendable () -> Int64,
        randomBytes: @escaping @Sendable (_ count: Int) -> [UInt8]
    ) {
        self.wallMs = wallMs
        self.randomBytes = randomBytes
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
