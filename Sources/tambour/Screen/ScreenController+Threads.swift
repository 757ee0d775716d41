import TambourClient
import TambourProtocol

/// Shows the thread of a message: the messages that it replies to, directly or indirectly, and all
/// replies.
extension ScreenController {
    /// - Parameter row: The row of the message; nil if the chat shows no message.
    func openThread(of row: HistoryRow?) {
        guard let open = state.open, let row, row.event == nil else {
            state.notice = ("there is no message here", true)
            return
        }
        // An unsent message has no replies. If it is a reply itself, shows the thread of the
        // message that it replies to.
        guard let message = row.message ?? row.quote?.message else {
            state.notice = ("it is not sent yet, and answers nothing", true)
            return
        }
        show(
            Panel(kind: .thread(of: message, from: row.id, in: open), title: "Thread", keys: "")
        )
        state.panel?.load("looking…")
        loading.stale.thread = true
        load()
    }

    /// Shows a thread in the panel for which it was read, if that panel is still open.
    func show(_ thread: MessageThread, in kind: Panel.Kind) {
        guard case .thread(let message, let row, let chat) = kind, state.panel?.kind == kind else {
            return
        }
        let first = thread.entries.first
        if first == nil || first?.message == message && first?.content == .deleted,
            case .entry(_, let before?, _)? = state.panel?.items.first?.target, before != message
        {
            // The message was deleted. The rest of its thread is shown instead.
            state.panel?.kind = .thread(of: before, from: row, in: chat)
            loading.stale.thread = true
            return load()
        }
        let isFirst = state.panel?.items.isEmpty == true
        let items = thread.entries.map { $0.item(in: chat, isOpenedOn: $0.id == row) }
        let remark =
            switch (thread.entries.count, thread.isWhole) {
            case (0, _): "it was deleted"
            case (1, true): "it answers nothing, and nobody has answered, on this device"
            case (let count, true): "\(count) messages on this device"
            case (let count, false): "\(count) messages of a longer thread, the newest answers"
            }
        fill(kind, with: items, remark: remark)
        if isFirst, let place = thread.entries.firstIndex(where: { $0.id == row }) {
            state.panel?.selected = place
        }
    }
}

extension MessageThread.Entry {
    /// The indentation per level of replies, in columns.
    private static let step = 2
    /// The maximum level of indentation.
    private static let deepest = 10

    /// Returns the entry as a panel item.
    ///
    /// - Parameter isOpenedOn: Whether the user opened the thread on this entry. If true, the item
    ///   is marked.
    fileprivate func item(in chat: ChatID, isOpenedOn: Bool) -> Panel.Item {
        var item = Panel.Item(title: "", target: .entry(id, message, in: chat))
        item.indent = min(depth, Self.deepest) * Self.step
        switch content {
        case .row(let row):
            item.title = row.senderName
            item.detail = row.firstLine
            item.right = clock(row.timeMs)
            switch row.state {
            case .waiting: item.right = "… \(item.right)"
            case .failed: item.right = "✗ \(item.right)"
            case .sent, .read, .received: break
            }
        case .notHeld:
            item.title = "(a message that is not on this device)"
            item.right = message.map { clock($0.timeMs) } ?? ""
        case .deleted:
            item.title = "(a message that was deleted)"
            item.right = message.map { clock($0.timeMs) } ?? ""
        }
        if isOpenedOn { item.right = "this one, \(item.right)" }
        return item
    }
}

extension HistoryRow {
    /// The first line of the message that is not blank.
    fileprivate var firstLine: String {
        if let event { return event }
        let lines = ([text] + attachments).flatMap { $0.split(whereSeparator: \.isNewline) }
        return lines.first { !$0.allSatisfy(\.isWhitespace) }.map(String.init) ?? ""
    }
}
