import Glibc

/// The address of a listener, such as `127.0.0.1:7770`, `[::1]:0` or `localhost:7770`. For port 0,
/// the system chooses a port.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// An error in an address, with a description for the person who typed the address.
    package struct ParseError: Error, Hashable, CustomStringConvertible {
        package let text: String
        package let reason: String

        package var description: String { "address \"\(text)\": \(reason)" }
    }

    /// A host name or address, without brackets.
    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Parses `HOST:PORT`. An IPv6 address must be in brackets.
    /// - Throws: `ParseError`.
    package init(_ text: String) throws(ParseError) {
        func refuse(_ reason: String) -> ParseError { ParseError(text: text, reason: reason) }

        guard let colon = text.lastIndex(of: ":") else { throw refuse("expected HOST:PORT") }
        var host = text[..<colon]
        let digits = text[text.index(after: colon)...]
        if host.hasPrefix("[") {
            guard host.hasSuffix("]") else {
                throw refuse("expected a port after the bracket, as in [::1]:7770")
            }
            host = host.dropFirst().dropLast()
            guard isIPv6(host) else { throw refuse("\"\(host)\" is not an IPv6 address") }
        } else if host.contains(":") {
            throw refuse("an IPv6 address needs brackets, as in [::1]:7770")
        } else if host.isEmpty || host == "*" {
            throw refuse("the host is missing; every interface is 0.0.0.0 or [::]")
        } else if host.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) {
            throw refuse("the host contains a blank or a control character")
        }
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw refuse("the port \"\(digits)\" is not a number")
        }
        guard let port = UInt16(digits) else { throw refuse("the port is above 65535") }
        self.init(host: String(host), port: port)
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Whether only this machine can reach the address. This is true for 127.0.0.0/8 (also when
    /// mapped to IPv6), `::1` and `localhost`.
    ///
    /// Other names are not resolved. They count as reachable from outside.
    package var isLoopback: Bool {
        if host == "localhost" { return true }
        var four = in_addr()
        if inet_pton(AF_INET, host, &four) == 1 {
            return UInt32(bigEndian: four.s_addr) >> 24 == 127
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, host, &six) == 1 else { return false }
        return withUnsafeBytes(of: &six) { bytes in
            let leading = bytes.prefix(10).allSatisfy { $0 == 0 }
            let isOne = bytes[10..<15].allSatisfy { $0 == 0 } && bytes[15] == 1
            let isMapped = bytes[10] == 0xFF && bytes[11] == 0xFF && bytes[12] == 127
            return leading && (isOne || isMapped)
        }
    }
}

private func isIPv6(_ text: Substring) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET6, String(text), &address) == 1
}
