import Glibc
import TambourNet

/// The address of a server, and whether the connection is encrypted.
///
/// The text forms are `tls://HOST[:PORT]`, `tcp://HOST[:PORT]` and `HOST[:PORT]`; an IPv6 address
/// is in brackets. An address without a scheme means TLS, except for this machine: a loopback
/// address, `localhost`, or a name that ends with `.localhost` means TCP. A client never changes
/// the scheme by itself.
public struct ServerAddress: Hashable, Sendable, CustomStringConvertible {
    public enum Scheme: String, Sendable, CaseIterable {
        /// Encrypted. The server also proves its name.
        case tls
        /// Not encrypted, and the server does not prove its name. Everybody on the way can read and
        /// change everything.
        case tcp

        /// The port of an address that names no port.
        public var defaultPort: UInt16 {
            switch self {
            case .tls: 443
            case .tcp: 7770
            }
        }
    }

    public let scheme: Scheme
    /// A name in lower case, or an address without brackets.
    public let host: String
    public let port: UInt16

    /// Parses one of the text forms.
    ///
    /// - Throws: `ClientError.invalid`, with a reason for the person who typed the text.
    public init(_ text: String) throws(ClientError) {
        do {
            try self.init(parsing: text)
        } catch {
            throw .invalid(reason: "“\(text)” is no server's address: \(error.reason)")
        }
    }

    /// The address with its scheme and port, as it is stored.
    public var description: String {
        "\(scheme.rawValue)://\(ListenAddress(host: host, port: port))"
    }

    /// The host without the dot that ends an absolute DNS name. Certificates contain no such dot.
    var name: String { host.hasSuffix(".") ? String(host.dropLast()) : host }

    /// Whether the host is `localhost` or a name that ends with `.localhost`. Such a name is never
    /// looked up, because the answer could come from another machine (RFC 6761, section 6.3).
    var isLocalName: Bool { name == "localhost" || name.hasSuffix(".localhost") }

    private struct Mistake: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private init(parsing text: String) throws(Mistake) {
        var (scheme, rest) = (Scheme?.none, text[...])
        if let end = text.firstRange(of: "://") {
            scheme = Scheme(rawValue: text[..<end.lowerBound].lowercased())
            if scheme == nil { throw Mistake("write tls://HOST or tcp://HOST:PORT") }
            rest = text[end.upperBound...]
        }
        if let mark = rest.first(where: { "/?#@".contains($0) }) {
            throw Mistake("it has a name and a port only, and no “\(mark)”")
        }
        let (host, port) = try Self.split(rest)
        self.host = host
        let isLocal = Self.isLocal(host)
        self.scheme = scheme ?? (isLocal ? .tcp : .tls)
        self.port =
            try port.map { digits throws(Mistake) in try Self.port(digits) }
            ?? self.scheme.defaultPort
    }

    /// Splits `HOST[:PORT]`.
    private static func split(_ text: Substring) throws(Mistake) -> (String, Substring?) {
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else {
                throw Mistake("the bracket “]” is missing")
            }
            let (address, rest) = (text[..<end].dropFirst(), text[text.index(after: end)...])
            guard isIPv6(address) else { throw Mistake("“\(address)” is no IPv6 address") }
            guard rest.isEmpty || rest.hasPrefix(":") else {
                throw Mistake("after the bracket comes the port, as in [::1]:7770")
            }
            return (address.lowercased(), rest.isEmpty ? nil : rest.dropFirst())
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2 else {
            throw Mistake("an IPv6 address needs brackets, as in [::1]:7770")
        }
        let host = parts[0].lowercased()
        if let reason = mistake(inName: host) { throw Mistake(reason) }
        return (host, parts.count == 2 ? parts[1] : nil)
    }

    private static func port(_ digits: Substring) throws(Mistake) -> UInt16 {
        let isNumber = digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard isNumber, let number = Int64(digits), let port = UInt16(exactly: number), port > 0
        else {
            throw Mistake("the port “\(digits)” is no number from 1 to 65535")
        }
        return port
    }

    /// Checks a host name in lower case. Returns the mistake; nil if the text can be a DNS name or
    /// an IPv4 address.
    private static func mistake(inName host: String) -> String? {
        if host.isEmpty { return "the name is missing" }
        if !host.utf8.allSatisfy({ $0 < 0x80 }) {
            return "a name beyond ASCII is written in the form that begins with xn--"
        }
        let isName = host.utf8.allSatisfy {
            (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || "-._".utf8.contains($0)
        }
        var labels = host.split(separator: ".", omittingEmptySubsequences: false)
        if labels.last == "", labels.count > 1 { labels.removeLast() }
        guard isName, host.utf8.count <= 253,
            labels.allSatisfy({ (1...63).contains($0.utf8.count) })
        else { return "“\(host)” is no name of a host" }
        // The system would read a name whose last label is a number as an unusual IPv4 address.
        let isNumber = labels.last?.utf8.allSatisfy { (0x30...0x39).contains($0) } == true
        var bytes = in_addr()
        guard isNumber, inet_pton(AF_INET, host, &bytes) != 1 else { return nil }
        return labels.count == 1
            ? "the name is missing before the port “\(host)”" : "“\(host)” is no IPv4 address"
    }

    private static func isLocal(_ host: String) -> Bool {
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        return name == "localhost" || name.hasSuffix(".localhost")
            || ListenAddress(host: name, port: 0).isLoopback
    }

    private static func isIPv6(_ text: Substring) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET6, String(text), &bytes) == 1
    }
}
