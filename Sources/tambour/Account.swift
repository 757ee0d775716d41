import ArgumentParser
import Foundation
import TambourClient
import TambourProtocol

/// Which account a command is for, and where its file is.
struct AccountOptions: ParsableArguments {
    @Option(help: "The account on this device, when there are several.")
    var account = "default"

    @Option(help: "The folder of the accounts' files.")
    var home: String?

    var folder: String {
        if let home { return home }
        let environment = ProcessInfo.processInfo.environment
        if let home = environment["TAMBOUR_HOME"] { return home }
        if let data = environment["XDG_DATA_HOME"] { return "\(data)/tambour" }
        return "\(environment["HOME"] ?? ".")/.local/share/tambour"
    }

    func path() throws -> String {
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

    /// Where what was chosen for the screen is kept, for all accounts.
    func preferencesPath() throws -> String {
        _ = try path()
        return "\(folder)/preferences.json"
    }

    /// The account's client, if somebody is signed in to it.
    func clientIfSignedIn(tapsFrames: Bool = false) async throws -> Client? {
        guard FileManager.default.fileExists(atPath: try path()) else { return nil }
        let client = try client(tapsFrames: tapsFrames)
        if try client.me() != nil { return client }
        await client.stop()
        return nil
    }

    /// The account's client; nothing is connected yet.
    func client(server: String? = nil, tapsFrames: Bool = false) throws -> Client {
        let path = try path()
        if server == nil, !FileManager.default.fileExists(atPath: path) {
            throw Failure("nobody is signed in: `tambour login HOST:PORT PHONE` does that")
        }
        var options = ClientOptions()
        options.appName = "tambour"
        options.tapsFrames = tapsFrames
        options.deviceName = ProcessInfo.processInfo.hostName
        options.locale = Locale.current.language.languageCode?.identifier ?? ""
        return try Client(store: path, server: server, options: options)
    }

    /// The client of an account that somebody is signed in to.
    func signedIn(tapsFrames: Bool = false) throws -> Client {
        let client = try client(tapsFrames: tapsFrames)
        guard try client.me() != nil else {
            throw Failure("nobody is signed in: `tambour login HOST:PORT PHONE` does that")
        }
        return client
    }
}

/// Something to tell the person, and then to end with 1.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Ids of groups as arguments that do not look like options.
enum ChatName {
    private static let mark = "id:"

    /// An id of a group with a mark before its minus; anything else as it is.
    static func marked(_ argument: String) -> String {
        // Ids hold a time in milliseconds: what is shorter is something else.
        guard argument.utf8.count > 10, let number = Int64(argument), number < 0 else {
            return argument
        }
        return mark + argument
    }

    /// What was typed.
    static func plain(_ argument: String) -> String {
        let rest = argument.hasPrefix(mark) ? String(argument.dropFirst(mark.count)) : argument
        return marked(rest) == argument ? rest : argument
    }
}

extension Client {
    /// The chat that somebody means: its id, its title, or a name or phone of a contact.
    ///
    /// A beginning will do when it fits only one.
    func chat(named name: String) throws -> ChatID {
        let name = ChatName.plain(name)
        if let number = Int64(name), let chat = try chat(ChatID(number)) { return chat.id }
        let chats = try chats(includingHidden: true)
        let wanted = name.lowercased()
        let same = chats.filter { $0.title.lowercased() == wanted }
        if same.count == 1 { return same[0].id }
        let people = try people()
        let digits = name.filter(\.isNumber)
        if digits.count >= 5, let me = try me(),
            let person = people.first(where: { $0.phone == digits })
        {
            return .dialog(me, person.id)
        }
        let similar = chats.filter { $0.title.lowercased().hasPrefix(wanted) }
        if similar.count == 1 { return similar[0].id }
        if same.isEmpty, similar.isEmpty, let me = try me() {
            let named = people.filter { $0.name.lowercased().hasPrefix(wanted) }
            if named.count == 1 { return .dialog(me, named[0].id) }
        }
        let candidates = same.isEmpty ? similar : same
        if candidates.isEmpty { throw Failure("there is no chat “\(name)”: see `tambour chats`") }
        let list = candidates.prefix(5).map { "\($0.id) \($0.title)" }.joined(separator: ", ")
        throw Failure("“\(name)” may be \(list)")
    }

    /// The chat that somebody means; the server is asked for a phone that nobody here has.
    func chat(named name: String, orFoundWithin isAsking: Bool) async throws -> ChatID {
        do {
            return try chat(named: name)
        } catch let failure as Failure {
            let isPhone = name.allSatisfy { $0.isNumber || "+- ()".contains($0) }
            guard isAsking, isPhone, let me = try me() else { throw failure }
            start()
            return .dialog(me, try await find(phone: name).id)
        }
    }
}
