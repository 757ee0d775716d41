import TerminalKit

extension KeyPress {
    /// The keys of a Russian keyboard and the Latin letters on them, row by row.
    private static let latin = Dictionary(
        uniqueKeysWithValues: zip(
            "йцукенгшщзхъфывапролджэячсмитьбюёЙЦУКЕНГШЩЗХЪФЫВАПРОЛДЖЭЯЧСМИТЬБЮЁ".unicodeScalars,
            "qwertyuiop[]asdfghjkl;'zxcvbnm,.`QWERTYUIOP{}ASDFGHJKL:\"ZXCVBNM<>~".unicodeScalars
        )
    )

    /// The key in the same place of a Latin keyboard. Letters with an action thus work in both
    /// layouts.
    var onLatinKeyboard: KeyPress {
        guard case .character(let scalar) = key, let latin = Self.latin[scalar] else {
            return self
        }
        return KeyPress(.character(latin), modifiers)
    }
}
