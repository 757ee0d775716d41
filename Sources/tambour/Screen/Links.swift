import TambourClient
import TambourProtocol

/// Finds and checks the addresses in messages.
enum Links {
    private static let schemes = ["https://", "http://", "mailto:"]

    /// Returns whether it is safe to start a browser with the address.
    static func isSafe(_ address: String) -> Bool {
        let lower = address.lowercased()
        return schemes.contains { lower.hasPrefix($0) }
            && !address.unicodeScalars.contains { $0.value <= 0x20 || $0.value == 0x7F }
    }

    /// Returns the addresses in a message in the order in which the screen numbers them.
    static func addresses(of row: HistoryRow) -> [String] {
        let formatted = row.spans.compactMap { span -> (Int, String)? in
            guard case .link(let address) = span.style else { return nil }
            return (span.range.lowerBound, address)
        }
        let plain = ranges(in: row).map { ($0.range.lowerBound, $0.address) }
        return (formatted + plain).sorted { $0.0 < $1.0 }.map(\.1)
    }

    /// Returns the addresses that the text contains as plain text, and their ranges in UTF-16
    /// units. Omits addresses inside formatted links.
    static func ranges(in row: HistoryRow) -> [(range: Range<Int>, address: String)] {
        let taken = row.spans.compactMap { span -> Range<Int>? in
            guard case .link = span.style else { return nil }
            return span.range
        }
        return ranges(in: row.text).filter { found in
            !taken.contains { $0.overlaps(found.range) }
        }
    }

    static func ranges(in text: String) -> [(range: Range<Int>, address: String)] {
        guard text.contains(":") else { return [] }
        var found: [(range: Range<Int>, address: String)] = []
        for word in text.split(whereSeparator: \.isWhitespace) {
            guard let start = start(in: word) else { continue }
            let address = trimmed(word[start...])
            guard isSafe(String(address)), address.count > 8 else { continue }
            let offset = text.utf16.distance(from: text.startIndex, to: address.startIndex)
            found.append((offset..<offset + address.utf16.count, String(address)))
        }
        return found
    }

    private static func start(in word: Substring) -> Substring.Index? {
        // An address may follow an opening bracket or quotation mark without a space.
        let head = word.prefix { !$0.isLetter }
        let rest = word[head.endIndex...].lowercased()
        return schemes.contains { rest.hasPrefix($0) } ? head.endIndex : nil
    }

    /// Removes trailing punctuation that belongs to the surrounding sentence.
    private static func trimmed(_ address: Substring) -> Substring {
        var address = address
        // Checks this once, because the address may end with thousands of closing brackets. The
        // loop never removes an opening bracket.
        let isOpened = address.contains("(")
        while let last = address.last {
            let isClosing = last == ")" && !isOpened
            guard ".,;:!?\"'»”>]}".contains(last) || isClosing else { break }
            address.removeLast()
        }
        return address
    }
}
