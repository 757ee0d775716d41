import TambourClient

@testable import TerminalKit
@testable import tambour

/// A thing that a person does at a screen, with keys alone.
struct Act: Sendable {
    let name: String
    /// The commands, the actions of keys, and the keys of panels that the act uses, such as
    /// `/title`, `reply` and `Contacts: Alt-a`.
    let triggers: [String]
    let play: @Sendable (Hand) async throws -> Void

    init(
        _ name: String,
        _ triggers: [String],
        _ play: @escaping @Sendable (Hand) async throws -> Void
    ) {
        self.name = name
        self.triggers = triggers
        self.play = play
    }

    static let all = writing + messages + places + chats + people + account + folders

    /// The triggers that the acts use.
    static let triggers = Set(all.flatMap(\.triggers))

    /// The triggers that the acts must use. The keys of panels are not among them, because plays
    /// read those from the screens.
    static let required =
        ScreenCommand.all.map { "/\($0.name)" } + KeyAction.allCases.map(\.rawValue)
}

extension Panel.Kind {
    /// The name of a kind of panel. A new kind does not compile without a name here, and its keys
    /// then need an act.
    var name: String {
        switch self {
        case .goTo: "Go to"
        case .forward: "Forward"
        case .search: "Search"
        case .mentions: "Mentions"
        case .links: "Links"
        case .contacts: "Contacts"
        case .blocked: "Blocked"
        case .members: "Members"
        case .profile: "Profile"
        case .sessions: "Sessions"
        case .options: "Options"
        case .publicSearch: "Public"
        case .poll: "Poll"
        case .queue: "Queue"
        case .folders: "Folders"
        case .scheduled: "Scheduled"
        case .reactions: "Reactions"
        case .thread: "Thread"
        }
    }
}

extension Panel {
    /// The keys in the lower border of the panel, with the name of its kind.
    var triggers: [String] {
        let shown = keys.split(separator: "  ").compactMap { entry in
            entry.split(separator: " ").first.map(String.init)
        }
        return shown.filter { KeyPress(name: $0) != nil }.map { "\(kind.name): \($0)" }
    }
}
