import Foundation
import Glibc
import TambourNet
import TambourProtocol

/// Online users who read all pushes and discard them.
///
/// `@unchecked Sendable`: the thread owns the connections; the lock guards `isOver`.
final class Audience: @unchecked Sendable {
    private let lock = NSLock()
    private var isOver = false
    private let ended = DispatchSemaphore(value: 0)
    private let connections: [BlockingConnection]

    init(_ address: ListenAddress, _ accounts: [Account]) throws {
        connections = try accounts.map { account in
            let connection = try BlockingConnection(address)
            for packet in Attack.login(account) {
                try connection.write(packet)
                try connection.readAnswer()
            }
            return connection
        }
        Thread { [self] in
            listen()
            ended.signal()
        }.start()
    }

    private func listen() {
        var events = connections.map {
            pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0)
        }
        var scratch = [UInt8](repeating: 0, count: 256 << 10)
        while !lock.withLock({ isOver }) {
            poll(&events, nfds_t(events.count), 10)
            for event in events where event.revents & Int16(POLLIN) != 0 {
                _ = recv(event.fd, &scratch, scratch.count, Int32(MSG_DONTWAIT))
            }
        }
    }

    func leave() {
        lock.withLock { isOver = true }
        ended.wait()
    }
}
