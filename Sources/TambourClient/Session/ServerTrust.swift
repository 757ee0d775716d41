import Foundation
import TambourProtocol
import TambourTLS

/// Which servers a client trusts at an address with TLS.
public enum ServerTrust: Hashable, Sendable {
    /// Servers whose certificate an authority of the system has signed.
    case system
    /// Servers whose certificate chain contains one of these certificates. The system's authorities
    /// are then not trusted.
    ///
    /// - Parameter pem: certificates in PEM. Other contents of the text are ignored.
    case authorities(pem: String)
    /// The server with this key. The name and the validity period in its certificate do not matter.
    case pinned(ServerKeyDigest)
}

/// The SHA-256 digest of a server's public key in the form that its certificate contains
/// (SubjectPublicKeyInfo).
///
/// A renewed certificate with the same key has the same digest.
public struct ServerKeyDigest: Hashable, Sendable, CustomStringConvertible {
    /// 32 bytes.
    let bytes: [UInt8]

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Parses a digest: 64 hexadecimal digits, with or without colons, or Base64. The text may
    /// begin with `sha256:`, `sha256/` or `sha256//`.
    ///
    /// - Returns: nil for any other text.
    public init?(_ text: String) {
        var rest = text[...]
        for prefix in ["sha256:", "sha256//", "sha256/"] where rest.lowercased().hasPrefix(prefix) {
            rest = rest.dropFirst(prefix.count)
            break
        }
        let digits = rest.filter { $0 != ":" }
        if digits.utf8.count == 64 {
            var bytes: [UInt8] = []
            var left = digits[...]
            while !left.isEmpty {
                let values = left.prefix(2).compactMap(\.hexDigitValue)
                guard values.count == 2 else { return nil }
                bytes.append(UInt8(truncatingIfNeeded: values[0] << 4 | values[1]))
                left = left.dropFirst(2)
            }
            self.bytes = bytes
        } else if let data = Data(base64Encoded: String(rest)), data.count == 32 {
            bytes = [UInt8](data)
        } else {
            return nil
        }
    }

    /// The digest as `sha256:` and 64 hexadecimal digits.
    public var description: String {
        let digits = bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0\(digits)" : digits
        }
        return "sha256:\(digits.joined())"
    }
}

extension ServerTrust {
    /// The text in the local store; nil for `system`.
    var stored: String? {
        switch self {
        case .system: nil
        case .authorities(let pem): pem
        case .pinned(let key): key.description
        }
    }

    init(stored: String?) {
        guard let stored else {
            self = .system
            return
        }
        self = ServerKeyDigest(stored).map { .pinned($0) } ?? .authorities(pem: stored)
    }

    /// The trust, reduced to the certificates in its text. Other parts of the text may be keys,
    /// which must not be stored.
    var withCertificatesOnly: ServerTrust {
        guard case .authorities(let pem) = self else { return self }
        var lines: [Substring] = []
        var isInside = false
        for line in pem.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("-----BEGIN ") { isInside = line.contains("CERTIFICATE-----") }
            if isInside { lines.append(line) }
            if line.hasPrefix("-----END ") { isInside = false }
        }
        return .authorities(pem: lines.map { "\($0)\n" }.joined())
    }

    /// The trust as OpenSSL needs it.
    var forTLS: TLSTrust {
        switch self {
        case .system: .system
        case .authorities(let pem): .authorities(pem: pem)
        case .pinned(let key): .pinned(key.bytes)
        }
    }

    /// Checks that this trust can apply to an address. Only an address with TLS has a certificate.
    ///
    /// - Throws: `ClientError.invalid` if the address has no TLS and the trust is not `system`.
    func requireTLS(at address: ServerAddress) throws(ClientError) {
        guard address.scheme == .tls || self == .system else {
            throw .invalid(
                reason: "\(address) has no certificate to check: write tls:// before its name"
            )
        }
    }

    /// Checks that a TLS client with this trust can be created.
    ///
    /// - Throws: `ClientError.invalid` for a text without certificates, and in a build without TLS.
    func check() throws(ClientError) {
        do {
            _ = try TLSClient(forTLS)
        } catch {
            throw .invalid(reason: "TLS cannot be used: \(error)")
        }
    }
}
