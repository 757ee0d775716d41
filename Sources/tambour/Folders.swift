import Foundation

/// The folders of this program's files, according to the XDG Base Directory Specification.
struct Folders {
    /// The folder of the accounts' files.
    let accounts: String
    /// The folder of the preferences.
    private let configuration: String

    /// - Parameter home: The folder for all files; nil to use the folders that `environment`
    ///   determines.
    init(home: String?, _ environment: [String: String] = ProcessInfo.processInfo.environment) {
        if let home = home ?? environment["TAMBOUR_HOME"], !home.isEmpty {
            accounts = home
            configuration = home
            return
        }
        let home = environment["HOME"].flatMap { $0.isEmpty ? nil : $0 } ?? NSHomeDirectory()
        let data = Self.absolute(environment["XDG_DATA_HOME"]) ?? "\(home)/.local/share"
        let configuration = Self.absolute(environment["XDG_CONFIG_HOME"]) ?? "\(home)/.config"
        accounts = "\(data)/tambour"
        self.configuration = "\(configuration)/tambour"
    }

    /// Returns an absolute path unchanged. Returns nil for a relative or empty path, because the
    /// XDG specification requires that programs ignore such paths.
    private static func absolute(_ path: String?) -> String? {
        path.flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// The file of the preferences. Earlier versions stored it in the folder of the accounts. That
    /// file is used while the configuration folder contains no file.
    var preferences: String {
        let files = [configuration, accounts].map { "\($0)/preferences.json" }
        return files.first { FileManager.default.fileExists(atPath: $0) } ?? files[0]
    }

    /// Returns the file of an account. The file need not exist.
    func file(ofAccount name: String) -> String { "\(accounts)/\(name).db" }

    /// The names of the accounts on this device, sorted.
    var accountNames: [String] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: accounts)) ?? []
        return files.filter { $0.hasSuffix(".db") }.map { String($0.dropLast(3)) }.sorted()
    }

    /// Creates the folder of the accounts, which only its owner can read.
    func createAccountsFolder() throws {
        try FileManager.default.createDirectory(
            atPath: accounts,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
    }
}
