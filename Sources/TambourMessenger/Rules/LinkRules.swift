package import TambourProtocol

/// Finds links in texts, and formats the texts of a page for a preview.
package enum LinkRules {
    private static let schemes = ["https://", "http://"].map { Array($0.unicodeScalars) }
    /// Characters that, at the end of a link, belong to the sentence and not to the address.
    private static let closing = Set(".,;:!?'*_~…".unicodeScalars)
    private static let forbidden = Set("<>\"`\\{}|^".unicodeScalars)
    private static let brackets: [Unicode.Scalar: Unicode.Scalar] = [")": "(", "]": "["]

    /// Returns the first `http:` or `https:` link of a text.
    ///
    /// - Parameter maxBytes: the length of the longest accepted link, in bytes.
    package static func firstLink(in text: Text, maxBytes: Int) -> String? {
        let scalars = Array(String(text).unicodeScalars)
        var start = 0
        while start < scalars.count {
            guard let length = schemeLength(scalars[start...]),
                start == 0 || !isWordly(scalars[start - 1])
            else {
                start += 1
                continue
            }
            let host = start + length
            let end = scalars[host...].firstIndex { !isOfAddress($0) } ?? scalars.count
            let own = withoutLeftOver(scalars[start..<end])
            if let link = link(own, host: host, maxBytes: maxBytes) { return link }
            start = end
        }
        return nil
    }

    /// Returns whether a string is exactly one link.
    package static func isLink(_ string: String, maxBytes: Int) -> Bool {
        let scalars = Array(string.unicodeScalars)
        guard let length = schemeLength(scalars[...]), scalars.allSatisfy(isOfAddress) else {
            return false
        }
        return link(scalars[...], host: length, maxBytes: maxBytes) != nil
    }

    /// Formats a text from a page, so that it fits one line. The result has at most `maxUnits`
    /// UTF-16 units.
    ///
    /// - Returns: nil when there is nothing to show.
    package static func line(_ words: String, maxUnits: Int) -> Text? {
        var line = ""
        var units = 0
        for character in words {
            let isBlank = character.unicodeScalars.allSatisfy {
                $0.properties.isWhitespace || $0.properties.generalCategory == .control
            }
            // Replace a sequence of blanks by one space, and drop leading blanks.
            if isBlank, line.isEmpty || line.last == " " { continue }
            let shown = isBlank ? " " : character
            units += shown.utf16.count
            guard units <= maxUnits else { break }
            line.append(shown)
        }
        if line.last == " " { line.removeLast() }
        return line.isEmpty ? nil : Text(line)
    }

    private static func schemeLength(_ scalars: ArraySlice<Unicode.Scalar>) -> Int? {
        for scheme in schemes where scalars.count > scheme.count {
            let isScheme = zip(scalars, scheme).allSatisfy { scalar, wanted in
                let isCapital = ("A"..."Z").contains(scalar)
                return scalar.value + (isCapital ? 32 : 0) == wanted.value
            }
            if isScheme { return scheme.count }
        }
        return nil
    }

    private static func link(
        _ scalars: ArraySlice<Unicode.Scalar>,
        host: Int,
        maxBytes: Int
    ) -> String? {
        guard host < scalars.endIndex, isWordly(scalars[host]) || scalars[host] == "[" else {
            return nil
        }
        var link = String.UnicodeScalarView()
        link.append(contentsOf: scalars)
        let string = String(link)
        return string.utf8.count <= maxBytes ? string : nil
    }

    private static func isWordly(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isAlphabetic || scalar.properties.numericType != nil
    }

    private static func isOfAddress(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isWhitespace || forbidden.contains(scalar) { return false }
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .initialPunctuation,
            .finalPunctuation:
            return false
        default:
            return true
        }
    }

    /// Removes characters at the end that belong to the surrounding text. An example is a full
    /// stop, or a closing bracket whose opening bracket is before the link.
    private static func withoutLeftOver(
        _ scalars: ArraySlice<Unicode.Scalar>
    ) -> ArraySlice<Unicode.Scalar> {
        var link = scalars
        // The number of unmatched closing brackets of each kind in the link.
        var unopened = brackets.mapValues { _ in 0 }
        for scalar in link {
            for (close, open) in brackets {
                if scalar == close { unopened[close, default: 0] += 1 }
                if scalar == open { unopened[close, default: 0] -= 1 }
            }
        }
        while let last = link.last {
            if let count = unopened[last] {
                guard count > 0 else { break }
                unopened[last] = count - 1
            } else if !closing.contains(last) {
                break
            }
            link.removeLast()
        }
        return link
    }
}
