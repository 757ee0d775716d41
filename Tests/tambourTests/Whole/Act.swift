import TambourClient

@testable import TerminalKit
@testable import tambour

/// Something that a person does at a screen, only with keys.
struct Act: Sendable {
    let name: String
    /// What the act uses: commands such as `/title`, actions of keys such as `reply`, and keys of
    /// panels such as `Contacts: Alt-a`.
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

    /// The triggers that the acts together must use. It does not contain the keys of panels,
    /// because the plays read these keys from the screens.
    static let required =
        ScreenCommand.all.map { "/\($0.name)" } + KeyAction.allCases.map(\.rawValue)
}

extension Panel.Kind {
    /// The name of a kind of panel. A new kind of panel must get a name here before the tests
    /// compile. Its keys then need an act.
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
    /// The keys that the lower border of the panel shows, each with the name of the panel's kind.
    var triggers: [String] {
        let shown = keys.split(separator: "  ").compactMap { entry in
            entry.split(separator: " ").first.map(String.init)
        }
        return shown.filter { KeyPress(name: $0) != nil }.map { "\(kind.name): \($0)" }
    }
}
