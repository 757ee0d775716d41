import TambourClient
import TambourProtocol
import TerminalKit

/// Lays out messages as lines, and caches the result. Each message is laid out only once for each
/// width.
final class MessageLayouts {
    /// A message as lines of a pane.
    struct Block {
        let header: Header?
        let quote: (sender: String, text: String)?
        let body: TextLayout?
        let footer: String
        /// The delivery state and the edit mark. They are shown at the right end of the first line.
        /// Empty if the header shows them.
        var note = ""

        struct Header {
            let sender: String
            let person: Int64
            let note: String
            let time: String
        }

        var height: Int {
            (header == nil ? 0 : 1) + (quote == nil ? 0 : 1) + (body?.lines.count ?? 0)
                + (footer.isEmpty ? 0 : 1)
        }
    }

    private struct Key: Hashable {
        let row: HistoryRow
        let width: Int
        let hasHeader: Bool
        let words: [String]
    }

    /// All values that determine the lines of a pane. If they are unchanged, the lines are
    /// unchanged too.
    struct LinesKey: Equatable {
        let rows: [HistoryRow]
        let width: Int
        let words: [String]
        let newAfterMs: Int64?
        let isGapBefore: Bool
        let isStart: Bool
    }

    private var known: [Key: Block] = [:]
    private var lastLines: (key: LinesKey, lines: [ScreenView.Line])?
    private var days: [Int64: String] = [:]
    private static let kept = 1_000

    /// Returns the lines of a pane. Calls `make` only if `key` differs from the key of the last
    /// call. The lines are therefore not laid out again at every keystroke.
    func lines(_ key: LinesKey, make: () -> [ScreenView.Line]) -> [ScreenView.Line] {
        if let lastLines, lastLines.key == key { return lastLines.lines }
        let lines = make()
        lastLines = (key, lines)
        return lines
    }

    /// Returns the day of a time, as `2026-11-23`.
    func day(of timeMs: Int64) -> String {
        // Offsets from UTC are multiples of fifteen minutes. All times within the same quarter of
        // an hour are therefore on the same local day.
        let quarter = timeMs / 900_000
        if let day = days[quarter] { return day }
        let day = String(clock(timeMs).prefix(10))
        if days.count > Self.kept { days = [:] }
        days[quarter] = day
        return day
    }

    /// - Parameter words: Beginnings of words to highlight.
    func block(
        of row: HistoryRow,
        width: Int,
        hasHeader: Bool,
        marking words: [String] = []
    ) -> Block {
        let key = Key(row: row, width: width, hasHeader: hasHeader, words: words)
        if let block = known[key] { return block }
        if known.count >= Self.kept { known = [:] }
        let block = Self.layOut(row, width, hasHeader, words)
        known[key] = block
        return block
    }

    private static func layOut(
        _ row: HistoryRow,
        _ width: Int,
        _ hasHeader: Bool,
        _ words: [String]
    ) -> Block {
        let time = String(clock(row.timeMs).suffix(5))
        if let event = row.event {
            let layout = TextLayout("* \(event)", options: .init(width: max(1, width), indent: 2))
            return Block(header: nil, quote: nil, body: layout, footer: "")
        }
        let note =
            switch row.state {
            case .waiting: "…"
            case .sent: "✓"
            case .read: "✓✓"
            case .failed: "✗"
            case .received: ""
            }
        let attached = row.poll.map { [$0.text] } ?? row.attachments
        let text = ([row.text] + attached).filter { !$0.isEmpty }.joined(separator: "\n")
        let formatting = row.spans.map { span in
            switch span.style {
            case .strong, .heading: TextSpan(span.range, .bold)
            case .emphasized: TextSpan(span.range, .italic)
            case .underlined: TextSpan(span.range, .underline)
            case .struckThrough: TextSpan(span.range, .strikethrough)
            case .monospaced: TextSpan(span.range, .monospace)
            case .quote: TextSpan(span.range, .quote)
            case .mention: TextSpan(span.range, .mention)
            case .link(let address): TextSpan(span.range, .link, address: address)
            }
        }
        let spans =
            formatting
            + Links.ranges(in: row).map { TextSpan($0.range, .link, address: $0.address) }
            + matches(of: words, in: text).map { TextSpan($0, .match) }
        var notes = note
        if row.isEdited { notes += " edited" }
        if row.isChanging { notes += " …" }
        notes = notes.trimmed
        let hasNote = !hasHeader && !notes.isEmpty
        let room = width - 2 - (hasNote ? Width.of(notes) + 1 : 0)
        var options = TextLayout.Options(width: max(1, room))
        options.firstLinkNumber = 1
        let reactions = row.reactions.map { "\($0.emoji) \($0.count)\($0.isOwn ? "*" : "")" }
        var feet = reactions
        if let count = row.commentCount, count > 0 {
            feet.append(count == 1 ? "1 comment" : "\(count) comments")
        }
        var footer = feet.joined(separator: "  ")
        if case .failed(let reason) = row.state {
            footer += footer.isEmpty ? reason : "  \(reason)"
        }
        let header = Block.Header(
            sender: sender(of: row),
            person: row.sender?.rawValue ?? 0,
            note: notes,
            time: time
        )
        return Block(
            header: hasHeader ? header : nil,
            quote: row.quote.map { ($0.sender, $0.text) },
            body: text.isEmpty ? nil : TextLayout(text, spans: spans, options: options),
            footer: footer,
            note: hasNote ? notes : ""
        )
    }

    private static func sender(of row: HistoryRow) -> String {
        guard let source = row.forwardedFrom else { return row.senderName }
        return row.senderName + (source.isEmpty ? " · forwarded" : " · forwarded from \(source)")
    }

    /// Returns the ranges in `text`, in UTF-16 units, at which a word begins with one of `words`.
    static func matches(of words: [String], in text: String) -> [Range<Int>] {
        guard !words.isEmpty else { return [] }
        let folded = FoldedText(text)
        // Ranges of folded text are counted in clusters, but spans are counted in UTF-16 units.
        var units: [Int] = [0]
        for cluster in text { units.append(units[units.count - 1] + cluster.utf16.count) }
        var found: [Range<Int>] = []
        for word in words.map({ FoldedText($0).scalars }) where !word.isEmpty {
            for start in folded.scalars.indices
            where folded.wordStarts[start] && folded.scalars[start...].starts(with: word) {
                let last = folded.clusters[start + word.count - 1]
                found.append(units[folded.clusters[start]]..<units[last + 1])
            }
        }
        return found
    }
}
