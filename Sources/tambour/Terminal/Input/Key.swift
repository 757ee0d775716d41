/// An action of the person at the terminal.
enum InputEvent: Hashable, Sendable {
    case key(KeyPress)
    /// Pasted text, as one event: nothing in it is a command. Lines end with `\n`; control
    /// characters other than tabs are removed.
    case paste(String)
    case focusGained
    case focusLost
    case mouse(MouseEvent)
}

struct KeyPress: Hashable, Sendable {
    enum Key: Hashable, Sendable {
        /// One scalar, never a control character. With control or alt, the character on the key
        /// cap.
        case character(Unicode.Scalar)
        case enter
        case tab
        case backspace
        case escape
        case up
        case down
        case left
        case right
        case home
        case end
        case pageUp
        case pageDown
        case insert
        case delete
        case function(Int)
    }

    struct Modifiers: OptionSet, Hashable, Sendable {
        let rawValue: UInt8

        static let shift = Modifiers(rawValue: 1 << 0)
        static let alt = Modifiers(rawValue: 1 << 1)
        static let control = Modifiers(rawValue: 1 << 2)
    }

    var key: Key
    var modifiers: Modifiers = []

    init(_ key: Key, _ modifiers: Modifiers = []) {
        self.key = key
        self.modifiers = modifiers
    }

    static func control(_ scalar: Unicode.Scalar) -> KeyPress {
        KeyPress(.character(scalar), .control)
    }

    static func alt(_ scalar: Unicode.Scalar) -> KeyPress { KeyPress(.character(scalar), .alt) }
}

struct MouseEvent: Hashable, Sendable {
    enum Action: Hashable, Sendable {
        case press
        case release
        case drag
        case wheelUp
        case wheelDown
    }

    var action: Action
    /// 0 left, 1 middle, 2 right; meaningless for the wheel.
    var button: Int
    var position: Position
    var modifiers: KeyPress.Modifiers = []
}
