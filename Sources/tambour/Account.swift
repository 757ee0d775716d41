import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

/// The options that choose an account and the folder of this program's files.
struct AccountOptions: ParsableArguments {
    @Option(
        help: "The account to use; needed when there are several.",
        completion: .custom { _, _, _ in Folders(home: nil).accountNames }
    )
    var account: String?

    @Option(
        help: ArgumentHelp(
            "The folder of all files, instead of the folders under FILES in `tambour --help`.",
            valueName: "folder"
        ),
        completion: .directory
    )
    var home: String?

    var folders: Folders { Folders(home: home) }

    /// Returns the name of the account to use: the given name, or else the only account on this
    /// device, or else `default`.
    ///
    /// - Throws: `ValidationError` if the given name cannot be the name of an account; `Failure` if
    ///   there are several accounts and none of them is named `default`.
    func name() throws -> String {
        if let account {
            guard !account.isEmpty, !account.contains("/"), !account.hasPrefix(".") else {
                throw ValidationError(
                    printable(
                        "“\(account)” cannot name an account: a name has no slash and no dot at its start."
                    )
                )
            }
            return account
        }
        let known = folders.accountNames
        if known.count == 1 { return known[0] }
        guard known.isEmpty || known.contains("default") else {
            throw Failure(
                "This device has several accounts: \(known.quoted). Choose one with --account NAME."
            )
        }
        return "default"
    }

    /// Returns whether the account has a file on this device.
    func exists() throws -> Bool {
        FileManager.default.fileExists(atPath: folders.file(ofAccount: try name()))
    }

    /// Returns the file of the screen preferences, which all accounts share.
    ///
    /// - Parameter other: The path of a file to use instead of the standard file.
    func preferences(from other: String?) throws -> PreferencesFile {
        guard let other else { return PreferencesFile(path: folders.preferences) }
        guard FileManager.default.fileExists(atPath: other) else {
            throw Failure("\(other): there is no such file")
        }
        return PreferencesFile(path: other)
    }

    /// Returns the account's client; nil if the account is not on this device or is signed out.
    func clientIfSignedIn(tapsFrames: Bool = false) async throws -> Client? {
        guard let client = try knownClient(tapsFrames: tapsFrames) else { return nil }
        if try client.isSignedIn() { return client }
        await client.stop()
        return nil
    }

    /// Returns the server and the phone number of the account's last sign-in.
    func lastSignIn() async throws -> (server: String?, phone: String?) {
        guard let client = try knownClient() else { return (nil, nil) }
        let known = (try client.server()?.description, try client.phone())
        await client.stop()
        return known
    }

    private func knownClient(tapsFrames: Bool = false) throws -> Client? {
        guard try exists() else { return nil }
        do {
            return try client(tapsFrames: tapsFrames)
        } catch ClientError.invalid {
            // The first sign-in was interrupted before any data was stored.
            return nil
        }
    }

    /// Creates the account's client without connecting.
    ///
    /// - Parameters:
    ///   - server: The server to sign in to; a missing file of the account is then created. If nil,
    ///     opens an account that is already on this device.
    ///   - trust: The servers to trust; nil to use the trust that is stored with the account.
    func client(
        server: String? = nil,
        trust: ServerTrust? = nil,
        tapsFrames: Bool = false
    ) throws -> Client {
        var options = ClientOptions()
        options.appName = "tambour"
        options.appVersion = productVersion
        options.tapsFrames = tapsFrames
        // The user waits for the command, so the maximum delay between attempts to connect is
        // short.
        options.link.backoffCapMs = 30_000
        options.deviceName = ProcessInfo.processInfo.hostName
        options.locale = Locale.current.language.languageCode?.identifier ?? ""
        if server != nil { try folders.createAccountsFolder() }
        let file = folders.file(ofAccount: try name())
        return try Client(store: file, server: server, trust: trust, options: options)
    }

    /// The message shown when the server has signed the device out.
    static let signedOut =
        "The server has signed this device out. `tambour login SERVER PHONE` signs in again."

    /// Returns the client of an account stored on this device.
    ///
    /// If the server has signed the account out, its stored messages are still readable, and new
    /// messages wait in the outbox.
    func signedIn(tapsFrames: Bool = false) throws -> Client {
        guard let client = try knownClient(tapsFrames: tapsFrames), try client.me() != nil else {
            throw Failure(try whyNobody())
        }
        let events = client.events()
        Task {
            var told: String?
            for await case .storeFailed(let reason) in events where reason != told {
                told = reason
                remark(printable("Nothing can be stored: \(reason)"))
            }
        }
        return client
    }

    /// Explains why no account is signed in, and what to do next.
    private func whyNobody() throws -> String {
        let name = try name()
        let others = folders.accountNames.filter { $0 != name }
        let option = account == nil ? "" : " --account \(name)"
        let next = "`tambour login\(option) SERVER PHONE` signs in"
        if try exists() {
            let rest = others.isEmpty ? "" : " Other accounts on this device: \(others.quoted)."
            return "Nobody is signed in to the account “\(name)”: \(next).\(rest)"
        }
        if account == nil {
            return "Nobody is signed in on this device: \(next), and `tambour` does so on a screen."
        }
        let list =
            others.isEmpty
            ? "This device has no accounts" : "The accounts on this device are \(others.quoted)"
        return "There is no account “\(name)”. \(list); \(next) and creates it."
    }
}

extension [String] {
    /// The names in quotation marks.
    fileprivate var quoted: String { map { "“\($0)”" }.joined(separator: ", ") }
}

/// An error message for the user. A command that throws it exits with 1.
struct Failure: Error, CustomStringConvertible {
    let description: String

    /// - Parameter description: The message. It may contain text from other people, because control
    ///   characters are replaced.
    init(_ description: String) { self.description = printable(description) }
}
