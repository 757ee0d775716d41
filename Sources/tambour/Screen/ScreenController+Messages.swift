import TambourClient
import TambourProtocol

/// What is done to the message that is chosen.
extension ScreenController {
    func handleMessages(_ press: KeyPress) {
        guard let open = state.open, press.key != .escape, press.key != .enter else {
            state.focus = .input
            return
        }
        guard let row = state.selectedRow else {
            // What was gone to is not here yet: nothing may be done to another one instead.
            if press.key == .up || press.key == .down { select(by: 0) }
            return
        }
        switch press.key {
        case .up, .character("k"): select(by: -1)
        case .down, .character("j"): select(by: 1)
        case .character("d"), .character("D"):
            delete(row, in: open, onlyForMe: press.key == .character("D"))
        case .character("e"): edit(row)
        case .character("R"):
            guard let outgoing = row.outgoing else { return tellNotSent(row) }
            perform { try await $0.retry(outgoing) }
        case .character("y"):
            let isSent = display?.copy(row.text) == true
            state.notice = isSent ? ("copied", false) : ("too long to be copied", true)
        case .character("o"): openLink(1, of: row)
        case .character("1"..."9"):
            guard case .character(let digit) = press.key else { return }
            openLink(Int(digit.value - 48), of: row)
        case .character("n"): stepToHit(1)
        case .character("N"): stepToHit(-1)
        case .character("q"):
            guard let quote = row.quote else { return }
            go(to: quote.message, in: open)
        case .character("t"): openThread(of: row)
        default: handleSent(press, row, open)
        }
    }

    /// Keys for what the server has.
    private func handleSent(_ press: KeyPress, _ row: HistoryRow, _ open: ChatID) {
        guard "rfu+-P".unicodeScalars.contains(where: { press.key == .character($0) }) else {
            return
        }
        guard let message = row.message else {
            state.notice = ("it is not sent yet", true)
            return
        }
        switch press.key {
        case .character("r"):
            if state.intent.isEdit { endEdit() }
            state.intent = .reply(message, quote: "\(row.senderName): \(row.text)")
            state.focus = .input
            noteWriting()
        case .character("f"): openForward(message, from: open)
        case .character("u"):
            perform { try await $0.markUnread(from: message, in: open) }
            state.newAfterMs = message.timeMs - 1
            state.notice = ("unread from here", false)
        case .character("+"): openReactions(to: message, in: open)
        case .character("-"): perform { try await $0.react(nil, to: message, in: open) }
        default: perform { try await $0.update(open, pinned: message) }
        }
    }

    private func edit(_ row: HistoryRow) {
        guard row.isOwn, row.forwardedFrom == nil else {
            state.notice = ("only own messages can be changed", true)
            return
        }
        beginEdit(.edit(row.id), text: row.text)
        state.focus = .input
    }

    private func tellNotSent(_ row: HistoryRow) {
        state.notice = ("only what was refused can be tried again", true)
    }

    private func delete(_ row: HistoryRow, in chat: ChatID, onlyForMe: Bool) {
        if let outgoing = row.outgoing { return perform { try await $0.cancel(outgoing) } }
        guard let message = row.message else { return }
        confirm(onlyForMe ? "Delete it for you?" : "Delete it for everybody?") { screen in
            screen.perform { try await $0.delete([message], in: chat, onlyForMe: onlyForMe) }
        }
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
        // Near the end of what is read, more is.
        if next < 5, !state.isStart, let first = rows.first?.message, anchor != first {
            anchor = first
            loadHistory()
        }
    }

    // MARK: - Links

    /// Opens a link of a message, or of the newest one that has any.
    ///
    /// - Parameter number: from 1.
    func openLink(_ number: Int, of row: HistoryRow?) {
        let row = row ?? state.rows.last { !Links.addresses(of: $0).isEmpty }
        let addresses = row.map { Links.addresses(of: $0) } ?? []
        guard addresses.indices.contains(number - 1) else {
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
