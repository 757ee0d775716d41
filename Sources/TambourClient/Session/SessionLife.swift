import TambourProtocol

/// Which connection and account an answer belongs to.
struct SessionLife {
    /// The number of ended connections and sign-outs so far. A reply is valid only if the number
    /// has not changed since its request.
    private(set) var number = 0
    /// Whether the connection is logged in to an account that is not stored here, or is no longer
    /// stored here.
    private(set) var isForeign = false

    /// Ends the life of a connection.
    mutating func disconnected() {
        isForeign = false
        number += 1
    }

    /// Ends the life of an account. The connection may stay open until the server has logged the
    /// account out.
    mutating func signedOut() { number += 1 }

    /// Records that the server has not yet logged out the account of this connection.
    mutating func logsOut() { isForeign = true }
}
