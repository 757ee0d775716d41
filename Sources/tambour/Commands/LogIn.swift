import ArgumentParser
import TambourClient

struct LogIn: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Signs in, and makes the account of a new phone.",
        discussion:
            "Codes, names and passwords are asked for on the terminal, or read from standard input, a line each."
    )

    @OptionGroup var account: AccountOptions

    @Argument(help: "The server, as chat.example.org:7770.")
    var server: String

    @Argument(help: "The phone: digits, with or without a plus.")
    var phone: String?

    @Option(help: "The code of an invitation, for a server that takes only invited people.")
    var invite: String?

    @Flag(help: "Reads a token from standard input, instead of asking for a code.")
    var token = false

    func run() async throws {
        if let client = try await account.clientIfSignedIn() {
            await client.stop()
            throw Failure(
                "somebody is signed in already: `tambour logout` ends that and erases what is held, `--account NAME` is for another account"
            )
        }
        let client = try account.client(server: server)
        client.start()
        for await state in client.states() where state != .stopped {
            if state == .elsewhere {
                throw Failure("another `tambour` of this account is running: end it first")
            }
            break
        }
        if token {
            guard let token = askPerson("Token: ", isSecret: true) else {
                throw Failure("no token")
            }
            try await client.signIn(token: token)
        } else {
            guard let phone else { throw ValidationError("a phone is missing") }
            try await signIn(client, phone)
        }
        do {
            try await client.becomeOnline()
        } catch {
            await client.stop()
            throw error
        }
        let name = try client.me().flatMap { try client.person($0)?.name } ?? ""
        remark("Signed in as \(printable(name)), with \(try client.chats().count) chats.")
        await client.stop()
    }

    private func signIn(_ client: Client, _ phone: String) async throws {
        switch try await client.registrationPolicy() {
        case .invite where invite == nil:
            remark(
                "This server takes only invited people. If no code comes, ask for an invitation and add --invite CODE."
            )
        case .closed:
            remark("This server takes no new people: a code comes only to the phone of an account.")
        case .open, .invite: break
        }
        let request = try await client.requestCode(phone: phone, invitation: invite)
        guard let code = askPerson("Code (\(request.digits) digits): ") else {
            throw Failure("no code")
        }
        switch try await client.signIn(code: code, for: request) {
        case .done: break
        case .nameWanted(let registration):
            guard let name = askPerson("Your name: ")?.trimmed, !name.isEmpty else {
                throw Failure("no name")
            }
            let names = Names(name)
            try await client.register(
                registration,
                firstName: names.first,
                lastName: names.last
            )
        case .passwordWanted(let wanted):
            let hint = wanted.hint.map { " (\($0))" } ?? ""
            guard let password = askPerson("Password\(hint): ", isSecret: true) else {
                throw Failure("no password")
            }
            try await client.signIn(password: password, for: wanted)
        }
    }
}

struct LogOut: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout",
        abstract: "Signs out, and erases what this device holds of the account."
    )

    @OptionGroup var account: AccountOptions

    @Flag(help: "Also when messages still wait to be sent.")
    var force = false

    func run() async throws {
        let client = try account.signedIn()
        let waiting = try client.queueLength()
        if waiting > 0, !force {
            let what = waiting == 1 ? "something waits" : "\(waiting) things wait"
            throw Failure("\(what) to be done, and would be lost: --force does it all the same")
        }
        if try client.isSignedIn() {
            client.start()
            // Offline, the server cannot be notified. The token is still deleted on this device.
            _ = await client.settle(within: .seconds(5))
        }
        try await client.signOut()
        await client.stop()
    }
}
