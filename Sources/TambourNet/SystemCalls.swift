import Glibc

func makeNonBlocking(_ descriptor: Int32) {
    let flags = fcntl(descriptor, F_GETFL)
    if flags >= 0, flags & O_NONBLOCK == 0 { _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
}

/// Returns a socket's pending error and clears it. Returns zero if there is no error.
func socketError(of descriptor: Int32) -> Int32 {
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
    return error
}

extension Duration {
    /// The duration in whole milliseconds. It is rounded up, because a deadline must not fire
    /// early.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let whole = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        // Limit the result to a thousand years, so that later additions do not overflow.
        let longest: Int64 = 31_557_600_000_000
        return overflow ? (seconds < 0 ? -longest : longest) : min(product + whole, longest)
    }
}
