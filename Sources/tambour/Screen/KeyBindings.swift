import TambourProtocol
import TerminalKit

/// The bindings of keys to actions. An action has the keys that the user has chosen for it, or else
/// its default keys (`KeyAction.usualKeys`).
struct KeyBindings: Sendable {
    private var bindings: [(action: KeyAction, keys: [KeyPress])] = []
    /// The errors in the chosen keys. An action with an error keeps those of its default keys that
    /// the user has not chosen for another action.
    private(set) var mistakes: [String] = []

    /// - Parameter chosen: The keys that the user has chosen, by the name of the action, such as
    ///   `"next-unread": "Ctrl-n F5"`. Spaces separate the keys. An empty text means that the
    ///   action has no key.
    init(_ chosen: [String: String] = [:]) {
        var kept: [KeyAction: [KeyPress]] = [:]
        for (name, text) in chosen.sorted(by: { $0.key < $1.key }) {
            guard let action = KeyAction(rawValue: name) else {
                mistakes.append("“\(name)” is nothing that keys do; `tambour keys` lists what is")
                continue
            }
            do throws(Mistake) {
                let keys = try Self.keys(text, for: action)
                for key in keys {
                    let rival = kept.first { rival, keys in
                        rival.scope.overlaps(action.scope) && keys.contains(key)
                    }
                    if let rival {
                        throw Mistake("\(key.name) is chosen for \(rival.key.rawValue)")
                    }
                }
                kept[action] = keys
            } catch {
                mistakes.append("\(name): \(error.text)")
            }
        }
        fill(kept)
        guard keys(of: .leave).isEmpty else { return }
        mistakes.append("leave: without a key nobody could leave")
        // If the user has chosen the default key of `leave` for another action, that action loses
        // all its chosen keys.
        for (action, keys) in kept where keys.contains(where: Self.usual(.leave).contains) {
            kept[action] = nil
        }
        kept[.leave] = Self.usual(.leave)
        fill(kept)
    }

    private struct Mistake: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    /// Binds the chosen keys. An action without chosen keys gets those of its default keys that are
    /// not chosen for another action.
    private mutating func fill(_ chosen: [KeyAction: [KeyPress]]) {
        bindings = KeyAction.allCases.map { action in
            let keys =
                chosen[action]
                ?? Self.usual(action).filter { key in
                    !chosen.contains { rival, keys in
                        rival.scope.overlaps(action.scope) && keys.contains(key)
                    }
                }
            return (action, keys)
        }
    }

    private static func keys(
        _ text: String,
        for action: KeyAction
    ) throws(Mistake) -> [KeyPress] {
        var keys: [KeyPress] = []
        for name in text.split(separator: " ") {
            guard let key = KeyPress(name: String(name)) else {
                throw Mistake("“\(name)” is no key; keys are as in Alt-g, Ctrl-n, F5, PgUp")
            }
            guard !key.isReserved(in: action.scope) else {
                throw Mistake("\(key.name) cannot be chosen there")
            }
            keys.append(key)
        }
        return keys
    }

    private static func usual(_ action: KeyAction) -> [KeyPress] {
        action.usualKeys.split(separator: " ").compactMap { KeyPress(name: String($0)) }
    }

    /// Returns the action of a key. If the key has none, returns the action of the Latin key in the
    /// same place of the keyboard.
    func action(of press: KeyPress, in scope: KeyAction.Scope) -> KeyAction? {
        let press = press.withoutTypedShift
        return bound(press, in: scope) ?? bound(press.onLatinKeyboard, in: scope)
    }

    private func bound(_ press: KeyPress, in scope: KeyAction.Scope) -> KeyAction? {
        bindings.first { $0.action.scope == scope && $0.keys.contains(press) }?.action
    }

    /// Returns whether the key with this name is bound to an action in a scope that overlaps
    /// `scope`.
    func take(_ name: String, from scope: KeyAction.Scope) -> Bool {
        guard let key = KeyPress(name: name) else { return false }
        return bindings.contains { $0.action.scope.overlaps(scope) && $0.keys.contains(key) }
    }

    func keys(of action: KeyAction) -> [KeyPress] {
        bindings.first { $0.action == action }?.keys ?? []
    }

    /// Returns the keys of an action in the notation of `preferences.json`, separated by spaces.
    func names(of action: KeyAction) -> String {
        keys(of: action).map(\.name).joined(separator: " ")
    }

    /// Returns a hint: `before`, the action's first key, its meaning, and `after`. The hint is
    /// empty if the action has no key.
    func hint(
        _ action: KeyAction,
        _ words: String,
        before: String = "",
        after: String = ""
    ) -> String {
        keys(of: action).first.map { "\(before)\($0.name) \(words)\(after)" } ?? ""
    }
}

extension KeyPress {
    private static let names: [(String, Key)] = [
        ("Enter", .enter), ("Tab", .tab), ("Backspace", .backspace), ("Esc", .escape),
        ("Up", .up), ("Down", .down), ("Left", .left), ("Right", .right), ("Home", .home),
        ("End", .end), ("PgUp", .pageUp), ("PgDn", .pageDown), ("Insert", .insert),
        ("Delete", .delete), ("Space", .character(" ")),
    ]
    private static let prefixes: [(String, Modifiers)] = [
        ("Ctrl-", .control), ("Alt-", .alt), ("Shift-", .shift),
    ]

    /// Parses a key such as `Alt-g`, `Ctrl-Up`, `F5` or `+`. The case matters only for a single
    /// character.
    ///
    /// - Returns: nil when the text is not a key.
    init?(name: String) {
        var rest = name[...]
        var modifiers: Modifiers = []
        while let prefix = Self.prefixes.first(where: { prefix, _ in
            rest.count > prefix.count && rest.lowercased().hasPrefix(prefix.lowercased())
        }) {
            modifiers.insert(prefix.1)
            rest = rest.dropFirst(prefix.0.count)
        }
        if let named = Self.names.first(where: { $0.0.lowercased() == rest.lowercased() }) {
            self.init(named.1, modifiers)
        } else if rest.lowercased().first == "f", let number = Int(rest.dropFirst()),
            (1...20).contains(number)
        {
            self.init(.function(number), modifiers)
        } else if rest.unicodeScalars.count == 1, let scalar = rest.unicodeScalars.first,
            !scalar.properties.isWhitespace, scalar.properties.generalCategory != .control
        {
            // The character already includes the shift key.
            guard !modifiers.contains(.shift) else { return nil }
            // With control, terminals send the same byte for both cases of a letter.
            let lower = scalar.properties.lowercaseMapping.unicodeScalars.first ?? scalar
            self.init(.character(modifiers.contains(.control) ? lower : scalar), modifiers)
        } else {
            return nil
        }
    }

    /// The key in the notation of `preferences.json`.
    var name: String {
        let prefix = Self.prefixes.filter { modifiers.contains($0.1) }.map(\.0).joined()
        if let named = Self.names.first(where: { $0.1 == key }) { return prefix + named.0 }
        switch key {
        case .function(let number): return "\(prefix)F\(number)"
        case .character(let scalar):
            let isControl = modifiers.contains(.control)
            let text = String(scalar)
            return prefix + (isControl ? text.uppercased() : text)
        default: return prefix
        }
    }

    /// The same key; for a character, without the modifier shift. Some terminals report shift
    /// although the character already includes it.
    var withoutTypedShift: KeyPress {
        guard case .character = key else { return self }
        return KeyPress(key, modifiers.subtracting(.shift))
    }

    /// Returns whether the key has a fixed meaning and cannot be bound.
    fileprivate func isReserved(in scope: KeyAction.Scope) -> Bool {
        if self == .control("c") { return true }
        if case .character(let scalar) = key, modifiers.contains(.control) {
            // Other combinations reach the program as Tab, Enter, Esc or Backspace, or not at all.
            let sent = ("a"..."z").contains(scalar) || " \\]^_".unicodeScalars.contains(scalar)
            return !sent || scalar == "i" || scalar == "m"
        }
        let isBare = modifiers.isEmpty || modifiers == .shift
        switch key {
        case .escape, .enter, .tab, .backspace: return isBare
        case .character(let scalar):
            guard isBare else { return false }
            return scope.hasText || ("1"..."9").contains(scalar)
        default: return false
        }
    }
}
