/// The paths of two files in PEM format: a certificate with its chain, and its private key.
package struct TLSPair: Hashable, Sendable {
    package let certificate: String
    package let key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// The paths of the files that a TLS server needs.
package struct TLSFiles: Hashable, Sendable {
    /// The certificates, at least one pair. The server uses the first pair for a client that names
    /// no server or an unknown server.
    package let pairs: [TLSPair]
    /// The file, in PEM format, of the authorities that sign clients' certificates. If it is nil,
    /// the server does not request a certificate from clients.
    package let clientAuthorities: String?

    package init(pairs: [TLSPair], clientAuthorities: String? = nil) {
        self.pairs = pairs
        self.clientAuthorities = clientAuthorities
    }

    /// The paths of all files.
    package var paths: [String] {
        pairs.flatMap { [$0.certificate, $0.key] } + (clientAuthorities.map { [$0] } ?? [])
    }
}

/// A certificate that a server presents.
package struct TLSCertificate: Hashable, Sendable {
    package let path: String
    /// The DNS names for which the certificate is valid, in lower case.
    package let names: [String]
    /// The time at which the certificate expires, in seconds since 1970.
    package let expires: Int64
}

/// An error in the configuration of TLS, described for the operator.
package struct TLSError: Error, Hashable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The reasons why a handshake fails.
package enum TLSFailure: String, CaseIterable, Sendable {
    /// The peer left, or a deadline passed.
    case abandoned
    /// The bytes are not TLS, or violate the rules of TLS.
    case notTLS
    /// The peer offers no accepted version of TLS.
    case version
    /// The peer offers no accepted cipher, group or signature.
    case cipher
    /// The peer shows no certificate, or a certificate that is not trusted.
    case untrusted
    /// The peer's certificate is for another name.
    case wrongName
    /// The peer refused with an alert.
    case alert
    case other
}

/// The result of a handshake.
package enum TLSOutcome: Hashable, Sendable {
    /// - Parameter version: the version of TLS, such as `TLSv1.3`.
    case completed(version: String, isResumed: Bool)
    /// - Parameter reason: the reason for the log.
    case failed(TLSFailure, reason: String)
}
