/// A client's self-description at sign-in. It is stored with the session, and SESSIONS_INFO (96)
/// shows it.
package struct SessionOrigin: Sendable {
    /// The client's own stable name for this installation.
    package let installation: String
    package let client: String
    package let info: String
    package let address: String
    /// The name of the client's dialect; empty for a client without a dialect.
    package var dialect: String

    package init(
        installation: String,
        client: String,
        info: String,
        address: String,
        dialect: String = ""
    ) {
        self.installation = installation
        self.client = client
        self.info = info
        self.address = address
        self.dialect = dialect
    }
}
