import TerminalKit

extension KeyPress {
    /// Maps the letters of a Russian keyboard to the Latin letters on the same keys, row by row.
    private static let latin = Dictionary(
        uniqueKeysWithValues: zip(
            "йцукенгшщзхъфывапролджэячсмитьбюёЙЦУКЕНГШЩЗХЪФЫВАПРОЛДЖЭЯЧСМИТЬБЮЁ".unicodeScalars,
            "qwertyuiop[]asdfghjkl;'zxcvbnm,.`QWERTYUIOP{}ASDFGHJKL:\"ZXCVBNM<>~".unicodeScalars
        )
    )

    /// The key in the same place of a Latin keyboard. Letters that are bound to actions therefore
    /// work in both layouts.
    var onLatinKeyboard: KeyPress {
        guard case .character(let scalar) = key, let latin = Self.latin[scalar] else {
            return self
        }
        return KeyPress(.character(latin), modifiers)
    }
}
