import ArgumentParser
import TambourClient
import TerminalKit

struct LogIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Signs in, and registers a new phone number.",
        discussion: """
            The login code, the name of a new user and a password are asked for on the terminal, or read from the standard input, one \
            line each. A new --account creates an account on this device.

            A server without a scheme means tls://, except a loopback address, which means tcp://. An address with tcp:// is not \
            encrypted. Without a port, tls:// means \(ServerAddress.Scheme.tls.defaultPort) and tcp:// means \
            \(ServerAddress.Scheme.tcp.defaultPort).

            EXAMPLES
              tambour login chat.example.org +79990000001
              tambour login --account work tls://chat.example.org:7443 +79990000002
              tambour login tls://localhost:7443 --ca ca.pem +79990000001
              tambour login tcp://192.168.1.10:7770 --qr
              tambour login 127.0.0.1:7770 --token < token.txt
            """
    )

    @OptionGroup var account: AccountOptions

    @OptionGroup var trust: TrustOptions

    @Argument(help: "The server: tls://HOST, tls://HOST:PORT or tcp://HOST:PORT.")
    var server: String

    @Argument(help: "The phone number: digits, with or without a plus.")
    var phone: String?

    @Option(help: "The code of an invitation, for a server that takes only invited people.")
    var invite: String?

    @Flag(help: "Reads a token from the standard input, instead of asking for a code.")
    var token = false

    @Flag(help: "Shows a QR code that a device of the account approves.")
    var qr = false

    func validate() throws {
        if [token, qr, phone != nil].count(where: \.self) != 1 {
            throw ValidationError("Give the phone number to sign in with, --qr or --token.")
        }
        _ = try server.serverAddress()
    }

    func run() async throws {
        if let client = try await account.clientIfSignedIn() {
            await client.stop()
            throw Failure(
                "The account “\(try account.name())” is signed in already. `tambour logout` signs it out and erases its data; `--account NAME` signs in to another account."
            )
        }
        let trust = try trust.chosen()
        if try !account.exists() {
            remark(printable("Creating the account “\(try account.name())” on this device."))
        }
        let client = try account.client(server: server, trust: trust)
        client.start()
        for await state in client.states() where state != .stopped {
            if state == .elsewhere {
                throw Failure(
                    "Another `tambour` of this account is connected. End it, then sign in again."
                )
            }
            break
        }
        if token {
            guard let token = askPerson("Token: ", isSecret: true) else {
                throw Failure("There is no token on the standard input")
            }
            // Stores the token only after the server has proved its name and has answered a
            // request.
            _ = try await client.telling(nil) { try await client.registrationPolicy() }
            try await client.signIn(token: token)
        } else if qr {
            try await signInByQRCode(client)
        } else {
            try await signIn(client, phone ?? "")
        }
        do {
            try await client.telling(nil) { try await client.becomeOnline() }
        } catch {
            await client.stop()
            throw error
        }
        let name = try client.me().flatMap { try client.person($0)?.name } ?? ""
        let chats = try client.chats().count
        remark("Signed in as \(printable(name)), with \(chats) \(chats == 1 ? "chat" : "chats").")
        await client.stop()
    }

    private func signIn(_ client: Client, _ phone: String) async throws {
        let request = try await client.telling(nil) {
            switch try await client.registrationPolicy() {
            case .invite where invite == nil:
                remark(
                    "This server takes only invited people. If no code comes, ask for an invitation and add --invite CODE."
                )
            case .closed:
                remark(
                    "This server takes no new people: a code comes only to the phone of an account."
                )
            case .open, .invite: break
            }
            return try await client.requestCode(phone: phone, invitation: invite)
        }
        guard let code = askPerson("Code (\(request.digits) digits): ") else {
            throw Failure("There is no code on the standard input")
        }
        switch try await client.signIn(code: code, for: request) {
        case .done: break
        case .nameWanted(let registration):
            guard let name = askPerson("Your name: ")?.trimmed, !name.isEmpty else {
                throw Failure("There is no name: a new user needs one")
            }
            let names = Names(name)
            try await client.register(
                registration,
                firstName: names.first,
                lastName: names.last
            )
        case .passwordWanted(let wanted): try await signIn(client, wanted)
        }
    }

    private func signIn(_ client: Client, _ wanted: Client.PasswordRequest) async throws {
        let hint = wanted.hint.map { " (\($0))" } ?? ""
        guard let password = askPerson("Password\(hint): ", isSecret: true) else {
            throw Failure("There is no password on the standard input")
        }
        try await client.signIn(password: password, for: wanted)
    }

    private func signInByQRCode(_ client: Client) async throws {
        let link = try await client.telling(nil) { try await client.makeSignInLink() }
        for line in QRCode(link.text)?.lines ?? [] { remark(line) }
        remark(
            printable(
                "Scan this with a device that is signed in, or enter there: /approve \(link.text)"
            )
        )
        do {
            if case .passwordWanted(let wanted) = try await client.signIn(with: link) {
                try await signIn(client, wanted)
            }
        } catch ClientError.timedOut {
            throw Failure(
                "No device approved the code within \(link.lifetime.components.seconds) s. Run the command again for a new code."
            )
        }
    }
}

struct LogOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout",
        abstract: "Signs out, and erases the account's data on this device.",
        discussion: """
            It refuses while actions wait for the server: `tambour queue` lists them.

            EXAMPLES
              tambour queue --flush && tambour logout
            """
    )

    @OptionGroup var account: AccountOptions

    @Flag(help: "Signs out even if actions still wait, and discards them.")
    var force = false

    /// How long to wait for a connection and for queued actions before signing out.
    private static let patience = Duration.seconds(5)

    func run() async throws {
        let client = try account.signedIn()
        let waiting = try client.queueLength()
        if waiting > 0, !force {
            let what = waiting == 1 ? "One action waits" : "\(waiting) actions wait"
            throw Failure(
                "\(what) for the server and would be lost. `tambour queue --flush` sends what waits; --force discards it."
            )
        }
        if try client.isSignedIn() {
            client.start()
            // Connects first, so that `signOut` can notify the server. Without a connection,
            // `signOut` only deletes the account's data on this device, including the token.
            _ = await client.telling(Self.patience) { await client.settle(within: Self.patience) }
        }
        try await client.signOut()
        await client.stop()
    }
}
