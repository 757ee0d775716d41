import Foundation
package import Glibc

/// A listener on the loopback address that is not a Tambour server.
///
/// `@unchecked Sendable`: no property changes after `init`.
package final class RawListener: @unchecked Sendable {
    /// What the listener does with a caller. A caller is a client that connects.
    package enum Manner: Sendable {
        /// Answers the caller's first bytes, and waits until the caller closes.
        case answers([UInt8])
        /// Closes after the caller's first bytes.
        case closes
        /// Reads the caller's first bytes. Does not answer, and does not close.
        case stalls
        /// Never accepts a caller. Connections succeed until the kernel's queue is full.
        case ignores
    }

    /// The first bytes that each accepted caller sent, in the order of arrival.
    package let heard = Arrivals<[UInt8]>()
    package let port: UInt16
    private let descriptor: Int32
    /// Whether a thread accepts callers. Such a thread closes the descriptor when it ends.
    private let hasThread: Bool

    /// - Parameters:
    ///   - port: 0 for a free port.
    ///   - backlog: the length of the kernel's queue.
    package init(_ manner: Manner, port: UInt16 = 0, backlog: Int32 = 16) throws {
        (descriptor, self.port) = try Loopback.listen(on: port, backlog: backlog)
        if case .ignores = manner { hasThread = false } else { hasThread = true }
        guard hasThread else { return }
        let (descriptor, heard) = (descriptor, heard)
        Thread.detachNewThread {
            var kept: [Int32] = []
            while case let caller = accept(descriptor, nil, nil), caller >= 0 {
                var buffer = [UInt8](repeating: 0, count: 4096)
                let count = max(0, read(caller, &buffer, buffer.count))
                heard.add(Array(buffer[..<count]))
                switch manner {
                case .stalls:
                    kept.append(caller)
                    continue
                case .answers(let bytes):
                    _ = bytes.withUnsafeBytes { write(caller, $0.baseAddress, $0.count) }
                    Glibc.shutdown(caller, Int32(SHUT_WR))
                    while read(caller, &buffer, buffer.count) > 0 {}
                case .closes, .ignores: break
                }
                close(caller)
            }
            for caller in kept { close(caller) }
            close(descriptor)
        }
    }

    package var address: String { "127.0.0.1:\(port)" }

    /// Stops accepting callers. From now on the kernel refuses new callers.
    package func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    deinit {
        if !hasThread { close(descriptor) }
    }
}

/// Functions for sockets on the loopback address.
package enum Loopback {
    package static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Opens a listening socket.
    ///
    /// - Parameter port: 0 for a free port.
    package static func listen(
        on port: UInt16 = 0,
        backlog: Int32
    ) throws -> (socket: Int32, port: UInt16) {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let listener = socket(AF_INET, type, 0)
        var (on, address) = (Int32(1), address(port: port))
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && Glibc.listen(listener, backlog) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        guard isListening else {
            let error = errno
            close(listener)
            throw WireClient.Failure.unexpected("no listener on port \(port): errno \(error)")
        }
        return (listener, UInt16(bigEndian: address.sin_port))
    }
}
