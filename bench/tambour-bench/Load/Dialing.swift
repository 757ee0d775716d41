import Foundation
import Glibc
import TambourNet

/// Connects to `address`, optionally from a given source address.
///
/// Many connections to one port need several source addresses, because each source address has only
/// about 28,000 ports.
/// - Returns: a connected socket with Nagle's algorithm off.
/// - Throws: `BenchError` if the connection fails, or if `source` is not an address of the target's
///   family.
func dial(_ address: ListenAddress, from source: String? = nil) throws -> Int32 {
    let target = try Targets.shared.target(of: address)
    let descriptor = socket(
        target.family,
        Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue),
        0
    )
    do {
        try check(descriptor, "no socket")
        try set(Int32(IPPROTO_TCP), TCP_NODELAY, on: descriptor)
        if let source { try bindSource(source, target.family, descriptor) }
        let result = target.bytes.withUnsafeBytes { bytes in
            connect(
                descriptor,
                bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
                socklen_t(bytes.count)
            )
        }
        try check(result, "\(address)")
    } catch {
        if descriptor >= 0 { close(descriptor) }
        throw error
    }
    return descriptor
}

/// Binds only the source address. The kernel chooses the port later, when it knows the target. One
/// port can then serve several targets.
private func bindSource(_ source: String, _ family: Int32, _ descriptor: Int32) throws {
    // The option applies to any family: Linux also checks it for IPv6.
    try set(Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, on: descriptor)
    let own = try Target(resolving: source, port: nil, family: family)
    let result = own.bytes.withUnsafeBytes { bytes in
        bind(
            descriptor,
            bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
            socklen_t(bytes.count)
        )
    }
    try check(result, "source \(source)")
}

private func set(_ level: Int32, _ option: Int32, on descriptor: Int32) throws {
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    try check(setsockopt(descriptor, level, option, &on, size), "socket option \(option)")
}

private func check(_ result: Int32, _ what: String) throws {
    guard result >= 0 else { throw BenchError("\(what): \(String(cString: strerror(errno)))") }
}

/// An address in the kernel's format.
private struct Target {
    let family: Int32
    let bytes: [UInt8]

    /// - Parameters:
    /// - port: nil means that `host` is a numeric address and that the system chooses the port.
    /// - family: Permits only addresses of this family.
    init(resolving host: String, port: UInt16?, family: Int32 = AF_UNSPEC) throws {
        var hints = addrinfo()
        hints.ai_family = family
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        if port == nil { hints.ai_flags = AI_NUMERICHOST }
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, port.map { "\($0)" } ?? "0", &hints, &found)
        guard code == 0, let found else {
            throw BenchError("\(host): \(String(cString: gai_strerror(code)))")
        }
        defer { freeaddrinfo(found) }
        self.family = found.pointee.ai_family
        bytes = [UInt8](
            UnsafeRawBufferPointer(
                start: found.pointee.ai_addr,
                count: Int(found.pointee.ai_addrlen)
            )
        )
    }
}

/// Resolves each name once, so that 10,000 simultaneous connections do not cause 10,000 lookups.
///
/// `@unchecked Sendable`: the lock guards `known`.
private final class Targets: @unchecked Sendable {
    static let shared = Targets()

    private let lock = NSLock()
    private var known: [ListenAddress: Target] = [:]

    func target(of address: ListenAddress) throws -> Target {
        try lock.withLock {
            if let target = known[address] { return target }
            let target = try Target(resolving: address.host, port: address.port)
            known[address] = target
            return target
        }
    }
}
