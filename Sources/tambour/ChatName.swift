import Foundation
import TambourClient
import TambourProtocol

/// Ids of groups as arguments that do not look like options, and the chats that names stand for.
enum ChatName {
    private static let mark = "id:"

    /// A chat that a name may stand for: one of the list, or that with a contact, which need not have begun.
    struct Candidate: Hashable {
        let chat: ChatID
        let title: String
        /// Digits without a plus; nil when it is no contact's, or they do not show it.
        var phone: String?
    }

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

    /// The digits of what looks like a phone; nil for anything else.
    static func phone(_ name: String) -> String? {
        guard name.allSatisfy({ $0.isNumber || "+- ()".contains($0) }) else { return nil }
        let digits = name.filter(\.isNumber)
        return (5...15).contains(digits.count) ? digits : nil
    }

    /// The chat that a name stands for: an id, a whole title, name or phone, or the beginning of a
    /// title or name.
    ///
    /// What fits whole goes before what only begins so, and nothing is chosen among several.
    /// - Returns: nil when nothing fits.
    /// - Throws: `Failure` with the candidates when several fit.
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
        // Somebody's phone is no beginning of anything.
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
        throw Failure("“\(name)” may be \(list)\(rest): name it by its id")
    }
}

extension Client {
    /// The chat that somebody means: its id, its title, or a name or phone of a contact.
    ///
    /// A beginning will do when it fits only one.
    func chat(named name: String) throws -> ChatID {
        if let chat = try knownChat(named: name) { return chat }
        throw Failure("there is no chat “\(ChatName.plain(name))”: see `tambour chats --sync`")
    }

    /// How long a name that nobody here has is waited for.
    private static let patience = 10

    /// The chat that somebody means; the server is asked for a phone or a name that nobody here has.
    ///
    /// - Parameter seconds: so long at most a name is waited for; 0 asks nobody.
    func chat(named name: String, within seconds: Int) async throws -> ChatID {
        if let chat = try knownChat(named: name) { return chat }
        guard seconds > 0, let me = try me() else { return try chat(named: name) }
        let changes = changes()
        start()
        if ChatName.phone(name) != nil { return .dialog(me, try await find(phone: name).id) }
        _ = await within(.seconds(min(seconds, Self.patience))) {
            guard await self.waitUntilOnline() else { return false }
            // A long list comes in parts. A name that fits several is told below.
            func isKnown() -> Bool { (try? self.knownChat(named: name) == nil) != true }
            if isKnown() { return true }
            for await _ in changes where isKnown() { return true }
            return false
        }
        return try chat(named: name)
    }

    private func knownChat(named name: String) throws -> ChatID? {
        var candidates = try chats(includingHidden: true).map {
            ChatName.Candidate(chat: $0.id, title: $0.title)
        }
        if let me = try me() {
            candidates += try people().map {
                ChatName.Candidate(chat: .dialog(me, $0.id), title: $0.name, phone: $0.phone)
            }
        }
        return try ChatName.choose(name, among: candidates)
    }
}
