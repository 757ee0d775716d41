import TerminalKit

extension KeyPress {
    /// The keys of a Russian keyboard and the Latin letters on them, row by row.
    private static let latin = Dictionary(
        uniqueKeysWithValues: zip(
            "йцукенгшщзхъфывапролджэячсмитьбюёЙЦУКЕНГШЩЗХЪФЫВАПРОЛДЖЭЯЧСМИТЬБЮЁ".unicodeScalars,
            "qwertyuiop[]asdfghjkl;'zxcvbnm,.`QWERTYUIOP{}ASDFGHJKL:\"ZXCVBNM<>~".unicodeScalars
        )
    )

    /// The key as a Latin keyboard has it: a letter that acts is found by its place, whatever the
    /// layout.
    var onLatinKeyboard: KeyPress {
        guard case .character(let scalar) = key, let latin = Self.latin[scalar] else {
            return self
        }
        return KeyPress(.character(latin), modifiers)
    }
}
