import Dispatch
import Glibc
import TambourClient
import TambourProtocol
import TerminalKit

/// The sign-in screen. Asks for server, phone and code, and creates an account for a new phone
/// number.
///
/// `@unchecked Sendable`: all state is used on `queue` only. The display checks that it is called
/// on `queue`.
final class SignInScreen: @unchecked Sendable {
    /// The result of the screen.
    enum Outcome: Sendable {
        /// An account is signed in, and the client is connected.
        case signedIn(Client)
        /// The screen ended without a sign-in, with this exit code.
        case left(Int32)
    }

    let queue = DispatchQueue(label: "tambour.signin")
    private(set) var form: SignInForm
    private let theme: Theme
    /// Creates the client for a server.
    private let makeClient: @Sendable (String) throws -> Client
    private let view = ScreenView(layouts: MessageLayouts())
    private var display: (any Display)?
    private var client: Client?
    /// The server as the user typed it.
    private var server = ""
    private var address: ServerAddress?
    private var phone = ""
    private var codeRequest: Client.CodeRequest?
    private var registration: Client.Registration?
    private var passwordRequest: Client.PasswordRequest?
    private var attempt: Task<Void, Never>?
    /// The number of attempts so far. It identifies abandoned attempts, whose results are ignored.
    private var generation = 0
    private var onEnd: ((Outcome) -> Void)?

    /// The time limit for the server's answer before the screen shows an error.
    private static let patience = Duration.seconds(20)

    /// - Parameter newAccount: The name of the account if it is added to other accounts on this
    ///   device; otherwise nil.
    init(
        server: String,
        phone: String? = nil,
        theme: Theme,
        newAccount: String? = nil,
        makeClient: @escaping @Sendable (String) throws -> Client
    ) {
        form = SignInForm(server: server, phone: phone, newAccount: newAccount)
        self.theme = theme
        self.makeClient = makeClient
    }

    /// Uses the display until the user signs in or leaves.
    func run(on display: any Display) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                self.display = display
                display.handlers.input = { [weak self] events in
                    guard let self else { return }
                    for event in events { handle(event) }
                    draw()
                }
                display.handlers.resize = { [weak self] _ in self?.draw() }
                display.handlers.signal = { [weak self] signal in
                    if signal != SIGINT { self?.leave(128 + signal) }
                }
                display.handlers.closed = { [weak self] in self?.leave(1) }
                do {
                    try display.start()
                } catch {
                    return continuation.resume(throwing: error)
                }
                onEnd = { continuation.resume(returning: $0) }
                draw()
            }
        }
    }

    private func draw() {
        guard let display, onEnd != nil else { return }
        display.show(view.draw(form, theme, display.size))
    }

    private func leave(_ code: Int32) {
        attempt?.cancel()
        let client = client
        guard let onEnd = takeEnd() else { return }
        Task {
            await client?.stop()
            onEnd(.left(code))
        }
    }

    private func takeEnd() -> ((Outcome) -> Void)? {
        guard let end = onEnd else { return nil }
        onEnd = nil
        display?.stop()
        return end
    }

    private func handle(_ event: InputEvent) {
        switch event {
        case .paste(let text): if form.working == nil { form.paste(text) }
        case .key(.control("q")): leave(0)
        case .key(.control("z")): display?.suspend()
        case .key(.control("l")): display?.repaint()
        case .key(.control("r")):
            if form.working == nil, form.step == .address {
                phone = form.values[1]
                connect(to: form.values[0]) { $0.showQRCode($1) }
            }
        case .key(KeyPress(.escape)): goBack()
        case .key(let press):
            if form.working == nil, form.handle(press) { submit() }
        default: break
        }
    }

    private func goBack() {
        generation += 1
        attempt?.cancel()
        if form.working != nil, !form.showsQRCode {
            form.working = nil
        } else if form.step != .address {
            form.go(to: .address, server: server, phone: phone)
        }
    }

    // MARK: - Steps

    private func submit() {
        let values = form.values
        switch form.step {
        case .address:
            phone = values[1]
            connect(to: values[0]) { $0.beginWithPhone($1) }
        case .qrCode: break
        case .invitation:
            guard let client else { return }
            askForCode(client, invitation: values[0].isEmpty ? nil : values[0])
        case .code:
            guard let client, let codeRequest else { return }
            let code = values[0]
            work("Checking the code") {
                try await client.signIn(code: code, for: codeRequest)
            } then: {
                $0.took($1)
            }
        case .name:
            guard let client, let registration else { return }
            let names = Names(values[0])
            work("Making the account") {
                try await client.register(
                    registration,
                    firstName: names.first,
                    lastName: names.last
                )
                try await client.becomeOnline()
            } then: { screen, _ in
                screen.succeed()
            }
        case .password:
            guard let client, let passwordRequest else { return }
            let password = form.fields[0].editor.text
            work("Checking the password") {
                try await client.signIn(password: password, for: passwordRequest)
                try await client.becomeOnline()
            } then: { screen, _ in
                screen.succeed()
            }
        }
    }

    private func connect(
        to server: String,
        then: @escaping @Sendable (SignInScreen, Client) -> Void
    ) {
        let (address, client, old): (ServerAddress, Client, Client?)
        do {
            address = try ServerAddress(server)
            if address == self.address, let known = self.client {
                (client, old) = (known, nil)
            } else if let known = self.address, (try? self.client?.isSignedIn()) == true {
                // The account already has a token, and the token is valid only for the server that
                // issued it.
                form.error =
                    "\(known) has let this account in: leave and start again, or `tambour logout`"
                return
            } else {
                (client, old) = (try makeClient(server), self.client)
            }
        } catch {
            form.error = Failure("\(error)").description
            return
        }
        self.server = server
        self.address = address
        // Keeps the client even if the user abandons this attempt, because two clients of one
        // account would conflict.
        self.client = client
        work("Connecting to \(address)") {
            await old?.stop()
            client.start()
            return try await client.registrationPolicy()
        } then: { screen, policy in
            screen.form.policy = policy
            then(screen, client)
        }
    }

    private func beginWithPhone(_ client: Client) {
        if form.policy == .invite {
            form.go(to: .invitation)
        } else {
            askForCode(client)
        }
    }

    /// Shows a sign-in link as a QR code. Waits until a device that is signed in to the account
    /// approves the link.
    private func showQRCode(_ client: Client) {
        work("Asking for a QR code") {
            try await client.makeSignInLink()
        } then: { screen, link in
            screen.form.go(to: .qrCode(link: link.text))
            screen.waitForApproval(of: link, client)
        }
    }

    private func waitForApproval(of link: Client.SignInLink, _ client: Client) {
        work("waiting", patience: nil) {
            do {
                return try await client.signIn(with: link)
            } catch ClientError.timedOut {
                throw Failure("No device has approved the code in time: Ctrl-R shows a new one")
            }
        } then: { screen, step in
            screen.took(step)
        }
    }

    private func askForCode(_ client: Client, invitation: String? = nil) {
        let phone = phone
        work("Asking for a code") {
            try await client.requestCode(phone: phone, invitation: invitation)
        } then: { screen, request in
            screen.codeRequest = request
            screen.form.go(to: .code(digits: request.digits))
        }
    }

    private func took(_ step: Client.SignInStep) {
        switch step {
        case .done:
            guard let client else { return }
            work("Signing in") {
                try await client.becomeOnline()
            } then: { screen, _ in
                screen.succeed()
            }
        case .nameWanted(let registration):
            self.registration = registration
            form.go(to: .name)
        case .passwordWanted(let request):
            passwordRequest = request
            form.go(to: .password(hint: request.hint))
        }
    }

    private func succeed() {
        guard let client, let onEnd = takeEnd() else { return }
        onEnd(.signedIn(client))
    }

    /// Runs a slow operation, then continues with its result.
    private func work<Value: Sendable>(
        _ what: String,
        patience: Duration? = SignInScreen.patience,
        _ body: @escaping @Sendable () async throws -> Value,
        then: @escaping @Sendable (SignInScreen, Value) -> Void
    ) {
        generation += 1
        let (generation, server) = (generation, address?.description ?? server)
        form.working = what
        attempt = Task { [weak self] in
            let result = await Self.result(of: body, server, patience)
            self?.later { screen in
                guard screen.generation == generation else { return }
                screen.form.working = nil
                switch result {
                case .success(let value): then(screen, value)
                case .failure(let mishap):
                    if screen.form.showsQRCode { screen.goBack() }
                    screen.form.fail(mishap.words, isRefusal: mishap.isRefusal)
                }
                screen.draw()
            }
        }
    }

    private func later(_ body: @escaping @Sendable (SignInScreen) -> Void) {
        queue.async { [self] in body(self) }
    }

    /// The reason why a step failed.
    private struct Mishap: Error {
        let words: String
        /// Whether the failure counts as a refusal of the input. All errors do, except errors of
        /// the connection.
        var isRefusal = false

        static let cancelled = Mishap(words: "cancelled")
    }

    private static func result<Value: Sendable>(
        of body: @escaping @Sendable () async throws -> Value,
        _ server: String,
        _ patience: Duration?
    ) async -> Result<Value, Mishap> {
        await withTaskGroup(of: Result<Value, Mishap>.self) { group in
            group.addTask {
                do {
                    return .success(try await body())
                } catch ClientError.disconnected {
                    return .failure(Mishap(words: "\(server) closed the connection: try again"))
                } catch let error as ClientError where !error.concernsInput {
                    // A certificate may contain any text.
                    return .failure(Mishap(words: printable(error.words)))
                } catch {
                    return .failure(Mishap(words: "\(error)", isRefusal: true))
                }
            }
            guard let patience else { return await group.next() ?? .failure(.cancelled) }
            group.addTask {
                try? await Task.sleep(for: patience)
                let silence = ClientError.unreachable(server: server, .noAnswer)
                return .failure(Mishap(words: "\(silence)"))
            }
            let first = await group.next() ?? .failure(.cancelled)
            group.cancelAll()
            return first
        }
    }
}

extension ClientError {
    /// Whether the user should change the input. If false, the user can send the same input again.
    fileprivate var concernsInput: Bool {
        switch self {
        case .refused, .unreadable, .signedOut, .invalid: true
        case .unreachable, .disconnected, .timedOut, .store, .cancelled: false
        }
    }
}

extension Client {
    /// Waits until the server accepts the account that has just signed in.
    ///
    /// - Throws: `Failure` if the server does not accept the account.
    func becomeOnline() async throws {
        for await state in states() where state == .online || state == .signedOut {
            guard state == .signedOut else { return }
            let reason = signedOutReason ?? "the server does not let this account in"
            guard reason == Self.holdsAnother, let holder = try me() else {
                throw Failure(reason)
            }
            let name = try person(holder)?.name ?? "\(holder)"
            throw Failure(
                "\(reason), \(name), who may be the same person before the server was set up again: `--account NAME` keeps both, `tambour logout` erases what is held"
            )
        }
    }
}
