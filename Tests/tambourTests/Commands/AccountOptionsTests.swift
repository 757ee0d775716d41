import ArgumentParser
import Foundation
import TambourClient
import TambourTesting
import Testing

@testable import tambour

@Suite("The account of a command")
struct AccountOptionsTests {
    /// Runs `body` with a folder that contains these accounts.
    private func withAccounts(_ accounts: [String], _ body: (String) throws -> Void) throws {
        let home = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: home) }
        for account in accounts { try Data().write(to: URL(filePath: "\(home)/\(account).db")) }
        try body(home)
    }

    private func options(_ home: String, _ words: [String]) throws -> AccountOptions {
        try AccountOptions.parse(["--home", home] + words)
    }

    @Test(
        "without --account it is `default`, or the only one",
        arguments: [([], "default"), (["bob"], "bob"), (["bob", "default"], "default")]
    )
    func onlyOne(accounts: [String], chosen: String) throws {
        try withAccounts(accounts) { home in
            let name = try options(home, []).name()
            #expect(name == chosen)
            let named = try options(home, ["--account", "dora"]).name()
            #expect(named == "dora")
        }
    }

    @Test("several accounts without --account are named, and none is created")
    func several() throws {
        try withAccounts(["bob", "carol"]) { home in
            let account = try options(home, [])
            let error = #expect(throws: Failure.self) { try account.name() }
            #expect(error?.description.contains("“bob”, “carol”") == true)
            #expect(error?.description.contains("--account NAME") == true)
        }
    }

    @Test("an unknown account is an error that names those on this device")
    func unknown() throws {
        try withAccounts(["alice", "bob"]) { home in
            let account = try options(home, ["--account", "bbo"])
            let error = #expect(throws: Failure.self) { try account.signedIn() }
            let text = try #require(error?.description)
            #expect(text.contains("no account “bbo”") && text.contains("“alice”, “bob”"))
            #expect(text.contains("tambour login --account bbo"))
        }
        try withAccounts([]) { home in
            let account = try options(home, [])
            let error = #expect(throws: Failure.self) { try account.signedIn() }
            #expect(error?.description.contains("tambour login SERVER PHONE") == true)
        }
    }
}

@Suite("The trust of a command")
struct TrustOptionsTests {
    private static let digits = String(repeating: "0a", count: 32)

    @Test("is the remembered one without options, and a pin or the system's authorities with them")
    func chosen() throws {
        #expect(try TrustOptions.parse([]).chosen() == nil)
        #expect(try TrustOptions.parse(["--ca", "system"]).chosen() == .system)
        let pin = try #require(ServerKeyDigest(Self.digits))
        #expect(try TrustOptions.parse(["--pin", Self.digits]).chosen() == .pinned(pin))
    }

    @Test("reads a file of certificates, and says why it cannot")
    func file() throws {
        let folder = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = "\(folder)/ca.pem"
        try Data("PEM".utf8).write(to: URL(filePath: path))
        let trust = try TrustOptions.parse(["--ca", path]).chosen()
        #expect(trust == .authorities(pem: "PEM"))
        try Data(count: (1 << 20) + 1).write(to: URL(filePath: path))
        for (file, reason) in [(path, "too long"), (folder, "cannot be read"), ("/no", "cannot")] {
            let options = try TrustOptions.parse(["--ca", file])
            let error = #expect(throws: Failure.self) { try options.chosen() }
            #expect(error?.description.contains(reason) == true, "\(file)")
        }
    }
}

@Suite("Folders")
struct FoldersTests {
    @Test("follow the XDG variables, which one folder for all overrides")
    func variables() {
        func paths(_ environment: [String: String], home: String? = nil) -> [String] {
            let folders = Folders(home: home, environment)
            return [folders.accounts, folders.preferences]
        }
        let usual = paths(["HOME": "/h"])
        #expect(usual == ["/h/.local/share/tambour", "/h/.config/tambour/preferences.json"])
        let chosen = ["HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"]
        #expect(paths(chosen) == ["/d/tambour", "/c/tambour/preferences.json"])
        // The XDG specification demands that programs ignore relative and empty paths.
        let wrong = ["HOME": "/h", "XDG_DATA_HOME": "d", "XDG_CONFIG_HOME": "", "TAMBOUR_HOME": ""]
        #expect(paths(wrong) == usual)
        let one = ["/one", "/one/preferences.json"]
        #expect(paths(chosen.merging(["TAMBOUR_HOME": "/one"]) { $1 }) == one)
        #expect(paths(chosen, home: "/one") == one)
    }

    @Test("old preferences stay in use until there are new ones, and nothing is created")
    func oldPlace() throws {
        let root = try TestServer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: root) }
        let folders = Folders(
            home: nil,
            ["XDG_DATA_HOME": "\(root)/data", "XDG_CONFIG_HOME": "\(root)/config"]
        )
        let new = "\(root)/config/tambour/preferences.json"
        #expect(folders.preferences == new)
        #expect(folders.accountNames.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: root).isEmpty)
        try folders.createAccountsFolder()
        let old = "\(folders.accounts)/preferences.json"
        try Data(#"{"theme": "light"}"#.utf8).write(to: URL(filePath: old))
        #expect(folders.preferences == old)
        // If the folder is missing, a change of a preference creates it.
        #expect(PreferencesFile(path: new).change(\.theme, to: "mono") == nil)
        #expect(folders.preferences == new)
        #expect(PreferencesFile(path: folders.preferences).value.theme == "mono")
    }
}
