import Foundation
public import TambourProtocol

/// A range of a message's text that is formatted, or that names a person.
public struct MessageSpan: Hashable, Sendable {
    public enum Style: Hashable, Sendable {
        case strong
        case emphasized
        case underlined
        case struckThrough
        case monospaced
        /// A link with its address.
        case link(String)
        /// A person; nil for a person without an id.
        case mention(UserID?)
        case quote
        case heading

        var isMention: Bool {
            if case .mention = self { true } else { false }
        }
    }

    public let style: Style
    /// UTF-16 units from the start of the text.
    public let range: Range<Int>

    public init(_ style: Style, _ range: Range<Int>) {
        self.style = style
        self.range = range
    }

    /// The maximum number of spans in one message.
    public static let most = Limits.standard.maxElementsPerText

    /// Returns the part of the span within `part`, counted from the start of `part`; nil for a span
    /// outside of `part`, and for a mention that is not completely inside.
    func within(_ part: Range<Int>) -> MessageSpan? {
        let common = range.clamped(to: part)
        guard !common.isEmpty, !style.isMention || common == range else { return nil }
        let start = common.lowerBound - part.lowerBound
        return MessageSpan(style, start..<start + common.count)
    }
}

// MARK: - On the wire

extension MessageSpan {
    /// Returns the formatting of a text, without ranges outside of the text.
    ///
    /// - Parameter length: the length of the text in UTF-16 units.
    static func all(of elements: [Element], length: Int) -> [MessageSpan] {
        elements.compactMap { element in
            let from = Int(clamping: element.from)
            let end = from.addingReportingOverflow(Int(clamping: element.length ?? 0)).partialValue
            guard 0 <= from, from < end, end <= length, let style = element.style else {
                return nil
            }
            return MessageSpan(style, from..<end)
        }
    }

    var element: Element {
        var element = Element(
            type: type,
            from: Int64(range.lowerBound),
            length: Int64(range.count)
        )
        switch style {
        case .mention(let user): element.entityID = user
        case .link(let address):
            let attributes = NameMap<AnyValue>([("url", AnyValue(Text(address)))])
            element.attributes = AnyValue(attributes)
        default: break
        }
        return element
    }

    private var type: Text {
        switch style {
        case .strong: "STRONG"
        case .emphasized: "EMPHASIZED"
        case .underlined: "UNDERLINE"
        case .struckThrough: "STRIKETHROUGH"
        case .monospaced: "MONOSPACED"
        case .link: "LINK"
        case .mention: "USER_MENTION"
        case .quote: "QUOTE"
        case .heading: "HEADING"
        }
    }
}

extension [MessageSpan] {
    /// The elements as the store keeps them; nil when there are none.
    var storedElements: Data? {
        isEmpty ? nil : map(\.element).storedBytes
    }
}

extension Element {
    /// The style of the element; nil for a type that this library does not know.
    var style: MessageSpan.Style? {
        switch "\(type)" {
        case "STRONG": .strong
        case "EMPHASIZED": .emphasized
        case "UNDERLINE": .underlined
        case "STRIKETHROUGH": .struckThrough
        case "MONOSPACED", "CODE": .monospaced
        case "HEADING": .heading
        case "QUOTE": .quote
        case "USER_MENTION": .mention(entityID)
        case "LINK": .link(address ?? "")
        default: nil
        }
    }

    private var address: String? {
        guard let attributes else { return nil }
        let names = Packed<NameMap<AnyValue>>(unchecked: attributes.bytes).stored
        return names?["url"]?.text.map { "\($0)" }
    }
}
