import Glibc

/// Milliseconds of the monotonic clock.
func monotonicMs() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

func makeNonBlocking(_ descriptor: Int32) {
    let flags = fcntl(descriptor, F_GETFL)
    if flags >= 0, flags & O_NONBLOCK == 0 { _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
}

/// The error a socket holds, which reading it clears; zero when none.
func socketError(of descriptor: Int32) -> Int32 {
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
    return error
}

extension Duration {
    /// Rounded up: a deadline must not come early.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let whole = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        // A thousand years stand for ever, and leave room for additions.
        let longest: Int64 = 31_557_600_000_000
        return overflow ? (seconds < 0 ? -longest : longest) : min(product + whole, longest)
    }
}
