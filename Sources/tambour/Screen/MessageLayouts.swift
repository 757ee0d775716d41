import TambourClient
import TambourProtocol

/// The lines of messages, laid out once for each message and width.
final class MessageLayouts {
    /// A message as lines of a pane.
    struct Block {
        let header: Header?
        let quote: String?
        let body: TextLayout?
        let footer: String

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
    }

    private var known: [Key: Block] = [:]
    private static let kept = 1_000

    func block(of row: HistoryRow, width: Int, hasHeader: Bool) -> Block {
        let key = Key(row: row, width: width, hasHeader: hasHeader)
        if let block = known[key] { return block }
        if known.count >= Self.kept { known = [:] }
        let block = Self.layOut(row, width, hasHeader)
        known[key] = block
        return block
    }

    private static func layOut(_ row: HistoryRow, _ width: Int, _ hasHeader: Bool) -> Block {
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
        let text = ([row.text] + row.attachments).filter { !$0.isEmpty }.joined(separator: "\n")
        let spans = row.spans.map { span in
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
        var options = TextLayout.Options(width: max(1, width - 2))
        options.firstLinkNumber = 1
        let reactions = row.reactions.map { "\($0.emoji) \($0.count)\($0.isOwn ? "*" : "")" }
        var footer = reactions.joined(separator: "  ")
        if case .failed(let reason) = row.state {
            footer += footer.isEmpty ? reason : "  \(reason)"
        }
        var notes = note
        if row.isEdited { notes += " edited" }
        if row.isChanging { notes += " …" }
        let header = Block.Header(
            sender: row.forwardedFrom.map { "\(row.senderName) · from \($0)" } ?? row.senderName,
            person: row.sender?.rawValue ?? 0,
            note: notes,
            time: time
        )
        let needsHeader = hasHeader || !notes.isEmpty
        return Block(
            header: needsHeader ? header : nil,
            quote: row.quote.map { "┃ \($0.sender): \($0.text)" },
            body: text.isEmpty ? nil : TextLayout(text, spans: spans, options: options),
            footer: footer
        )
    }
}
