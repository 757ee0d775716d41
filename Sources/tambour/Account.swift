import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

/// Which account a command is for, and where its file is.
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

    /// The account to use: the named one, or else the only one in the folder, or else `default`.
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

    /// What was chosen for the screen, for all accounts.
    ///
    /// - Parameter other: a file to be taken instead.
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

    /// The account's client, if somebody is signed in to it; whom the server has signed out is not.
    func clientIfSignedIn(tapsFrames: Bool = false) async throws -> Client? {
        guard let client = try knownClient(tapsFrames: tapsFrames) else { return nil }
        if try client.isSignedIn() { return client }
        await client.stop()
        return nil
    }

    /// The server that the account was on last.
    func knownServer() async throws -> String? {
        guard let client = try knownClient() else { return nil }
        let server = try client.server()
        await client.stop()
        return server
    }

    private func knownClient(tapsFrames: Bool = false) throws -> Client? {
        guard FileManager.default.fileExists(atPath: try path()) else { return nil }
        do {
            return try client(tapsFrames: tapsFrames)
        } catch ClientError.invalid {
            // A first sign-in was broken off before the file had anything.
            return nil
        }
    }

    /// The account's client; nothing is connected yet.
    func client(server: String? = nil, tapsFrames: Bool = false) throws -> Client {
        var options = ClientOptions()
        options.appName = "tambour"
        options.appVersion = productVersion
        options.tapsFrames = tapsFrames
        // Somebody sits in front of it.
        options.link.backoffCapMs = 30_000
        options.deviceName = ProcessInfo.processInfo.hostName
        options.locale = Locale.current.language.languageCode?.identifier ?? ""
        return try Client(store: path(), server: server, options: options)
    }

    /// What to say when the server has signed the device out.
    static let signedOut = "Nobody is signed in any more: `tambour login HOST:PORT PHONE` goes on."

    /// The client of an account that is held here; whom the server has signed out still reads, and
    /// what they write waits.
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

/// Something to tell the person, and then to end with 1.
struct Failure: Error, CustomStringConvertible {
    let description: String

    /// - Parameter description: may hold text of others.
    init(_ description: String) { self.description = printable(description) }
}
