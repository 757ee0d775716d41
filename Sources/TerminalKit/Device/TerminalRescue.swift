import Glibc

/// Restores a terminal when the program ends unexpectedly: by `exit`, a trap or a fault.
///
/// Covers one terminal at a time. The signal handler uses only memory prepared beforehand.
package enum TerminalRescue {
    private struct Prepared {
        var descriptor: Int32
        var settings: termios
        var bytes: UnsafeMutableBufferPointer<UInt8>
    }

    private static let signals = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP]

    // `nonisolated(unsafe)`: `previous` is written once, in `install`. At any time, `prepared` is
    // nil or points to a complete entry. The first handler that runs clears `prepared`, and later
    // handlers then do nothing.
    private nonisolated(unsafe) static var prepared: UnsafeMutablePointer<Prepared>?
    private nonisolated(unsafe) static var previous: UnsafeMutablePointer<sigaction>?

    /// - Parameters:
    ///   - settings: The settings to restore.
    ///   - bytes: The bytes to write before the settings are restored.
    static func arm(descriptor: Int32, settings: termios, bytes: [UInt8]) {
        disarm()
        if previous == nil { install() }
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        let entry = UnsafeMutablePointer<Prepared>.allocate(capacity: 1)
        entry.initialize(
            to: Prepared(descriptor: descriptor, settings: settings, bytes: copy)
        )
        prepared = entry
    }

    static func disarm() {
        guard let entry = prepared else { return }
        prepared = nil
        entry.pointee.bytes.deallocate()
        entry.deallocate()
    }

    private static func install() {
        let saved = UnsafeMutablePointer<sigaction>.allocate(capacity: signals.count)
        for (index, number) in signals.enumerated() {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { number in
                TerminalRescue.rescue()
                TerminalRescue.passOn(number)
            }
            saved.advanced(by: index).initialize(to: sigaction())
            sigaction(number, &action, saved.advanced(by: index))
        }
        previous = saved
        atexit { TerminalRescue.rescue() }
    }

    private static func rescue() {
        guard let entry = prepared else { return }
        prepared = nil
        let bytes = entry.pointee.bytes
        _ = fcntl(entry.pointee.descriptor, F_SETFL, O_RDWR)
        _ = write(entry.pointee.descriptor, bytes.baseAddress, bytes.count)
        tcsetattr(entry.pointee.descriptor, TCSANOW, &entry.pointee.settings)
    }

    /// Restores the previous handler of the signal. The signal then occurs again and runs the
    /// previous handler.
    private static func passOn(_ number: Int32) {
        guard let previous, let index = signals.firstIndex(of: number) else { return }
        sigaction(number, previous.advanced(by: index), nil)
    }
}
