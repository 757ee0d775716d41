import TambourClient
import TambourProtocol
import TerminalKit

/// Actions on the selected message.
extension ScreenController {
    func handleMessages(_ press: KeyPress) {
        guard let open = state.open, press.key != .escape, press.key != .enter else {
            state.focus = .input
            return
        }
        let action = state.keys.action(of: press, in: .message)
        guard let row = state.selectedRow else {
            // The message to select is not loaded yet. An action must not apply to another message
            // instead.
            if action == .above || action == .below { select(by: 0) }
            return
        }
        switch action {
        case .above: select(by: -1)
        case .below: select(by: 1)
        case .delete, .deleteForMe: delete(row, in: open, onlyForMe: action == .deleteForMe)
        case .edit: edit(row)
        case .retry:
            guard let outgoing = row.outgoing else { return tellNotSent(row) }
            perform { try await $0.retry(outgoing) }
        case .copy:
            let isSent = display?.copy(row.text) == true
            state.notice = isSent ? ("copied", false) : ("too long to be copied", true)
        case .openLink: openLink(1, of: row)
        case .olderHit: stepToHit(1)
        case .newerHit: stepToHit(-1)
        case .quoted:
            guard let quote = row.quote else { return }
            go(to: quote.message, in: open)
        case .thread: openThread(of: row)
        case .comments: openComments(on: row)
        case .reply, .forwardMessage, .unreadFromHere, .react, .unreact, .pinMessage, .vote:
            if let action { handleSent(action, row, open) }
        default:
            guard case .character(let digit) = press.key,
                press.withoutTypedShift.modifiers.isEmpty
            else { return }
            if ("1"..."9").contains(digit) {
                return openLink(Int(digit.value - 48), of: row)
            }
            // Any other key applies to the input line.
            state.focus = .input
            handleInput(press)
        }
    }

    /// Handles the actions that need a message on the server. An unsent message cannot be their
    /// target.
    private func handleSent(_ action: KeyAction, _ row: HistoryRow, _ open: ChatID) {
        guard let message = row.message else {
            state.notice = ("it is not sent yet", true)
            return
        }
        if state.comments != nil, !Self.actionsOnComments.contains(action) {
            let hint = state.keys.hint(.back, "goes back to the channel", before: "; ")
            state.notice = ("comments do not have this\(hint)", true)
            return
        }
        switch action {
        case .reply:
            if state.intent.isEdit { endEdit() }
            state.intent = .reply(message, quote: "\(row.senderName): \(row.text)")
            state.focus = .input
            noteWriting()
        case .forwardMessage: openForward(message, from: open)
        case .unreadFromHere:
            perform { try await $0.markUnread(from: message, in: open) }
            state.newAfterMs = message.timeMs - 1
            state.notice = ("unread from here", false)
        case .react: openReactions(to: message, in: open)
        case .unreact: perform { try await $0.react(nil, to: message, in: open) }
        case .vote: openPoll(of: row, message, open)
        case .pinMessage: perform { try await $0.update(open, pinned: message) }
        default: break
        }
    }

    private func edit(_ row: HistoryRow) {
        guard row.isOwn, row.forwardedFrom == nil else {
            state.notice = ("you can edit only your own messages", true)
            return
        }
        beginEdit(.edit(row.id), text: Markdown.source(of: row.text, row.spans))
        state.focus = .input
    }

    private func tellNotSent(_ row: HistoryRow) {
        state.notice = ("only a refused message can be sent again", true)
    }

    private func delete(_ row: HistoryRow, in chat: ChatID, onlyForMe: Bool) {
        if let outgoing = row.outgoing { return perform { try await $0.cancel(outgoing) } }
        guard let message = row.message else { return }
        confirm(onlyForMe ? "Delete it for you?" : "Delete it for everybody?") { screen in
            screen.selectNeighbour(of: row.id)
            screen.perform { try await $0.delete([message], in: chat, onlyForMe: onlyForMe) }
        }
    }

    /// Selects the message after the message that is removed, or else the message before it.
    private func selectNeighbour(of id: HistoryRow.ID) {
        let rows = state.rows.filter { $0.event == nil }
        guard let index = rows.firstIndex(where: { $0.id == id }) else { return }
        let next = rows.dropFirst(index + 1).first ?? rows.prefix(index).last
        state.selected = next?.id
        if next == nil { state.focus = .input }
    }

    private func select(by step: Int) {
        let rows = state.rows.filter { $0.event == nil }
        guard let index = rows.firstIndex(where: { $0.id == state.selected }) else {
            state.selected = rows.last?.id
            return
        }
        let next = min(max(0, index + step), rows.count - 1)
        if next == index { return scroll(by: step < 0 ? 3 : -3) }
        state.selected = rows[next].id
        let width = paneWidth
        state.scroll = view.scroll(of: state, width, revealing: rows[next].id, in: seen.paneRows)
        isGoingBack = step < 0
        // Near the start of the loaded messages, loads older ones.
        if next < 5, !state.isStart, let first = rows.first?.message, anchor != first {
            anchor = first
            loadHistory()
        }
    }

    // MARK: - Links

    /// Opens a link of a message. If `row` is nil, opens a link of the newest message that contains
    /// one.
    ///
    /// - Parameter number: The number of the link in the message, from 1.
    func openLink(_ number: Int, of row: HistoryRow?) {
        let row = row ?? state.rows.last { !Links.addresses(of: $0).isEmpty }
        let addresses = row.map { Links.addresses(of: $0) } ?? []
        guard number > 0, number <= addresses.count else {
            state.notice = ("there is no link \(number) in it", true)
            return
        }
        browse(addresses[number - 1])
    }

    func browse(_ address: String) {
        guard Links.isSafe(address) else {
            state.notice = ("not a link for a browser: \(address)", true)
            return
        }
        state.notice = ("opening \(address)", false)
        display?.browse(address) { [weak self] isStarted in
            if !isStarted {
                self?.say("no browser: set $BROWSER, or install xdg-open", isError: true)
            }
        }
    }
}
