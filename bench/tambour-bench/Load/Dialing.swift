import Glibc
import TambourNet

/// Connects to `address`, from a source address of its own if one is given.
///
/// Many connections to one port need several source addresses: each has some 28,000 ports.
/// - Returns: a connected socket with Nagle's algorithm off.
func dial(_ address: ListenAddress, from source: String? = nil) throws -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address.host, String(address.port), &hints, &found) == 0, let found else {
        throw BenchError("\(address): no such host")
    }
    defer { freeaddrinfo(found) }
    let descriptor = socket(
        found.pointee.ai_family,
        found.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue),
        0
    )
    guard descriptor >= 0 else {
        throw BenchError("no socket: \(String(cString: strerror(errno)))")
    }
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
    if let source {
        // The port is chosen when the target is known, so that one port serves several targets.
        setsockopt(descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &on, 4)
        var own = sockaddr_in()
        own.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, source, &own.sin_addr)
        _ = withUnsafePointer(to: &own) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
    guard connect(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0 else {
        let reason = String(cString: strerror(errno))
        close(descriptor)
        throw BenchError("\(address): \(reason)")
    }
    return descriptor
}
