import ArgumentParser
import Dispatch
import Foundation
import TambourClient
import TerminalKit

struct Open: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Opens the full-screen client, as `tambour` alone does.",
        discussion: """
            On the first start it asks for server, phone and login code. A new --account creates an account on this device.

            EXAMPLES
              tambour
              tambour open --account work --theme light
              tambour open --ca authority.pem
            """
    )

    @OptionGroup var account: AccountOptions

    @OptionGroup var trust: TrustOptions

    @Option(
        help:
            "The theme: dark, light, sixteen, mono or none. Without it, the theme that /theme chose, or one that fits the terminal.",
        completion: .list(Theme.all.map(\.name))
    )
    var theme: String?

    @Option(
        help: ArgumentHelp("Another file of preferences: theme, alerts, keys.", valueName: "file"),
        completion: .file(extensions: ["json"])
    )
    var preferences: String?

    @Flag(help: "Lets the mouse click and scroll. The terminal selects text while Shift is held.")
    var mouse = false

    func run() async throws {
        try await rememberTrust()
        let environment = ProcessInfo.processInfo.environment
        let depth = ColorDepth.detect(environment)
        let preferences = try account.preferences(from: self.preferences)
        let theme = Theme.choose(
            named: theme ?? (depth == .monochrome ? nil : preferences.value.theme),
            depth: depth
        )
        var options = TerminalDevice.Options()
        options.renderer.depth = depth
        options.hasMouse = mouse
        options.environment = environment
        while let client = try await signedIn(theme, options) {
            let screen = ScreenController(client: client, preferences: preferences, theme: theme)
            let device = try terminal(options, screen.queue)
            let code = try await screen.run(on: device)
            await client.stop()
            if code != 0 { throw ExitCode(code) }
            guard screen.wantsSignIn else { return }
        }
    }

    /// Returns the account's client. Shows the sign-in screen if this device is not signed in to
    /// the account.
    ///
    /// - Returns: nil when the user leaves the sign-in screen.
    private func signedIn(_ theme: Theme, _ options: TerminalDevice.Options) async throws -> Client?
    {
        if let client = try await account.clientIfSignedIn(tapsFrames: true) { return client }
        let account = account
        let trust = try trust.chosen()
        let known = try await account.lastSignIn()
        let isNew = try !account.exists() && !account.folders.accountNames.isEmpty
        let screen = SignInScreen(
            server: known.server ?? Self.usualServer,
            phone: known.phone,
            theme: theme,
            newAccount: isNew ? printable(try account.name()) : nil
        ) {
            try account.client(server: $0, trust: trust, tapsFrames: true)
        }
        switch try await screen.run(on: try terminal(options, screen.queue)) {
        case .signedIn(let client): return client
        case .left(let code):
            if code != 0 { throw ExitCode(code) }
            return nil
        }
    }

    /// If the user has chosen which servers to trust, stores the choice in an account that is
    /// signed in.
    private func rememberTrust() async throws {
        guard let trust = try trust.chosen(), let client = try await account.clientIfSignedIn()
        else { return }
        await client.stop()
        try await account.client(trust: trust).stop()
    }

    /// The listening address of a server started with `make run`.
    private static let usualServer = "127.0.0.1:7770"

    private func terminal(
        _ options: TerminalDevice.Options,
        _ queue: DispatchQueue
    ) throws -> TerminalDevice {
        do {
            return try TerminalDevice.open(options: options, queue: queue)
        } catch {
            throw Failure(
                "The screen needs a terminal: \(error). `tambour login SERVER PHONE` signs in without one, "
                    + "and `tambour --help` lists the commands for scripts."
            )
        }
    }
}
