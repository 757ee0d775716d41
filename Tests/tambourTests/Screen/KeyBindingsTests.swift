import Testing

@testable import TerminalKit
@testable import tambour

@Suite("Keys that people choose")
struct KeyBindingsTests {
    @Test("are written and read in the same words", arguments: KeyAction.allCases)
    func usual(action: KeyAction) {
        let names = action.usualKeys.split(separator: " ").map(String.init)
        #expect(names.compactMap { KeyPress(name: $0)?.name } == names)
        let bindings = KeyBindings()
        #expect(bindings.names(of: action) == action.usualKeys)
        for key in bindings.keys(of: action) {
            #expect(bindings.action(of: key, in: action.scope) == action)
        }
    }

    @Test("mean one thing in one place")
    func unique() {
        let bindings = KeyBindings()
        for action in KeyAction.allCases {
            for other in KeyAction.allCases where other.scope.overlaps(action.scope) {
                let shared = Set(bindings.keys(of: action)).intersection(bindings.keys(of: other))
                #expect(action == other || shared.isEmpty, "\(action) \(other)")
            }
        }
    }

    @Test(
        "are what terminals send",
        arguments: [
            ("ctrl-N", KeyPress.control("n")), ("ALT-g", .alt("g")), ("Alt-G", .alt("G")),
            ("Alt--", .alt("-")), ("-", KeyPress(.character("-"))),
            ("f12", KeyPress(.function(12))), ("Shift-F1", KeyPress(.function(1), .shift)),
            ("Ctrl-Alt-Up", KeyPress(.up, [.control, .alt])), ("Alt-Space", .alt(" ")),
            ("ж", KeyPress(.character("ж"))),
        ]
    )
    func read(name: String, key: KeyPress) { #expect(KeyPress(name: name) == key) }

    @Test(
        "are nothing else",
        arguments: ["", "Alt-", "Ctrl-Foo", "F0", "F21", "ab", "Alt-ab", "👍🏽"]
    )
    func unread(name: String) { #expect(KeyPress(name: name) == nil) }

    @Test("are found by their place in a Russian layout, unless the letter itself is chosen")
    func russian() {
        let bindings = KeyBindings()
        #expect(bindings.action(of: KeyPress(.character("в")), in: .message) == .delete)
        #expect(bindings.action(of: KeyPress(.character("К")), in: .message) == .retry)
        #expect(bindings.action(of: .alt("п"), in: .chat) == .goToChat)
        let chosen = KeyBindings(["react": "в"])
        #expect(chosen.action(of: KeyPress(.character("в")), in: .message) == .react)
        #expect(chosen.action(of: KeyPress(.character("d")), in: .message) == .delete)
    }

    @Test("take the place of the usual ones, which others then lose")
    func chosen() {
        let bindings = KeyBindings(["next-unread": "Ctrl-n F5", "contacts": "Alt-g"])
        #expect(bindings.mistakes.isEmpty)
        #expect(bindings.action(of: .control("n"), in: .chat) == .nextUnread)
        #expect(bindings.action(of: KeyPress(.function(5)), in: .chat) == .nextUnread)
        #expect(bindings.action(of: .alt("n"), in: .chat) == nil)
        #expect(bindings.action(of: .alt("g"), in: .chat) == .contacts)
        #expect(bindings.keys(of: .goToChat).isEmpty)
        #expect(Help.lines(bindings).contains { $0.hasPrefix("  Ctrl-N F5       next chat") })
        #expect(Help.lines(bindings).contains { $0.hasPrefix("  no key          go to a chat") })
    }

    @Test("are not told to do in the line what they do no more")
    func taken() {
        let bindings = KeyBindings(["queue": "Alt-Enter Ctrl-_"])
        #expect(bindings.mistakes.isEmpty)
        for key in ["Alt-Enter", "Ctrl-_"] {
            let usual = Help.lines(KeyBindings()).filter { $0.hasPrefix("  \(key) ") }
            #expect(usual.count == 1)
            #expect(Set(Help.lines(bindings)).isDisjoint(with: usual))
        }
    }

    @Test("are the same with and without the shift that made a character")
    func shift() {
        let bindings = KeyBindings()
        let shifted = KeyPress(.character("D"), .shift)
        #expect(bindings.action(of: shifted, in: .message) == .deleteForMe)
        #expect(bindings.action(of: .alt("d"), in: .message) == nil)
    }

    @Test(
        "leave the usual ones where they cannot be so",
        arguments: [
            ["dance": "F5"], ["queue": "Hyper-x"], ["queue": "x"], ["queue": "Shift-x"],
            ["queue": "Ctrl-m"], ["queue": "Ctrl-1"], ["copy": "Shift-d"], ["queue": "Esc"],
            ["queue": "Ctrl-c"], ["reply": "Enter"], ["reply": "5"],
            ["queue": "F5", "pin": "F5"], ["reply": "F1", "help": "F1"], ["leave": ""],
            ["queue": "Ctrl-q"],
        ]
    )
    func mistaken(chosen: [String: String]) {
        let bindings = KeyBindings(chosen)
        #expect(bindings.mistakes.count == 1)
        #expect(bindings.names(of: .leave) == "Ctrl-Q")
        // If a user chooses one key for two actions, the action whose name is first in the alphabet
        // gets the key.
        let first = chosen.count == 2 ? chosen.keys.min() : nil
        if let first, let action = KeyAction(rawValue: first) {
            #expect(bindings.names(of: action) == chosen[first])
        }
        for name in chosen.keys where name != first {
            guard let action = KeyAction(rawValue: name) else { continue }
            #expect(bindings.names(of: action) == action.usualKeys)
        }
    }

    @Test("may be the same on a message and in the line")
    func apart() {
        let bindings = KeyBindings(["editor": "F5", "copy": "F5"])
        #expect(bindings.mistakes.isEmpty)
        #expect(bindings.action(of: KeyPress(.function(5)), in: .line) == .editor)
        #expect(bindings.action(of: KeyPress(.function(5)), in: .message) == .copy)
    }
}
