/// Reads a prose chapter: Markdown whose normative sentences end with an id such as `[FRM-04]`.
///
/// The text of a requirement ends at its id. It begins after the previous id, or at the start of
/// the paragraph or list item.
enum ChapterParser {
    /// - Parameters:
    ///   - name: The name of the file without the extension.
    ///   - text: Markdown that starts with a first-level heading.
    static func parse(_ text: String, name: String, file: String) -> Chapter {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var title = name
        if let first = lines.first, first.hasPrefix("# ") {
            title = String(first.dropFirst(2))
            lines[0] = ""
        }
        var chapter = Chapter(
            name: name,
            title: title,
            body: lines.joined(separator: "\n"),
            requirements: [],
            unnumbered: [],
            origin: Origin(file: file, line: 1)
        )
        for block in blocks(lines) {
            read(block, of: file, into: &chapter)
        }
        return chapter
    }

    private struct Block {
        var text: String
        var line: Int
    }

    /// Returns the paragraphs, list items and table rows of a chapter. Skips code blocks.
    private static func blocks(_ lines: [String]) -> [Block] {
        var blocks: [Block] = []
        var isOpen = false
        var isCode = false
        for (index, line) in lines.enumerated() {
            let trimmed = line.drop { $0 == " " }
            if trimmed.hasPrefix("```") {
                isCode.toggle()
                isOpen = false
                continue
            }
            if isCode || trimmed.isEmpty || trimmed.hasPrefix("#") {
                isOpen = false
                continue
            }
            let isItem = trimmed.hasPrefix("- ") || trimmed.hasPrefix("|")
            if isOpen, !isItem {
                blocks[blocks.count - 1].text += " " + trimmed
            } else {
                let text = trimmed.hasPrefix("- ") ? trimmed.dropFirst(2) : trimmed
                blocks.append(Block(text: String(text), line: index + 1))
                isOpen = true
            }
        }
        return blocks
    }

    private static func read(_ block: Block, of file: String, into chapter: inout Chapter) {
        let origin = Origin(file: file, line: block.line)
        var rest = block.text[...]
        while let match = rest.firstMatch(of: /\[([A-Z]{3}-[0-9]{2})\]/) {
            let text = trimmed(rest[..<match.range.lowerBound])
            if let level = level(of: text) {
                chapter.requirements.append(
                    Requirement(
                        id: String(match.output.1),
                        level: level,
                        text: text,
                        place: .chapter(chapter.name),
                        origin: origin
                    )
                )
            } else {
                chapter.unnumbered.append(
                    Problem(origin: origin, text: "\(match.output.1) says neither MUST nor SHOULD")
                )
            }
            rest = rest[match.range.upperBound...]
        }
        if level(of: trimmed(rest)) != nil {
            chapter.unnumbered.append(
                Problem(
                    origin: origin,
                    text: "a normative sentence without an id: \(trimmed(rest))"
                )
            )
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text.drop { $0 == " " || $0 == "|" }
        while text.last == " " || text.last == "|" { text.removeLast() }
        return String(text)
    }

    /// Returns the number of normative words in a text.
    static func norms(in text: String) -> Int { text.matches(of: /\b(MUST|SHOULD)\b/).count }

    /// Returns the first normative word, if any.
    static func level(of text: String) -> Requirement.Level? {
        text.firstMatch(of: /\b(MUST|SHOULD)\b/).flatMap { .init(rawValue: String($0.output.1)) }
    }
}
