import Dispatch
import Glibc
import Synchronization
import Testing

@testable import TerminalKit

/// A pseudo-terminal. The test controls the side that a terminal program would have.
final class PseudoTerminal {
    struct Failed: Error {
        var call: String
    }

    /// The longest time that a test waits for an event. A test that passes does not depend on this
    /// time.
    static let patienceMs: Int32 = 60_000

    private(set) var master: Int32
    let slave: Int32
    /// The bytes read from the program so far.
    private(set) var received: [UInt8] = []

    init(size: Size = Size(columns: 30, rows: 8)) throws {
        // The numbers of the requests that unlockpt and ptsname make. Swift does not import these
        // functions of glibc.
        let unlock: UInt = 0x4004_5431  // TIOCSPTLCK
        let getNumber: UInt = 0x8004_5430  // TIOCGPTN
        master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var zero: Int32 = 0
        var number: Int32 = 0
        guard master >= 0, ioctl(master, unlock, &zero) == 0,
            ioctl(master, getNumber, &number) == 0
        else { throw Failed(call: "ptmx") }
        let name = "/dev/pts/\(number)"
        slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard slave >= 0 else { throw Failed(call: "open") }
        resize(to: size)
    }

    deinit {
        hangUp()
        close(slave)
    }

    func resize(to size: Size) {
        var window = winsize()
        window.ws_col = UInt16(size.columns)
        window.ws_row = UInt16(size.rows)
        _ = ioctl(master, UInt(TIOCSWINSZ), &window)
    }

    func hangUp() {
        if master >= 0 { close(master) }
        master = -1
    }

    func type(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(master, bytes, bytes.count)
    }

    /// Reads until `isEnough` returns true for the bytes received so far.
    func read(until isEnough: ([UInt8]) -> Bool) throws {
        while !isEnough(received) {
            var polled = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
            guard poll(&polled, 1, Self.patienceMs) > 0 else { throw Failed(call: "poll") }
            var buffer = [UInt8](repeating: 0, count: 65536)
            let count = Glibc.read(master, &buffer, buffer.count)
            guard count > 0 else { throw Failed(call: "read") }
            received += buffer[..<count]
        }
    }

    func read(until text: String) throws {
        try read { String(decoding: $0, as: UTF8.self).contains(text) }
    }

    var receivedText: String { String(decoding: received, as: UTF8.self) }

    var localFlags: tcflag_t {
        var settings = termios()
        tcgetattr(slave, &settings)
        return settings.c_lflag
    }
}

/// Values that arrive on a queue. A test waits for them one by one.
final class Arrivals<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    private let semaphore = DispatchSemaphore(value: 0)

    func add(_ value: Value) {
        values.withLock { $0.append(value) }
        semaphore.signal()
    }

    /// - Parameter nudge: A function that is called repeatedly until a value arrives.
    func next(nudge: (() -> Void)? = nil) throws -> Value {
        for _ in 0..<Int(PseudoTerminal.patienceMs) / 20 {
            nudge?()
            if semaphore.wait(timeout: .now() + .milliseconds(20)) == .success {
                return values.withLock { $0.removeFirst() }
            }
        }
        throw PseudoTerminal.Failed(call: "next")
    }
}
