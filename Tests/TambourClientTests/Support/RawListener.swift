import Dispatch
import Foundation
import Glibc
import TambourTesting

/// A loopback listener that is no Tambour server. It keeps the first bytes of each caller.
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class RawListener: @unchecked Sendable {
    /// What it does with a caller after the caller's first bytes.
    enum Manner: Sendable {
        case answers([UInt8])
        case closes
        /// Neither answers nor closes.
        case stalls
    }

    /// The first bytes of each caller, in order.
    let heard = Arrivals<[UInt8]>()
    let port: UInt16
    private let descriptor: Int32

    init(_ manner: Manner) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isOpen = withUnsafeMutablePointer(to: &place) { place in
            place.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isOpen else { throw WireClient.Failure.unexpected("no listener: \(errno)") }
        port = UInt16(bigEndian: place.sin_port)
        let heard = heard
        Thread.detachNewThread {
            var kept: [Int32] = []
            while case let caller = accept(descriptor, nil, nil), caller >= 0 {
                var buffer = [UInt8](repeating: 0, count: 4096)
                let count = max(0, read(caller, &buffer, buffer.count))
                heard.add(Array(buffer[..<count]))
                if case .stalls = manner {
                    kept.append(caller)
                    continue
                }
                if case .answers(let bytes) = manner {
                    _ = bytes.withUnsafeBytes { write(caller, $0.baseAddress, $0.count) }
                    Glibc.shutdown(caller, Int32(SHUT_WR))
                    while read(caller, &buffer, buffer.count) > 0 {}
                }
                close(caller)
            }
            for caller in kept { close(caller) }
            close(descriptor)
        }
    }

    /// Accepts no more callers.
    func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
