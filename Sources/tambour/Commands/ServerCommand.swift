import ArgumentParser
import TambourClient

struct ServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server",
        abstract: "Shows the account's server and whom it trusts there, or changes them.",
        discussion: """
            An account that has connected without TLS keeps doing so until this command gives it a tls:// address. The host stays the \
            same, because another host must not get the account's token. A `tambour` that is connected uses the change at its next \
            connection.

            EXAMPLES
              tambour server
              tambour server tls://chat.example.org
              tambour server --ca authority.pem
            """
    )

    @OptionGroup var account: AccountOptions

    @OptionGroup var trust: TrustOptions

    @Argument(help: "The new address: tls://HOST, tls://HOST:PORT or tcp://HOST:PORT.")
    var server: String?

    func validate() throws { _ = try server?.serverAddress() }

    func run() async throws {
        let address = try server?.serverAddress()
        let client = try account.signedIn()
        let known = try client.server()
        if let address, let known, address.host != known.host {
            await client.stop()
            throw Failure(
                "The account belongs to \(known.host), and \(address.host) must not get its token. `tambour login --account NAME` signs in there."
            )
        }
        await client.stop()
        let changed = try account.client(server: server, trust: trust.chosen())
        if let server = try changed.server() {
            let trust = server.scheme == .tls ? try changed.trust().words : "not encrypted"
            try say("\(server)\t\(trust)")
        }
        await changed.stop()
    }
}
