import Foundation

/// What a person has chosen for the screen, the same for all accounts.
struct Preferences: Codable, Equatable, Sendable {
    var theme: String?
    /// bell, osc9, osc777 or off.
    var notify: String?

    var notification: TerminalMessage.Notification {
        notify.flatMap { TerminalMessage.Notification(name: $0) } ?? .bell
    }
}

/// The file of the preferences: JSON that people may edit too.
///
/// `@unchecked Sendable`: used by one owner at a time.
final class PreferencesFile: @unchecked Sendable {
    private let path: String?
    private(set) var value: Preferences

    /// - Parameter path: nil keeps nothing.
    init(path: String?) {
        self.path = path
        let data = path.flatMap { FileManager.default.contents(atPath: $0) }
        value = data.flatMap { try? JSONDecoder().decode(Preferences.self, from: $0) } ?? .init()
    }

    func change(_ body: (inout Preferences) -> Void) {
        body(&value)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        guard let path, let data = try? encoder.encode(value) else { return }
        // What cannot be kept holds until the program ends.
        try? data.write(to: URL(fileURLWithPath: path), options: .atomic)
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
