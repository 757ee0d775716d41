import TambourProtocol

/// The visible parts of a message: words, formatting, attachments.
extension Message {
    /// The attachments; empty when the stored bytes are corrupt.
    var shownAttaches: [Attach] { attaches.stored ?? [] }

    /// Returns the event in the chat, described in words; nil for an ordinary message.
    func eventText(name: (UserID) -> String) -> String? {
        guard let event = shownAttaches.first(where: { $0.type == .control }) else { return nil }
        let who = sender.map(name) ?? ""
        // The sender of the event performed it. The ids name the people affected.
        let concerned = event.userIDs ?? event.userID.map { [$0] } ?? []
        let others = concerned.map(name).joined(separator: ", ")
        let title = event.title.map { "\($0)" } ?? ""
        let words =
            switch "\(event.event ?? .empty)" {
            case "new": "\(who) created “\(title)”"
            case "add": "\(who) added \(others)"
            case "remove": "\(who) removed \(others)"
            case "leave": "\(who) left"
            case "joinByLink": "\(who) joined by a link"
            case "title": "\(who) named it “\(title)”"
            case "icon": "\(who) changed the picture"
            case "pin": "\(who) pinned a message"
            case "unpin": "\(who) took the pinned message down"
            default: event.shortMessage.map { "\($0)" } ?? "something happened"
            }
        return words.first == " " ? String(words.dropFirst()) : words
    }

    /// The text shown in place of a photo.
    static let photoText = "[photo]"

    /// Returns the attachments, described in words.
    func attachmentTexts(name: (UserID) -> String) -> [String] {
        shownAttaches.compactMap { attach in
            switch attach.type {
            case .control, .inlineKeyboard: nil
            case .photo: Self.photoText
            case .video: "[video]"
            case .file: "[file\(attach.name.map { " \($0)" } ?? "")]"
            case .audio: "[voice]"
            case .sticker: "[sticker]"
            case .call: "[call]"
            case .contact:
                "[contact \(attach.contactID.map(name) ?? attach.name.map { "\($0)" } ?? "")]"
            case .location:
                "[place \(attach.latitude ?? 0), \(attach.longitude ?? 0)]"
            case .share: "[link \(attach.title ?? attach.url ?? .empty)]"
            case .poll: Self.text(ofPoll: attach)
            case .other(let type): "[\(type)]"
            }
        }
    }

    private static func text(ofPoll poll: Attach) -> String {
        let answers = (poll.answers ?? []).map { "• \($0.text)" }
        return (["[poll] \(poll.title ?? .empty)"] + answers).joined(separator: "\n")
    }

    /// Returns the message as one line, for lists and quotes.
    func line(name: (UserID) -> String) -> String {
        if let event = eventText(name: name) { return event }
        let words = ["\(text)"] + attachmentTexts(name: name)
        let whole = words.filter { !$0.isEmpty }.joined(separator: " ")
        if whole.isEmpty, let link = link?.stored, link.type == .forward {
            return link.message.line(name: name)
        }
        return String(whole.map { $0.isNewline ? " " : $0 })
    }

    /// The formatting of the text, without ranges outside of the text.
    var shownSpans: [HistoryRow.TextSpan] {
        HistoryRow.TextSpan.all(of: elements?.stored ?? [], length: text.utf16Count)
    }
}

extension HistoryRow.TextSpan {
    /// Returns the formatting of a text, without ranges outside of the text.
    ///
    /// - Parameter length: the length of the text in UTF-16 units.
    static func all(of elements: [Element], length: Int) -> [HistoryRow.TextSpan] {
        elements.compactMap { element in
            let from = Int(clamping: element.from)
            let end = from.addingReportingOverflow(Int(clamping: element.length ?? 0)).partialValue
            guard 0 <= from, from < end, end <= length, let style = element.style else {
                return nil
            }
            return HistoryRow.TextSpan(style: style, range: from..<end)
        }
    }
}

extension Element {
    fileprivate var style: HistoryRow.TextSpan.Style? {
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
