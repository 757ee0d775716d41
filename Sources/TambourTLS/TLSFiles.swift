/// A certificate with its chain, and its private key, both in PEM.
package struct TLSPair: Hashable, Sendable {
    package let certificate: String
    package let key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// The files of a server that speaks TLS.
package struct TLSFiles: Hashable, Sendable {
    /// At least one pair. The first serves clients that name no known server.
    package let pairs: [TLSPair]
    /// The authorities that sign clients' certificates, in PEM. Without it, clients show none.
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
    /// The DNS names for which it is valid, in lower case.
    package let names: [String]
    /// The seconds since 1970 at which it expires.
    package let expires: Int64
}

/// An error in the configuration of TLS, described for the operator.
package struct TLSError: Error, Hashable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The classes of failed handshakes.
package enum TLSFailure: String, CaseIterable, Sendable {
    /// The peer left, or a deadline passed.
    case abandoned
    /// The bytes are no TLS, or break its rules.
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

/// The end of a handshake.
package enum TLSOutcome: Hashable, Sendable {
    /// - Parameter version: such as `TLSv1.3`.
    case completed(version: String, isResumed: Bool)
    /// - Parameter reason: for the log.
    case failed(TLSFailure, reason: String)
}
