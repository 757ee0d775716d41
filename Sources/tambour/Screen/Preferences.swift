import Foundation
import TambourProtocol
import TerminalKit

/// The user's choices for the screen, which all accounts share.
struct Preferences: Codable, Equatable, Sendable {
    var theme: String?
    /// One of `bell`, `osc9`, `osc777` and `off`.
    var notify: String?
    /// The keys that the user has chosen, by the name of the action. `KeyBindings` describes the
    /// notation.
    var keys: [String: String]?

    fileprivate enum CodingKeys: CodingKey, CaseIterable { case theme, notify, keys }

    var notification: TerminalMessage.Notification {
        notify.flatMap { TerminalMessage.Notification(name: $0) } ?? .bell
    }
}

/// The file of the preferences. It contains JSON, which the user may edit even while the screen is
/// open.
///
/// `@unchecked Sendable`: only one owner uses it at a time.
final class PreferencesFile: @unchecked Sendable {
    let path: String?
    private(set) var value = Preferences()
    /// The key bindings that the program has read from the file at its start.
    let keys: KeyBindings
    /// Errors in the file, as text for the user.
    let mistakes: [String]

    private struct Unreadable: Error {
        let reason: String
    }

    /// - Parameter path: The path of the file; nil if the preferences are not stored. A missing
    ///   file counts as empty.
    init(path: String?) {
        self.path = path
        do throws(Unreadable) {
            let text = try Self.read(path)
            value = try Self.decode(text)
            keys = KeyBindings(value.keys ?? [:])
            mistakes = Self.strangers(in: text) + value.mistakes + keys.mistakes
        } catch {
            keys = KeyBindings()
            mistakes = [error.reason]
        }
    }

    /// Changes a preference and writes it to the file. Other members of the JSON object are
    /// unchanged.
    ///
    /// - Returns: The reason why the file was not written; nil on success or if there is no path. A
    ///   change that was not written still applies until the program ends.
    func change(_ member: WritableKeyPath<Preferences, String?>, to text: String) -> String? {
        value[keyPath: member] = text
        guard let path else { return nil }
        do {
            let data = try Self.read(path)
            var members = try Self.members(of: data)
            var preferences = try Self.decode(data)
            preferences[keyPath: member] = text
            for (name, value) in try Self.members(of: JSONEncoder().encode(preferences)) {
                members[name] = value
            }
            let options: JSONSerialization.WritingOptions = [
                .prettyPrinted, .sortedKeys, .withoutEscapingSlashes,
            ]
            let file = URL(filePath: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try JSONSerialization.data(withJSONObject: members, options: options)
                .write(to: file, options: .atomic)
            return nil
        } catch let error as Unreadable {
            return error.reason
        } catch {
            return error.localizedDescription
        }
    }

    private static func read(_ path: String?) throws(Unreadable) -> Data {
        guard let path, FileManager.default.fileExists(atPath: path) else { return Data("{}".utf8) }
        do {
            return try Data(contentsOf: URL(filePath: path))
        } catch {
            throw Unreadable(reason: error.localizedDescription)
        }
    }

    private static func decode(_ data: Data) throws(Unreadable) -> Preferences {
        do {
            return try JSONDecoder().decode(Preferences.self, from: data)
        } catch DecodingError.typeMismatch(_, let context) {
            let place = context.codingPath.map(\.stringValue).joined(separator: ".")
            throw Unreadable(reason: "“\(place)” is of the wrong kind: \(context.debugDescription)")
        } catch {
            throw Unreadable(reason: "it is not JSON as it should be")
        }
    }

    private static func members(of data: Data) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    }

    private static func strangers(in data: Data) -> [String] {
        let known = Preferences.CodingKeys.allCases.map(\.stringValue)
        let names = (try? members(of: data))?.keys.filter { !known.contains($0) } ?? []
        return names.sorted().map { "“\($0)” is nothing that can be chosen" }
    }
}

extension Preferences {
    fileprivate var mistakes: [String] {
        var mistakes: [String] = []
        if let theme, !Theme.all.contains(where: { $0.name == theme }) {
            mistakes.append("“\(theme)” is no theme")
        }
        if let notify, TerminalMessage.Notification(name: notify) == nil {
            mistakes.append("“\(notify)” is no way to tell of messages")
        }
        return mistakes
    }
}

extension TerminalMessage.Notification {
    init?(name: String) {
        switch name {
        case "bell": self = .bell
        case "osc9": self = .osc9
        case "osc777": self = .osc777
        case "off": self = .none
        default: return nil
        }
    }
}
