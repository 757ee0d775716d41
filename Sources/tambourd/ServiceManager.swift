import Dispatch
import Foundation
import Glibc
import TambourProtocol

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
        guard let path = environment["NOTIFY_SOCKET"],
            let socket = Self.socket(connectedTo: path)
        else { return nil }
        self.socket = socket
        // A wrapper may have left variables that are meant for itself.
        let isForThis = environment["WATCHDOG_PID"].map { $0 == String(processID) } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int($0) }
        watchdogMicroseconds = microseconds.flatMap { isForThis && $0 > 0 ? $0 : nil }
    }

    deinit { close(socket) }

    /// The server accepts connections.
    func reportReady() { send("READY=1\nSTATUS=Serving clients.") }

    /// The server reloads its files. `reportReady` ends the reload.
    func reportReloading() {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let microseconds = Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
        send("RELOADING=1\nMONOTONIC_USEC=\(microseconds)\nSTATUS=Loading files again.")
    }

    /// The server answers its last requests and stops.
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

    /// Connects a datagram socket to a path, or to an abstract name that starts with `@`.
    private static func socket(connectedTo path: String) -> Int32? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        guard name.first == UInt8(ascii: "/") || name.first == UInt8(ascii: "@"),
            name.count < MemoryLayout.size(ofValue: address.sun_path)
        else { return nil }
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(AF_UNIX, type, 0)
        guard socket >= 0 else { return nil }
        let length = MemoryLayout<sa_family_t>.size + name.count
        let status = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(length))
            }
        }
        if status == 0 { return socket }
        close(socket)
        return nil
    }
}
