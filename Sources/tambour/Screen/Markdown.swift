import TambourClient
import TambourProtocol

/// Formatting as users write it: `**strong**`, `_emphasized_` or `*emphasized*`, `__underlined__`,
/// `~~struck~~`, `` `code` ``, fences of three backticks, `[text](address)`, `> quote` and
/// `# heading`. A backslash removes the special meaning of the next character.
///
/// Characters that do not format anything stay in the text, as in `2 * 3 * 4`, `snake_case` and
/// addresses. Parsing takes time proportional to the length of the text.
struct Markdown: Equatable {
    /// The text without the markup.
    var text = ""
    /// The formatted ranges of the text, at most `MessageSpan.most`. They are ordered by their
    /// starts. If two spans have the same start, the longer one comes first.
    var spans: [MessageSpan] = []

    init(_ source: String) {
        var reader = MarkdownReader(Array(source))
        (text, spans) = reader.read()
        // If the source contains nothing except marks, the marks themselves are the text.
        if text.allSatisfy(\.isWhitespace) { (text, spans) = (source, []) }
    }

    /// Returns the source of a formatted text. Omits formatting that the notation cannot express,
    /// such as mentions and partly overlapping spans.
    static func source(of text: String, _ spans: [MessageSpan]) -> String {
        let plain = MarkdownWriter(text, spans, escapes: false).write()
        let read = Markdown(plain)
        // Most texts contain nothing that looks like markup, and therefore need no backslashes.
        let shown = spans.filter(\.style.isWritten)
        if read.text == text, Set(read.spans) == Set(shown) { return plain }
        return MarkdownWriter(text, spans, escapes: true).write()
    }
}

extension MessageSpan.Style {
    fileprivate var isWritten: Bool {
        if case .mention = self { false } else { true }
    }

    /// The marks around a formatted text.
    fileprivate var marks: (String, String)? {
        switch self {
        case .strong: ("**", "**")
        case .emphasized: ("_", "_")
        case .underlined: ("__", "__")
        case .struckThrough: ("~~", "~~")
        case .monospaced: ("`", "`")
        case .link(let address): ("[", "](\(address))")
        case .quote, .heading, .mention: nil
        }
    }
}

/// Reads a source. First splits it into pieces and pairs the marks. Then writes the text without
/// the marks.
private struct MarkdownReader {
    private enum Piece {
        case character(Character)
        /// A mark. `partner` is the index of the other mark of the pair. A mark without a partner
        /// is plain text.
        case mark(String, partner: Int?)
        /// The end of a link, with the address of the link.
        case linkEnd(String, partner: Int)
        /// The start of a quote, a heading or code. Their marks are not pieces. The formatting
        /// lasts until `end`.
        case start(MessageSpan.Style)
        case end
    }

    private let source: [Character]
    private var place = 0
    private var pieces: [Piece] = []
    /// The marks of this paragraph that still have no partner, as indices of pieces. There is at
    /// most one of each kind.
    private var open: [Int] = []
    /// Whether the rest of the source contains no closing fence.
    private var hasNoFence = false
    private var isInQuote = false
    private var isInHeading = false

    init(_ source: [Character]) { self.source = source }

    private static let marks = ["**", "__", "~~", "*", "_"]
    private static let escaped = Set<Character>("\\*_~`[]()>#")

    mutating func read() -> (String, [MessageSpan]) {
        while place < source.count {
            if isAtLineStart { beginLine() }
            guard place < source.count else { break }
            readPiece()
        }
        endLine(isLast: true)
        return write()
    }

    private var isAtLineStart: Bool { place == 0 || source[place - 1].isNewline }

    private func has(_ text: String, at start: Int) -> Bool {
        source[start...].starts(with: text)
    }

    // MARK: Lines

    private mutating func beginLine() {
        if source[place].isNewline { open = [] }
        let isQuote = has("> ", at: place)
        if isInQuote != isQuote {
            if isInQuote { closeQuote() }
            if isQuote { pieces.append(.start(.quote)) }
            isInQuote = isQuote
            open = []
        }
        if isQuote {
            place += 2
        } else if let level = (1...3).first(where: { count in
            has(String(repeating: "#", count: count) + " ", at: place)
        }) {
            place += level + 1
            pieces.append(.start(.heading))
            isInHeading = true
            open = []
        } else if let end = fence() {
            let first = source[place...].firstIndex(where: \.isNewline).map { $0 + 1 } ?? place
            pieces.append(.start(.monospaced))
            pieces += source[first..<max(first, end - 1)].map { .character($0) }
            pieces.append(.end)
            place = end + 3
            open = []
        }
    }

    /// If a fence begins at the current place, returns the start of the fence that closes it.
    /// Returns nil if either fence is missing.
    private mutating func fence() -> Int? {
        guard !hasNoFence, has("```", at: place) else { return nil }
        var line = place
        while let next = source[line...].firstIndex(where: \.isNewline).map({ $0 + 1 }) {
            line = next
            let isFence = line < source.count && has("```", at: line)
            if isFence, line + 3 == source.count || source[line + 3].isNewline { return line }
        }
        hasNoFence = true
        return nil
    }

    private mutating func endLine(isLast: Bool = false) {
        if isInHeading {
            pieces.append(.end)
            isInHeading = false
            open = []
        }
        if isLast, isInQuote { pieces.append(.end) }
    }

    /// Ends the quote at the end of the previous line, before its line break.
    private mutating func closeQuote() {
        pieces.insert(.end, at: pieces.count - 1)
    }

    // MARK: Pieces

    private mutating func readPiece() {
        let character = source[place]
        if character.isNewline {
            endLine()
            return take(1)
        }
        switch character {
        case "\\" where place + 1 < source.count && Self.escaped.contains(source[place + 1]):
            place += 1
            take(1)
        case "`":
            let end = source[(place + 1)...].firstIndex { $0 == "`" || $0.isNewline }
            guard let end, source[end] == "`", end > place + 1 else {
                // A run of backticks, or a backtick without a partner, is plain text.
                return take(source[place...].prefix { $0 == "`" }.count)
            }
            pieces.append(.start(.monospaced))
            pieces += source[(place + 1)..<end].map { .character($0) }
            pieces.append(.end)
            place = end + 1
        case "[":
            pieces.append(.mark("[", partner: nil))
            push(pieces.count - 1, "[")
            place += 1
        case "]": closeLink()
        case "h" where has("http://", at: place) || has("https://", at: place):
            take(source[place...].prefix { !$0.isWhitespace && $0 != ")" && $0 != "]" }.count)
        default:
            guard let mark = Self.marks.first(where: { has($0, at: place) }) else {
                return take(1)
            }
            self.mark(mark)
        }
    }

    /// Appends the next characters unchanged.
    private mutating func take(_ count: Int) {
        pieces += source[place..<place + count].map { .character($0) }
        place += count
    }

    private mutating func push(_ index: Int, _ mark: String) {
        open = open.filter { !isMark(mark, at: $0) } + [index]
    }

    private func isMark(_ wanted: String, at index: Int) -> Bool {
        if case .mark(let mark, _) = pieces[index] { mark == wanted } else { false }
    }

    private mutating func mark(_ mark: String) {
        let end = place + mark.count
        let before = place > 0 ? source[place - 1] : " "
        let after = end < source.count ? source[end] : " "
        let isWord = mark == "_" || mark == "__" || mark == "*"
        let canClose =
            !before.isWhitespace && !(isWord && (after.isLetter || after.isNumber))
        // A mark after a symbol does not open formatting, because faces such as ¯_(ツ)_/¯ contain
        // such marks.
        let isApart = before.isWhitespace || before.isPunctuation || before == "~"
        let canOpen = !after.isWhitespace && (!isWord || isApart)
        pieces.append(.mark(mark, partner: nil))
        place = end
        let index = pieces.count - 1
        if canClose, let partner = open.last(where: { isMark(mark, at: $0) }),
            partner < index - 1
        {
            pieces[partner] = .mark(mark, partner: index)
            pieces[index] = .mark(mark, partner: partner)
            open.removeAll { $0 >= partner }
        } else if canOpen {
            push(index, mark)
        }
    }

    private mutating func closeLink() {
        guard let partner = open.last(where: { isMark("[", at: $0) }), partner < pieces.count - 1,
            place + 1 < source.count, source[place + 1] == "("
        else { return take(1) }
        let address = source[(place + 2)...].prefix { !$0.isWhitespace && !"()[]".contains($0) }
        let scheme = address.prefix { $0.isASCII && $0.isLetter }
        guard address.endIndex < source.count, source[address.endIndex] == ")", !scheme.isEmpty,
            address.dropFirst(scheme.count).first == ":", address.count > scheme.count + 1
        else { return take(1) }
        pieces[partner] = .mark("[", partner: pieces.count)
        pieces.append(.linkEnd(String(address), partner: partner))
        open.removeAll { $0 >= partner }
        place = address.endIndex + 1
    }

    // MARK: The result

    private func write() -> (String, [MessageSpan]) {
        var text = ""
        var units = 0
        var spans: [MessageSpan] = []
        var starts: [Int: Int] = [:]
        var blocks: [(MessageSpan.Style, Int)] = []
        func close(_ style: MessageSpan.Style, _ start: Int?) {
            guard let start, start < units else { return }
            spans.append(MessageSpan(style, start..<units))
        }
        func add(_ piece: String) {
            text += piece
            units += piece.utf16.count
        }
        for (index, piece) in pieces.enumerated() {
            switch piece {
            case .character(let character): add(String(character))
            case .mark(let mark, nil): add(mark)
            case .mark(_, let partner?) where partner > index: starts[index] = units
            case .mark(let mark, let partner?): close(Self.style(of: mark), starts[partner])
            case .linkEnd(let address, let partner): close(.link(address), starts[partner])
            case .start(let style): blocks.append((style, units))
            case .end:
                if let (style, start) = blocks.popLast() { close(style, start) }
            }
        }
        spans.sort {
            ($0.range.lowerBound, -$0.range.upperBound)
                < ($1.range.lowerBound, -$1.range.upperBound)
        }
        return (text, Array(spans.prefix(MessageSpan.most)))
    }

    private static func style(of mark: String) -> MessageSpan.Style {
        switch mark {
        case "**": .strong
        case "__": .underlined
        case "~~": .struckThrough
        default: .emphasized
        }
    }
}

/// Writes the source of a formatted text.
private struct MarkdownWriter {
    private let units: [UInt16]
    private let spans: [MessageSpan]
    private let escapes: Bool

    init(_ text: String, _ spans: [MessageSpan], escapes: Bool) {
        units = Array(text.utf16)
        self.escapes = escapes
        var kept: [MessageSpan] = []
        // Outer spans come first. Compares each span with every span kept so far. Keeps it only if
        // each of them ends before it starts, or contains it and is not code.
        for span in spans.sorted(by: {
            ($0.range.lowerBound, -$0.range.upperBound)
                < ($1.range.lowerBound, -$1.range.upperBound)
        }) where span.style.isWritten && span.range.upperBound <= units.count {
            let isNested = kept.allSatisfy { other in
                other.range.upperBound <= span.range.lowerBound
                    || span.range.upperBound <= other.range.upperBound
                        && other.style != .monospaced
            }
            if isNested { kept.append(span) }
        }
        self.spans = kept
    }

    func write() -> String {
        var openings: [Int: [String]] = [:]
        var closings: [Int: [String]] = [:]
        var quoted: [Range<Int>] = []
        var verbatim: [Range<Int>] = []
        for span in spans {
            let (start, end) = (span.range.lowerBound, span.range.upperBound)
            switch span.style {
            case .quote: if isLines(span.range) { quoted.append(span.range) }
            case .heading:
                if isLines(span.range) { openings[start, default: []].insert("# ", at: 0) }
            case .monospaced where units[span.range].contains(10):
                guard isLines(span.range) else { continue }
                verbatim.append(span.range)
                openings[start, default: []].append("```\n")
                closings[end, default: []].append("\n```")
            default:
                guard let marks = span.style.marks else { continue }
                if span.style == .monospaced { verbatim.append(span.range) }
                openings[start, default: []].append(marks.0)
                closings[end, default: []].insert(marks.1, at: 0)
            }
        }
        var result: [UInt16] = []
        for index in 0...units.count {
            for mark in closings[index] ?? [] { result += mark.utf16 }
            let isLineStart = index == 0 || units[index - 1] == 10
            if isLineStart, quoted.contains(where: { $0.contains(index) }) { result += "> ".utf16 }
            for mark in openings[index] ?? [] { result += mark.utf16 }
            guard index < units.count else { break }
            let unit = units[index]
            if escapes, Self.special.contains(unit),
                !verbatim.contains(where: { $0.contains(index) })
            {
                result += "\\".utf16
            }
            result.append(unit)
        }
        return String(decoding: result, as: UTF16.self)
    }

    private static let special = Set("\\*_~`[]>#".utf16)

    /// Whether a range consists of whole lines.
    private func isLines(_ range: Range<Int>) -> Bool {
        let startsLine = range.lowerBound == 0 || units[range.lowerBound - 1] == 10
        let endsLine = range.upperBound == units.count || units[range.upperBound] == 10
        return startsLine && endsLine
    }
}
