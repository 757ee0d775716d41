import TambourClient
import TambourProtocol

/// The lines that commands print for the user. Each object has one line.
extension HistoryRow {
    func line(_ ink: Ink = .output) -> String {
        let time = ink(.faint, clock(timeMs))
        if let event { return "\(time)  \(ink(.faint, "* \(printable(event))"))" }
        var words: [String] = []
        if let quote { words.append(ink(.faint, printable("[re: \(quote.text.prefix(30))]"))) }
        if let forwardedFrom {
            words.append(ink(.faint, printable("[forwarded from \(forwardedFrom)]")))
        }
        if !text.isEmpty { words.append(printableLines(text)) }
        words += attachments.map(printable)
        if isEdited { words.append(ink(.faint, "(edited)")) }
        words += reactions.map { printable("\($0.emoji)\($0.count)") }
        switch state {
        case .waiting: words.append(ink(.notice, "(waiting)"))
        case .failed(let reason):
            words.append(ink(.failure, printable("(not sent: \(reason))")))
        case .sent, .read, .received: break
        }
        let name = ink(isOwn ? .strong : .name, printable(senderName))
        return "\(time)  \(name): \(words.joined(separator: " "))"
    }
}

extension ChatSummary {
    func line(_ ink: Ink = .output) -> String {
        let marks = [
            isGone ? ink(.failure, "left") : "", isPinned ? "pinned" : "", isMuted ? "muted" : "",
            isHidden ? "hidden" : "", unread > 0 ? ink(.notice, "\(unread) unread") : "",
            draft == nil ? "" : "draft",
            failedCount > 0 ? ink(.failure, "\(failedCount) not sent") : "",
        ].filter { !$0.isEmpty }
        let suffix = marks.isEmpty ? "" : "  (\(marks.joined(separator: ", ")))"
        let name = unread > 0 ? ink(.strong, printable(title)) : printable(title)
        return "\(ink(.faint, "\(id)"))\t\(ink(.faint, clock(lastEventMs)))\t\(name)\(suffix)"
    }
}

extension Person {
    func line(_ ink: Ink = .output, role: Client.Member.Role? = nil) -> String {
        let phone = phone.map { printable("+\($0)") } ?? ""
        let words = [ink(.faint, "\(id)"), printable(name), phone, role.map(\.word) ?? ""]
        return words.prefix(role == nil ? 3 : 4).joined(separator: "\t")
    }
}

extension Client.SignedInDevice {
    func line(_ ink: Ink = .output) -> String {
        let mark = isCurrent ? ink(.strong, "*") : " "
        let name = id.map { [ink(.faint, "\($0)")] } ?? []
        let words = [ink(.faint, clock(seenMs))] + [client, device, address].map(printable)
        return "\(mark) \((name + words).joined(separator: "  "))"
    }
}

extension Client.Waiting {
    func line(_ ink: Ink = .output) -> String {
        let place = chatTitle.map { " in \($0)" } ?? ""
        let state =
            failure.map { ink(.failure, printable("refused: \($0)")) } ?? ink(.notice, "waiting")
        let words = [ink(.faint, "\(id)"), ink(.faint, clock(sinceMs)), printable(what + place)]
        return (words + [state]).joined(separator: "\t")
    }

    private var what: String {
        switch kind {
        case .message(let text): "message “\(text)”"
        case .scheduling(let text): "message for later “\(text)”"
        case .rescheduling: "change of a scheduled message"
        case .comment(let text): "comment “\(text)”"
        case .forward: "forwarded message"
        case .edit(let text): "edit to “\(text)”"
        case .deletion: "deletion"
        case .readMark: "read mark"
        case .reaction: "reaction"
        case .vote: "vote"
        case .draft: "draft"
        case .newChat(let title): "new group “\(title)”"
        case .chat: "change of the chat"
        case .contact: "change of a contact"
        case .profile: "change of the profile"
        case .folder: "change of a folder"
        case .other(let name): name
        }
    }
}
