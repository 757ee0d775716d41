import Glibc

/// The line discipline of a terminal: raw while a full-screen program runs, then restored.
package struct TerminalLine {
    let descriptor: Int32
    private let original: termios
    private let originalFlags: Int32

    /// Saves the current settings of the terminal.
    package init(_ descriptor: Int32) throws(TerminalError) {
        self.descriptor = descriptor
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else {
            throw errno == ENOTTY ? .notATerminal : .system(call: "tcgetattr", code: errno)
        }
        original = settings
        originalFlags = fcntl(descriptor, F_GETFL)
    }

    var originalSettings: termios { original }

    /// Turns off echo, line mode, translation and blocking reads. Also turns off all signal keys;
    /// if `keepsSignals` is set, turns off only the quit key.
    func makeRaw(keepsSignals: Bool) throws(TerminalError) {
        var raw = original
        cfmakeraw(&raw)
        if keepsSignals {
            raw.c_lflag |= tcflag_t(ISIG)
            withUnsafeMutableBytes(of: &raw.c_cc) { $0[Int(VQUIT)] = 0 }
        }
        try apply(raw)
        _ = fcntl(descriptor, F_SETFL, originalFlags | O_NONBLOCK)
    }

    /// Discards unread input and restores the original settings.
    func restore() {
        tcflush(descriptor, TCIFLUSH)
        try? apply(original)
        _ = fcntl(descriptor, F_SETFL, originalFlags)
    }

    /// Whether unread input exists.
    var hasBytes: Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) > 0
    }

    /// The size in columns and rows; 80 by 24 if the terminal does not report it.
    package var size: Size {
        var window = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0,
            window.ws_row > 0
        else { return Size(columns: 80, rows: 24) }
        return Size(columns: Int(window.ws_col), rows: Int(window.ws_row))
    }

    /// Applies settings. Does not wait for pending output, because a stopped terminal would never
    /// accept it. A process in the background stops here until it is in the foreground again.
    private func apply(_ settings: termios) throws(TerminalError) {
        var settings = settings
        while tcsetattr(descriptor, TCSANOW, &settings) != 0 {
            guard errno == EINTR else { throw .system(call: "tcsetattr", code: errno) }
        }
    }
}
