import TambourProtocol

/// The visible parts of a message: words, formatting, attachments.
extension Message {
    /// The attachments; empty when the stored bytes are corrupt.
    var shownAttaches: [Attach] { attaches.stored ?? [] }

    /// Returns the event in the chat, described in words; nil for an ordinary message.
    func eventText(name: (UserID) -> String) -> String? {
        guard let event = shownAttaches.first(where: { $0.type == .control }) else { return nil }
        let who = sender.map(name) ?? ""
        // The message's sender performed the event. The ids name the people affected.
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
    var shownSpans: [MessageSpan] {
        MessageSpan.all(of: elements?.stored ?? [], length: text.utf16Count)
    }
}
