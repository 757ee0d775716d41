import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

/// The options that choose an account and the folder of its file.
struct AccountOptions: ParsableArguments {
    @Option(help: "The account on this device, when there are several.")
    var account: String?

    @Option(help: "The folder of the accounts' files.")
    var home: String?

    var folder: String {
        if let home { return home }
        let environment = ProcessInfo.processInfo.environment
        if let home = environment["TAMBOUR_HOME"] { return home }
        if let data = environment["XDG_DATA_HOME"] { return "\(data)/tambour" }
        return "\(environment["HOME"] ?? ".")/.local/share/tambour"
    }

    /// Returns the name of the account to use: the given name, or else the only account in the
    /// folder, or else `default`.
    static func name(_ named: String?, in folder: String) -> String {
        if let named { return named }
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let accounts = files.filter { $0.hasSuffix(".db") }.map { String($0.dropLast(3)) }
        return accounts.count == 1 ? accounts[0] : "default"
    }

    func path() throws -> String {
        let account = Self.name(account, in: folder)
        guard !account.isEmpty, !account.contains("/"), !account.hasPrefix(".") else {
            throw ValidationError("“\(account)” is no name for an account")
        }
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        return "\(folder)/\(account).db"
    }

    /// Returns the screen preferences, which all accounts share.
    ///
    /// - Parameter other: A file to read instead of the standard one.
    func preferences(from other: String?) throws -> PreferencesFile {
        guard let other else {
            _ = try path()
            return PreferencesFile(path: "\(folder)/preferences.json")
        }
        guard FileManager.default.fileExists(atPath: other) else {
            throw Failure("\(other): there is no such file")
        }
        return PreferencesFile(path: other)
    }

    /// Returns the account's client; nil when no account is signed in or the server has signed the
    /// device out.
    func clientIfSignedIn(tapsFrames: Bool = false) async throws -> Client? {
        guard let client = try knownClient(tapsFrames: tapsFrames) else { return nil }
        if try client.isSignedIn() { return client }
        await client.stop()
        return nil
    }

    /// Returns the server and the phone of the account's last sign-in.
    func lastSignIn() async throws -> (server: String?, phone: String?) {
        guard let client = try knownClient() else { return (nil, nil) }
        let known = (try client.server(), try client.phone())
        await client.stop()
        return known
    }

    private func knownClient(tapsFrames: Bool = false) throws -> Client? {
        guard FileManager.default.fileExists(atPath: try path()) else { return nil }
        do {
            return try client(tapsFrames: tapsFrames)
        } catch ClientError.invalid {
            // The first sign-in was interrupted before any data was stored.
            return nil
        }
    }

    /// Creates the account's client without connecting.
    func client(server: String? = nil, tapsFrames: Bool = false) throws -> Client {
        var options = ClientOptions()
        options.appName = "tambour"
        options.appVersion = productVersion
        options.tapsFrames = tapsFrames
        // The user is waiting, so the retry delay stays short.
        options.link.backoffCapMs = 30_000
        options.deviceName = ProcessInfo.processInfo.hostName
        options.locale = Locale.current.language.languageCode?.identifier ?? ""
        return try Client(store: path(), server: server, options: options)
    }

    /// The message shown when the server has signed the device out.
    static let signedOut = "Nobody is signed in any more: `tambour login HOST:PORT PHONE` goes on."

    /// Returns the client of an account stored on this device.
    ///
    /// The messages of an account that the server has signed out stay readable. New messages wait
    /// in the outbox.
    func signedIn(tapsFrames: Bool = false) throws -> Client {
        guard let client = try knownClient(tapsFrames: tapsFrames), try client.me() != nil else {
            throw Failure("nobody is signed in: `tambour login HOST:PORT PHONE` does that")
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
}

/// An error message for the user. The program then exits with 1.
struct Failure: Error, CustomStringConvertible {
    let description: String

    /// - Parameter description: May contain text from other people.
    init(_ description: String) { self.description = printable(description) }
}
