import Foundation
import Synchronization
import TambourClient
import TambourProtocol

/// Finds chats by name. Also rewrites the ids of groups, because they look like options.
enum ChatName {
    private static let mark = "id:"

    /// A chat that a name may mean: a chat in the list, or the dialog with a contact. The dialog
    /// need not exist yet.
    struct Candidate: Hashable {
        let chat: ChatID
        let title: String
        /// The contact's phone number as digits without a plus. nil if the chat is not the dialog
        /// with a contact, or if the contact hides the phone number.
        var phone: String?
    }

    /// Adds a prefix to the id of a group, because the id begins with a minus and would look like
    /// an option. Returns any other text unchanged.
    static func marked(_ argument: String) -> String {
        // An id contains a time in milliseconds and is therefore long. A number of at most ten
        // characters is not an id.
        guard argument.utf8.count > 10, let number = Int64(argument), number < 0 else {
            return argument
        }
        return mark + argument
    }

    /// Returns the argument as typed, without the prefix that `marked` has added.
    static func plain(_ argument: String) -> String {
        let rest = argument.hasPrefix(mark) ? String(argument.dropFirst(mark.count)) : argument
        return marked(rest) == argument ? rest : argument
    }

    /// Returns the digits of a text that looks like a phone number; nil for any other text.
    static func phone(_ name: String) -> String? {
        guard name.allSatisfy({ $0.isNumber || "+- ()".contains($0) }) else { return nil }
        let digits = name.filter(\.isNumber)
        return (5...15).contains(digits.count) ? digits : nil
    }

    /// Returns the chat that a name means. The text can be an id, a whole title, name or phone
    /// number, or the beginning of a title or name.
    ///
    /// Full matches win over prefix matches.
    /// - Returns: nil if no chat matches.
    /// - Throws: `Failure` with the candidates if several chats match.
    static func choose(_ name: String, among candidates: [Candidate]) throws -> ChatID? {
        let name = plain(name)
        if let number = Int64(name), candidates.contains(where: { $0.chat.rawValue == number }) {
            return ChatID(number)
        }
        let wanted = name.lowercased()
        let phone = phone(name)
        let whole = candidates.filter {
            $0.title.lowercased() == wanted || phone != nil && $0.phone == phone
        }
        if !whole.isEmpty { return try only(whole, name) }
        // A phone number must match in full.
        guard phone == nil, !wanted.isEmpty else { return nil }
        let similar = candidates.filter { $0.title.lowercased().hasPrefix(wanted) }
        return similar.isEmpty ? nil : try only(similar, name)
    }

    private static func only(_ fitting: [Candidate], _ name: String) throws -> ChatID {
        var titles: [ChatID: String] = [:]
        for candidate in fitting { titles[candidate.chat] = candidate.title }
        if titles.count == 1 { return fitting[0].chat }
        let sorted = titles.sorted { $0.key < $1.key }
        let list = sorted.prefix(5).map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        let rest = sorted.count > 5 ? " or \(sorted.count - 5) others" : ""
        throw Failure("“\(name)” can mean \(list)\(rest). Use the id instead of the name")
    }
}

extension Client {
    /// Returns the chat that `name` means. The name is an id, a title, or the name or phone of a
    /// contact.
    ///
    /// The beginning of a title or name is enough if only one chat matches it.
    func chat(named name: String) throws -> ChatID {
        if let chat = try knownChat(named: name) { return chat }
        throw Failure(
            "There is no chat “\(ChatName.plain(name))” on this device: `tambour chats --sync` fetches and lists the chats"
        )
    }

    /// The maximum time in seconds to query the server about a name that this device does not know.
    private static let patience = 10

    /// Returns the chat that a name means. Queries the server about a phone number or name that
    /// this device does not know.
    ///
    /// - Parameter seconds: The time limit of the query. For a name, the limit is at most
    ///   `patience`. If 0, does not query the server.
    func chat(named name: String, within seconds: Int) async throws -> ChatID {
        if let chat = try knownChat(named: name) { return chat }
        guard seconds > 0, let me = try me() else { return try chat(named: name) }
        if ChatName.phone(name) != nil {
            return try await dialog(of: me, phone: name, within: seconds)
        }
        let changes = changes()
        start()
        _ = await within(.seconds(min(seconds, Self.patience))) {
            guard await self.waitUntilOnline() else { return false }
            // A long list arrives in parts, so this waits until a part contains the name. If the
            // name matches several chats, the call after this wait throws an error that lists them.
            func isKnown() -> Bool { (try? self.knownChat(named: name) == nil) != true }
            if isKnown() { return true }
            for await _ in changes where isKnown() { return true }
            return false
        }
        return try chat(named: name)
    }

    /// Returns the dialog with the person that a name means. Queries the server about an unknown
    /// phone number.
    ///
    /// - Parameter seconds: The time limit of the query. If 0, does not query the server.
    func dialog(named name: String, within seconds: Int) async throws -> ChatID {
        if let chat = try knownChat(named: name, isPerson: true) { return chat }
        if seconds > 0, ChatName.phone(name) != nil, let me = try me() {
            return try await dialog(of: me, phone: name, within: seconds)
        }
        throw Failure(
            "There is no contact “\(ChatName.plain(name))” on this device: `tambour people` lists the contacts; a phone number finds anybody"
        )
    }

    private func dialog(
        of me: UserID,
        phone: String,
        within seconds: Int
    ) async throws -> ChatID {
        start()
        let answer = Mutex<Result<Person, ClientError>?>(nil)
        let isAnswered = await within(.seconds(seconds)) {
            do throws(ClientError) {
                let person = try await self.find(phone: phone)
                answer.withLock { $0 = .success(person) }
            } catch {
                answer.withLock { $0 = .failure(error) }
            }
            return true
        }
        guard isAnswered, let result = answer.withLock({ $0 }) else {
            throw Failure(
                "The server did not say within \(seconds) s who has the number \(phone). Try again, or wait longer with --wait."
            )
        }
        return .dialog(me, try result.get().id)
    }

    /// - Parameter isPerson: Whether to ignore groups and channels.
    private func knownChat(named name: String, isPerson: Bool = false) throws -> ChatID? {
        var candidates = try chats(includingHidden: true).map {
            ChatName.Candidate(chat: $0.id, title: $0.title)
        }
        if isPerson { candidates.removeAll { $0.chat.isGroup } }
        if let me = try me() {
            candidates += try people().map {
                ChatName.Candidate(chat: .dialog(me, $0.id), title: $0.name, phone: $0.phone)
            }
        }
        return try ChatName.choose(name, among: candidates)
    }
}
