import Dispatch
import Foundation
import Glibc
import TambourProtocol
import TambourServer

/// Reports the server's state to systemd, for units with `Type=notify`.
///
/// Each message is one datagram to the socket that `NOTIFY_SOCKET` names; see sd_notify(3). A
/// message that cannot be sent is dropped: the server serves its clients anyway.
final class ServiceManager: Sendable {
    private let socket: Int32
    /// The time within which systemd expects a keep-alive; nil if the unit has no `WatchdogSec`.
    let watchdogMicroseconds: Int?
    private let queue = DispatchQueue(label: "tambourd.watchdog")

    /// Connects to the service manager that started this process. Also removes its variables from
    /// the environment, so that no child program can report in the server's name.
    ///
    /// - Returns: nil if no service manager waits for reports.
    static func connect() -> ServiceManager? {
        let environment = ProcessInfo.processInfo.environment
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] { unsetenv(name) }
        return ServiceManager(environment: environment, processID: getpid())
    }

    init?(environment: [String: String], processID: pid_t) {
        // systemd writes the NUL at the start of an abstract name as `@`.
        guard let name = environment["NOTIFY_SOCKET"], name.hasPrefix("/") || name.hasPrefix("@"),
            let socket = UnixSocket.connect(
                name.hasPrefix("@") ? "\0\(name.dropFirst())" : name,
                type: SOCK_DGRAM
            )
        else { return nil }
        self.socket = socket
        // A wrapper may have left variables that are meant for itself.
        let isForThis = environment["WATCHDOG_PID"].map { $0 == String(processID) } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int($0) }
        watchdogMicroseconds = microseconds.flatMap { isForThis && $0 > 0 ? $0 : nil }
    }

    deinit { close(socket) }

    /// Reports that the server accepts connections.
    func reportReady() { send("READY=1\nSTATUS=Serving clients.") }

    /// Reports that the server reloads its files. `reportReady` ends the reload.
    func reportReloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let microseconds = Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
        send("RELOADING=1\nMONOTONIC_USEC=\(microseconds)\nSTATUS=Reloading.")
    }

    /// Reports that the server answers the requests in flight and stops.
    func reportStopping() { send("STOPPING=1\nSTATUS=Answering the last requests.") }

    /// Sends a keep-alive in each quarter of the watchdog's timeout in which `isAlive` returns
    /// true. Does nothing without a watchdog.
    ///
    /// - Parameter isAlive: called on one queue, one call at a time, with the time that the answer
    ///   may take.
    func watch(_ isAlive: @escaping @Sendable (DispatchTimeInterval) -> Bool) {
        guard let watchdogMicroseconds else { return }
        let quarter = DispatchTimeInterval.microseconds(watchdogMicroseconds / 4)
        queue.asyncAfter(deadline: .now() + quarter) { [weak self] in
            guard let self else { return }
            if isAlive(quarter) { send("WATCHDOG=1") }
            watch(isAlive)
        }
    }

    private func send(_ message: String) {
        _ = Array(message.utf8).withUnsafeBytes {
            Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
    }
}
