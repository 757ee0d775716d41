/// The servers that a client trusts.
package enum TLSTrust: Hashable, Sendable {
    /// The authorities that the system trusts.
    case system
    /// The certificates in a text in PEM format, instead of the system's authorities. The client
    /// trusts a server if the server's chain contains one of these certificates. The certificate
    /// need not be a root.
    case authorities(pem: String)
    /// One public key, given by the SHA-256 of its SubjectPublicKeyInfo. The client ignores the
    /// name and the dates in the certificate.
    case pinned([UInt8])
}

/// The reason why a client has no TLS connection. The client shows it to the user.
package enum TLSRefusal: Hashable, Sendable {
    /// The server's bytes are not TLS, or violate the rules of TLS.
    case notTLS
    /// The client and the server have no version of TLS, cipher or group in common.
    case nothingShared(reason: String)
    /// No trusted authority has signed the certificate.
    ///
    /// - Parameter key: the SHA-256 of the server's SubjectPublicKeyInfo.
    case untrusted(reason: String, key: [UInt8])
    /// The certificate, or another certificate of its chain, has expired.
    ///
    /// - Parameter atSeconds: the time of the expiry, in seconds since 1970.
    case expired(atSeconds: Int64)
    /// The certificate, or another certificate of its chain, is not valid yet.
    case notYetValid(beforeSeconds: Int64)
    /// The certificate is for other names.
    ///
    /// - Parameter names: the certificate's DNS names, at most `mostNames`.
    case wrongName(names: [String])
    /// The server's key is not the pinned key.
    case wrongKey([UInt8])
    /// The server requires a certificate from the client.
    case certificateRequired
    /// The server refused the client with another alert.
    case alert(reason: String)
    case other(reason: String)

    /// The maximum number of names in a refusal.
    static let mostNames = 4
    /// The maximum length of a name in a refusal. A certificate may contain a longer text than DNS
    /// allows.
    static let mostNameCharacters = 253
}
