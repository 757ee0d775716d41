/// The servers that a client trusts.
package enum TLSTrust: Hashable, Sendable {
    /// The authorities that the system trusts.
    case system
    /// The certificates of a text in PEM, instead of the system's authorities. A server is trusted
    /// if its chain contains one of them, which need not be a root.
    case authorities(pem: String)
    /// A public key, by the SHA-256 of its SubjectPublicKeyInfo. Neither the name nor the time
    /// of the certificate counts.
    case pinned([UInt8])
}

/// The reason why a client has no TLS connection, told to the person who wants to connect.
package enum TLSRefusal: Hashable, Sendable {
    /// The server's bytes are no TLS, or break its rules.
    case notTLS
    /// Client and server share no version of TLS, cipher or group.
    case nothingShared(reason: String)
    /// No trusted authority has signed the certificate.
    ///
    /// - Parameter key: the SHA-256 of the server's SubjectPublicKeyInfo.
    case untrusted(reason: String, key: [UInt8])
    /// The certificate, or one of its chain, has expired.
    ///
    /// - Parameter atSeconds: seconds since 1970.
    case expired(atSeconds: Int64)
    /// The certificate, or one of its chain, becomes valid later.
    case notYetValid(beforeSeconds: Int64)
    /// The certificate is for other names.
    ///
    /// - Parameter names: its DNS names, at most `mostNames`.
    case wrongName(names: [String])
    /// The server has another key than the pinned one.
    case wrongKey([UInt8])
    /// The server requires a certificate of the client.
    case certificateRequired
    /// The server refused with another alert.
    case alert(reason: String)
    case other(reason: String)

    /// The number of names that a refusal may contain.
    static let mostNames = 4
    /// The length of such a name. A certificate may contain longer texts than DNS allows.
    static let mostNameCharacters = 253
}
