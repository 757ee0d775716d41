import Glibc
import TambourProtocol

/// A peer's address in the form that limits use. Two peers that share a limit have equal addresses.
///
/// For IPv4, the form is the whole address. For IPv6, it is the first 64 bits, because a host
/// usually controls all addresses of its /64. An IPv4 address that is written as IPv6
/// (`::ffff:10.0.0.1`) is equal to the IPv4 address. Zone ids (`fe80::1%eth0`) are ignored.
package enum PeerAddress: Hashable, Sendable, CustomStringConvertible {
    case ipv4(UInt32)
    /// The first 64 bits.
    case ipv6(prefix: UInt64)
    /// Text that is not an IP address, such as the name of a local socket.
    case other(String)

    /// Parses an address without a port, with or without brackets and a zone id.
    package init(_ text: String) {
        var host = Substring(text)
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        if let zone = host.firstIndex(of: "%") { host = host[..<zone] }
        let address = String(host)
        var four = in_addr()
        if inet_pton(AF_INET, address, &four) == 1 {
            self = .ipv4(UInt32(bigEndian: four.s_addr))
            return
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, address, &six) == 1 else {
            self = .other(text)
            return
        }
        let (high, low) = withUnsafeBytes(of: &six) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        let isMapped = high == 0 && low >> 32 == 0xFFFF
        self = isMapped ? .ipv4(UInt32(truncatingIfNeeded: low)) : .ipv6(prefix: high)
    }

    /// Parses the value of `Connection.peer`: `127.0.0.1:43211` or `[::1]:43211`.
    package init(peer: String) {
        guard let colon = peer.lastIndex(of: ":") else {
            self = .other(peer)
            return
        }
        self.init(String(peer[..<colon]))
    }

    /// `10.0.0.1`, `2001:db8:0:1::/64`, or the text.
    package var description: String {
        switch self {
        case .ipv4(let address):
            return (0..<4).map { "\(address >> (24 - 8 * $0) & 0xFF)" }.joined(separator: ".")
        case .ipv6(let prefix):
            let groups = (0..<4).map { String(prefix >> (48 - 16 * $0) & 0xFFFF, radix: 16) }
            return groups.joined(separator: ":") + "::/64"
        case .other(let text):
            return text
        }
    }
}
