/// An action of the user at the terminal.
package enum InputEvent: Hashable, Sendable {
    case key(KeyPress)
    /// Pasted text, as one event. No part of it acts as a command. Lines end with `\n`; control
    /// characters other than tabs are removed.
    case paste(String)
    case focusGained
    case focusLost
    case mouse(MouseEvent)
}

package struct KeyPress: Hashable, Sendable {
    package enum Key: Hashable, Sendable {
        /// One scalar that is not a control character. If control or alt is held, the character on
        /// the key cap.
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

    package struct Modifiers: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let shift = Modifiers(rawValue: 1 << 0)
        package static let alt = Modifiers(rawValue: 1 << 1)
        package static let control = Modifiers(rawValue: 1 << 2)
    }

    package var key: Key
    package var modifiers: Modifiers = []

    package init(_ key: Key, _ modifiers: Modifiers = []) {
        self.key = key
        self.modifiers = modifiers
    }

    package static func control(_ scalar: Unicode.Scalar) -> KeyPress {
        KeyPress(.character(scalar), .control)
    }

    package static func alt(_ scalar: Unicode.Scalar) -> KeyPress {
        KeyPress(.character(scalar), .alt)
    }
}

package struct MouseEvent: Hashable, Sendable {
    package enum Action: Hashable, Sendable {
        case press
        case release
        case drag
        case wheelUp
        case wheelDown
    }

    package var action: Action
    /// The button: 0 is left, 1 is middle, 2 is right. Has no meaning for wheel events.
    var button: Int
    package var position: Position
    package var modifiers: KeyPress.Modifiers = []

    /// Whether the left button was pressed.
    package var isClick: Bool { action == .press && button == 0 }
}
